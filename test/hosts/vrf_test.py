#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two tenants with the same addresses on four hosts, and a tenant that leaves by another one's uplink."""
import re

from hosts import ADDRESSES, GATEWAYS, HOST_MAC, ROUTER_MAC, TENANTS, FourHosts, Taps, harness, ip, why_not


class Overlap(FourHosts):
    """Everything but the MAC addresses is the same in both tenants."""

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

    def test_traceroute_sees_the_own_tenant_alone(self):
        if reason := why_not("traceroute"):
            self.skipTest(reason)
        for tenant in range(2):
            for option, gateway, address in zip(("-4", "-6"), GATEWAYS[0], ADDRESSES[1]):
                with self.subTest(tenant=TENANTS[tenant], option=option):
                    before = self.packets()
                    out = self.output(self.inside(2 * tenant, "traceroute", option, "-n", "-q", "1", "-w", "5", address))
                    self.assertEqual(re.findall(r"^ *\d+ +([0-9a-f.:]+) ", out, re.M), [gateway, address], out)
                    sent = [after - b for b, after in zip(before, self.packets())]
                    self.assertTrue(all(sent[2 * (1 - tenant) + side] < 10 for side in range(2)), sent)

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
