#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Access lists of a running process: rule files, hits, the egress, refusals with an answer, and what a reload would do."""
import os
import subprocess

import harness
import packets as p
from harness import HOST, MAC, Cachewire

CWCTL = os.path.join(os.path.dirname(os.path.dirname(harness.BINARY)), "tools", "cwctl")
ANY = "0 : 65535"


def line(lead, src, dst, ports, proto, port=""):
    return f"{lead}{src} {dst} {ANY} {ports} : {ports} {proto}/0xff {port}\n"


def udp(dst_port, src_port=1000):
    return p.ether(MAC[0], HOST[0], p.udp_packet("198.18.1.9", "198.18.2.9", src_port, dst_port))


def with_list(acl, left, right, **tenant):
    config = harness.router(left, right)
    for key in ("interfaces", "neighbors", "routes"):
        config[key] = [{"tenant": "red", **entry} for entry in config[key]]
    config["tenants"] = [{"name": "red", "id": 1, "match": [{"port": "p0"}, {"port": "p1"}], "acl": "edge", **tenant}]
    config["acl"] = [{"name": "edge", **acl}]
    return config


class Acl(harness.Case):
    def hits(self, cachewire, name="edge"):
        answer, cursor = {}, 0
        while cursor is not None:
            page = cachewire.ask(f"/cachewire/acl/hits,{name},{cursor},2")
            cursor = page.pop("next", None)
            answer.update(page)
        return {entry["rule"]: entry for entry in answer.values()}

    def test_a_rule_file_its_hits_and_its_reload(self):
        folder = self.folder()
        rules = os.path.join(folder, "edge.rules")
        with open(rules, "w", encoding="utf-8") as file:
            file.write("# edge\n" + line("@", "0.0.0.0/0", "198.18.2.0/24", 23, "0x06") + line("R", "198.18.1.0/24", "198.18.2.0/24", 53, "17", "1"))
        p.write_pcap(f"{folder}/in.pcap", [udp(53, 1000 + n) for n in range(5)] * 4 + [udp(99)] * 3)
        config = with_list({"stateful": True, "file": "edge.rules", "format": "l3fwd-acl"},
                           f"net_pcap0,rx_pcap={folder}/in.pcap,tx_pcap={folder}/a.pcap", f"net_pcap1,tx_pcap={folder}/b.pcap")
        with Cachewire(config, folder=folder) as cachewire:
            self.assert_closed(cachewire.wait_received(23))
            listed = cachewire.ask("/cachewire/acl/list")["0"]
            self.assertEqual({key: listed[key] for key in ("name", "rules", "default", "stateful", "file", "tenants")},
                             {"name": "edge", "rules": 2, "default": "deny", "stateful": 1, "file": rules, "tenants": "red"})
            self.assertGreater(listed["memory_bytes"], 0)
            hits = self.hits(cachewire)
            self.assertEqual(list(hits), ["rule 1", "rule 2", "default"])
            self.assertEqual([hits[name]["packets"] for name in hits], [0, 20, 3])
            self.assertEqual([hits[name]["sessions"] for name in hits], [0, 5, 0])
            self.assertEqual(hits["rule 2"]["bytes"], 20 * 42)
            self.assertEqual([hits[name]["line"] for name in hits], [2, 3, 0])
            self.assertEqual([hits[name]["action"] for name in hits], ["deny", "permit", "deny"])

            with open(rules, "a", encoding="utf-8") as file:
                file.write("R198.18.1.0/24 198.18.2.0/24 0 : 65535 80 : 70 6/0xff 1\n")
            answer = cachewire.control(command="reload")
            self.assertFalse(answer["ok"])
            self.assertIn(f"{rules}:4:45: error: '70' is wrong", answer["diagnostics"][0])
            self.assertEqual(cachewire.ask("/cachewire/acl/list")["0"]["rules"], 2)

            with open(rules, "w", encoding="utf-8") as file:
                file.write(line("R", "198.18.1.0/24", "198.18.2.0/24", 53, "17", "1"))
            self.assertTrue(cachewire.control(command="reload")["ok"])
            hits = self.hits(cachewire)
            self.assertEqual([hits[name]["packets"] for name in hits], [20, 3])
            self.assertEqual(cachewire.stop().status, 0)

    def test_a_dry_run_says_which_sessions_would_turn_and_changes_nothing(self):
        folder = self.folder()
        p.write_pcap(f"{folder}/in.pcap", [udp(port, 1000 + n) for n in range(30) for port in (53, 123)])
        permit = [{"name": "dns", "action": "permit", "proto": "udp", "dst_ports": 53}, {"name": "ntp", "action": "permit", "proto": "udp", "dst_ports": 123}]
        config = with_list({"stateful": True, "rules": permit}, f"net_pcap0,rx_pcap={folder}/in.pcap", "net_null1,no-rx=1")
        config["sessions"]["timeouts"] = {"new": "1h"}
        with Cachewire(config, folder=folder) as cachewire:
            cachewire.wait_received(60)
            config["acl"][0]["rules"][1]["action"] = "deny"
            cachewire.write(config)
            answer = cachewire.control(command="reload", dry_run=True)
            self.assertTrue(answer["ok"], answer)
            preview = answer["preview"]
            self.assertEqual({key: preview[key] for key in ("sessions", "would_change", "to_deny", "to_permit", "complete")},
                             {"sessions": 60, "would_change": 30, "to_deny": 30, "to_permit": 0, "complete": True})
            self.assertEqual([(rule["list"], rule["action"], rule["sessions"]) for rule in preview["rules"]], [("edge", "deny", 30)])
            self.assertTrue(preview["rules"][0]["rule"].startswith("ntp (line "))
            self.assertEqual(cachewire.ask("/cachewire/info")["config_generation"], 1)
            said = subprocess.run([CWCTL, "-p", cachewire.prefix, "reload", "--dry-run"], check=True, capture_output=True, timeout=harness.PATIENCE)
            self.assertIn("30 of 60 live sessions would change verdict: 30 to deny, 0 to permit", said.stdout.decode())
            self.assertEqual(cachewire.stop().status, 0)

    def test_a_list_that_does_not_fit_leaves_the_old_one(self):
        folder = self.folder()
        rules = os.path.join(folder, "edge.rules")
        with open(rules, "w", encoding="utf-8") as file:
            file.write(line("R", "0.0.0.0/0", "0.0.0.0/0", 53, "17", "1"))
        p.write_pcap(f"{folder}/in.pcap", [udp(53)])
        config = with_list({"file": "edge.rules", "format": "l3fwd-acl"}, f"net_pcap0,rx_pcap={folder}/in.pcap,infinite_rx=1", "net_null1,no-rx=1")
        config["sessions"]["capacity"] = 1024
        with Cachewire(config, folder=folder, eal=["--no-huge", "-m", "64"]) as cachewire:
            cachewire.wait_received(1)
            with open(rules, "a", encoding="utf-8") as file:
                for n in range(200000):
                    file.write(line("@", f"{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}.7/32", "0.0.0.0/0", 53, "17"))
            answer = cachewire.control(command="reload")
            self.assertFalse(answer["ok"])
            self.assertIn("acl edge: 200000 rules for IPv4: no memory", answer["error"])
            self.assertEqual(cachewire.ask("/cachewire/acl/list")["0"]["rules"], 1)
            sent = cachewire.ask("/cachewire/ledger")["tx"]
            cachewire.wait("traffic goes on", lambda c: c.ask("/cachewire/ledger")["tx"] > sent + 1000)
            self.assertEqual(cachewire.ask("/cachewire/drops")["total"], 0)
            self.assertEqual(cachewire.stop().status, 0)

    def test_a_refusal_is_answered(self):
        folder = self.folder()
        tcp = p.ether(MAC[0], HOST[0], p.tcp_packet("198.18.1.9", "198.18.2.9", 1000, 80))
        p.write_pcap(f"{folder}/in.pcap", [udp(53), tcp])
        config = with_list({"rules": [{"action": "reject"}]}, f"net_pcap0,rx_pcap={folder}/in.pcap,tx_pcap={folder}/out.pcap", "net_null1,no-rx=1")
        with Cachewire(config, folder=folder) as cachewire:
            cachewire.wait("both answers", lambda c: c.ask("/cachewire/ledger")["tx"] == 2)
            drops = cachewire.ask("/cachewire/drops")
            self.assertEqual((drops["acl_deny"], drops["total"]), (2, 2))
            ledger = cachewire.ask("/cachewire/ledger")
            self.assertEqual(ledger["originated"], 2)
            self.assert_closed(ledger)
            self.assertEqual(cachewire.stop().status, 0)
        answers = p.read_pcap(f"{folder}/out.pcap")
        self.assertEqual(sorted(frame[23] for frame in answers), [1, 6])
        icmp = next(frame for frame in answers if frame[23] == 1)
        self.assertEqual((icmp[34], icmp[35]), (3, 13))  # RFC 1812 5.2.7.1: communication administratively prohibited
        reset = next(frame for frame in answers if frame[23] == 6)
        self.assertEqual(reset[47] & 0x04, 0x04)

    def test_a_rule_on_the_egress(self):
        rules = [{"action": "permit", "in": "i0", "out": "i1"}]
        out, drops, _ = self.forward([udp(53)], [p.ether(MAC[1], HOST[1], p.udp_packet("198.18.2.9", "198.18.1.9", 53, 1000))],
                                     config=lambda *devices: with_list({"rules": rules}, *devices))
        self.assertEqual([len(frames) for frames in out], [0, 1])
        self.assertEqual(drops, {"acl_default": 1})

    def test_import_writes_a_list_that_loads(self):
        folder = self.folder()
        path = os.path.join(folder, "rule_ipv4.db")
        with open(path, "w", encoding="utf-8") as file:
            file.write(line("@", "10.0.0.0/8", "0.0.0.0/0", 80, "6") + line("R", "10.0.0.0/8", "0.0.0.0/0", 443, "6", "1") + "nonsense\n")
        imported = harness.run("import", "l3fwd-acl", path)
        self.assertEqual(imported.status, 1, imported)
        self.assertIn(f"{path}:3:1: error:", imported.stderr)
        with open(os.path.join(folder, "c.yaml"), "w", encoding="utf-8") as file:
            file.write("version: 1\nports: [{name: wan, device: net_null0}]\n" + imported.stdout)
        checked = harness.run("check", os.path.join(folder, "c.yaml"))
        self.assertEqual(checked.status, 0, checked)
        self.assertIn("1 list with 2 rules", checked.stdout)


if __name__ == "__main__":
    harness.main()
