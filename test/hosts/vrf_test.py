#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two tenants with the same addresses on four hosts, and a tenant that leaves by another one's uplink."""
import contextlib
import os

from hosts import ADDRESSES, GATEWAYS, HOST_MAC, ROUTER_MAC, Hosts, Taps, harness, ip, why_not

TENANTS = ["red", "blue"]


def mac(kind, n):
    return f"02:00:00:00:{kind:02x}:{n:02x}"


class Overlap(Hosts):
    """Port n of four: tenant n // 2, side n % 2. Everything but the MAC addresses is the same in both tenants."""

    @classmethod
    def config(cls):
        return {
            "version": 1,
            "memory": {"mbufs": 32768},
            "sessions": {"capacity": 4096},
            "ports": [{"name": f"p{n}", "device": f"net_tap{n},iface={cls.names[n]}", "mac": mac(7, n)} for n in range(4)],
            "tenants": [{"name": name, "id": 1 + t, "match": [{"port": f"p{2 * t}"}, {"port": f"p{2 * t + 1}"}], "acl": "stateful"} for t, name in enumerate(TENANTS)],
            "interfaces": [{"name": f"i{n}", "port": f"p{n}", "addresses": [f"{GATEWAYS[n % 2][0]}/24", f"{GATEWAYS[n % 2][1]}/64"]} for n in range(4)],
            "neighbors": [{"tenant": TENANTS[n // 2], "address": address, "mac": mac(0x70, n)} for n in range(4) for address in ADDRESSES[n % 2]],
            "acl": [{"name": "stateful", "default": "permit", "stateful": True, "rules": []}],
        }

    @classmethod
    def setUpClass(cls):
        cls.reason = why_not()
        if cls.reason:
            return
        cls.cleanup = contextlib.ExitStack()
        cls.addClassCleanup(cls.cleanup.close)
        tag = f"{os.getpid() % 100000}"
        cls.spaces = [f"cwvrf{tag}{n}" for n in range(4)]
        cls.names = [f"cwv{tag}{n}" for n in range(4)]
        for space in cls.spaces:
            ip("netns", "add", space)
            cls.cleanup.callback(ip, "netns", "del", space)
            ip("-n", space, "link", "set", "lo", "up")
        cls.cachewire = cls.cleanup.enter_context(harness.Cachewire(cls.config()))
        cls.cachewire.wait_running()
        for n, (space, tap) in enumerate(zip(cls.spaces, cls.names)):
            ip("link", "set", tap, "netns", space)
            ip("-n", space, "link", "set", tap, "address", mac(0x70, n), "up")
            for address, gateway, bits in zip(ADDRESSES[n % 2], GATEWAYS[n % 2], (24, 64)):
                ip("-n", space, "addr", "replace", f"{address}/{bits}", "dev", tap, *(["nodad"] if ":" in address else []))
                ip("-n", space, "neigh", "replace", gateway, "lladdr", mac(7, n), "dev", tap, "nud", "permanent")
                ip("-n", space, "route", "replace", "default", "via", gateway, "dev", tap)

    def packets(self):
        return [self.cachewire.ask(f"/cachewire/port/stats,p{n}")["tx_packets"] for n in range(4)]

    def test_the_same_addresses_in_two_tenants_never_mix(self):
        for tenant in range(2):
            for address in ADDRESSES[1]:
                with self.subTest(tenant=TENANTS[tenant], address=address):
                    before = self.packets()
                    out = self.output(self.inside(2 * tenant, "ping", "-c", "20", "-i", "0.05", "-W", "5", address))
                    self.assertIn(" 0% packet loss", out)
                    sent = [after - b for b, after in zip(before, self.packets())]
                    # Requests and replies by this tenant's two ports; nothing by the other's but what a host asks by itself.
                    self.assertTrue(all(sent[2 * tenant + side] >= 20 for side in range(2)), sent)
                    self.assertTrue(all(sent[2 * (1 - tenant) + side] < 10 for side in range(2)), sent)
        for tenant in TENANTS:
            self.assertGreaterEqual(self.cachewire.ask(f"/cachewire/session/stats,{tenant}")["created"], 2)

    def test_both_at_once(self):
        pings = [self.inside(2 * tenant, "ping", "-c", "40", "-i", "0.05", "-W", "5", ADDRESSES[1][0]) for tenant in range(2)]
        for ping in pings:
            self.assertIn(" 0% packet loss", self.output(ping))


class Leak(Taps):
    """The first host's tenant has no interface but its own, and leaves by the second's. Only the session knows the way back."""

    @classmethod
    def config(cls):
        config = super().config()
        config["tenants"] = [{"name": "red", "id": 1, "match": [{"port": "p0"}], "acl": "stateful"}, {"name": "uplink", "id": 2, "match": [{"port": "p1"}], "acl": "stateful"}]
        for n, name in enumerate(["red", "uplink"]):
            config["interfaces"][n]["tenant"] = name
        config["neighbors"] = [{"tenant": ["red", "uplink"][n], "address": address, "mac": HOST_MAC[n]} for n in range(2) for address in ADDRESSES[n]]
        config["routes"] = [{"tenant": "red", "prefix": "10.78.0.0/24", "via": {"tenant": "uplink"}},
                            {"tenant": "red", "prefix": "2001:db8:78::/64", "via": {"tenant": "uplink", "address": ADDRESSES[1][1]}}]
        return config

    @classmethod
    def configure(cls, n, interface):
        super().configure(n, interface)
        for gateway in GATEWAYS[n]:  # what is tested is the way back, not who finds whom
            ip("-n", cls.spaces[n], "neigh", "replace", gateway, "lladdr", ROUTER_MAC[n], "dev", interface, "nud", "permanent")

    def test_replies_find_the_session_of_the_other_tenant(self):
        self.ping_passes(count=10)
        self.transfer(megabytes=10)
        red = self.cachewire.ask("/cachewire/route/stats,red")
        self.assertGreater(red["leaked_out"], 20)
        self.assertGreater(red["leaked_in"], 20)
        self.assertEqual(self.cachewire.ask("/cachewire/route/stats,uplink")["leaked_out"], 0)
        self.assertEqual(self.cachewire.ask("/cachewire/route/lookup,red,10.78.0.2")["leaked_to"], "uplink")

    def test_nothing_begins_from_the_uplink(self):
        out = self.inside(1, "ping", "-c", "3", "-i", "0.1", "-W", "1", ADDRESSES[0][0]).communicate()[0]
        self.assertIn("100% packet loss", out)


if __name__ == "__main__":
    harness.main()
