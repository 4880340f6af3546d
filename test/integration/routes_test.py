#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Routes from files, reloads of them, drop routes and ECMP, as a user meets them."""
import collections
import os

import harness
import packets as p
from harness import HOST, MAC, Cachewire, router

SINK = "net_null{},no-rx=1"


def to_router(packet):
    return p.ether(MAC[0], HOST[0], packet)


class Routes(harness.Case):
    def write(self, folder, name, text):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def files(self, **texts):
        folder = self.folder()
        for name, text in texts.items():
            self.write(folder, name + ".txt", text)
        return folder

    def config(self, *routes):
        config = router(SINK.format(0), SINK.format(1))
        config["routes"] += routes
        return config

    def test_every_error_of_a_file_is_named_with_its_place(self):
        folder = self.files(
            prefixes="# comment\n10.9.0.0/16 via 10.1.0.2\n10.9.0.0/33 via 10.1.0.2\n10.9.0.1/16 via 10.1.0.2\n10.10.0.0/16 via 10.9.9.9\n"
                     "10.11.0.0/16 via 10.9.9.9\n10.12.0.0/16 to 10.1.0.2\n10.9.0.0/16 drop\n2001:db8:5::/48 via 10.1.0.2\n198.18.1.0/24 via 10.2.0.2\n",
            l3fwd="R10.20.0.0/16 0\nR10.21.0.0/16 7\nL10.22.0.0/16 0\nR10.23.0.0/16 x\nR1.2.3.4 5.6.7.8 1 2 0x06 0\n")
        cachewire = Cachewire(self.config({"file": "prefixes.txt", "format": "prefixes"}, {"file": "l3fwd.txt", "format": "l3fwd"},
                                          {"file": "absent.txt", "format": "l3fwd"}, {"file": "l3fwd.txt", "format": "frr"}), folder=folder)
        result = harness.run("check", cachewire.config_path)
        self.assertEqual(result.status, 1, result)
        errors = sorted(line.replace(folder + "/", "") for line in result.stderr.splitlines() if line.startswith(folder) and ".txt:" in line.split(" ")[0])
        for expected in ("prefixes.txt:3:1: error: '10.9.0.0/33' is not a prefix", "prefixes.txt:4:1: error: '10.9.0.1/16' has host bits set",
                         "prefixes.txt:5:18: error: 10.9.9.9 is on no connected network", "prefixes.txt:7:14: error: not a route",
                         "prefixes.txt:8:1: error: a second route to 10.9.0.0/16; the first stands in line 2",
                         "prefixes.txt:9:21: error: 2001:db8:5::/48 and '10.1.0.2' are of different families",
                         "prefixes.txt:10:1: error: a second route to 198.18.1.0/24", "l3fwd.txt:2:15: error: port 7, and the configuration has 2",
                         "l3fwd.txt:3:1: error: 'L10.22.0.0/16' does not begin with R", "l3fwd.txt:4:15: error: 'x' is not a port number",
                         "l3fwd.txt:5:2: error: a 5-tuple"):
            self.assertEqual(sum(error.startswith(expected) for error in errors), 1, (expected, errors))
        self.assertEqual(len(errors), 11, errors)
        self.assertIn("routes[6].file", result.stderr)
        self.assertIn("absent.txt", result.stderr)

    def test_a_reload_reads_the_files_again(self):
        folder = self.files(a="10.9.0.0/16 via 10.1.0.2\n2001:db8:5::/48 via 2001:db8:2::2\n10.10.0.0/16 drop\n", b="R10.11.0.0/16 1\n")
        with Cachewire(self.config({"file": "a.txt", "format": "prefixes"}, {"file": "b.txt", "format": "l3fwd"}), folder=folder) as cachewire:
            cachewire.wait_running()

            def look(address):
                answer = cachewire.ask(f"/cachewire/route/lookup,default,{address}")
                return answer["action"], answer.get("prefix"), answer.get("via"), answer.get("port")

            self.assertEqual(look("10.9.1.1"), ("forward", "10.9.0.0/16", "10.1.0.2", "p0"))
            self.assertEqual(look("2001:db8:5::1"), ("forward", "2001:db8:5::/48", "2001:db8:2::2", "p1"))
            self.assertEqual(look("10.10.1.1")[0], "drop")
            self.assertEqual(look("10.11.1.1"), ("forward", "10.11.0.0/16", "10.2.0.2", "p1"))
            self.assertEqual(look("10.12.1.1")[0], "no_route")
            before = cachewire.ask("/cachewire/route/stats")
            self.assertEqual((before["static"], before["routes_v6"]), (8, 2 + 2 + 2 + 2 + 1))
            # 5000 more: another form of the table.
            self.write(folder, "b.txt", "".join(f"R100.{n // 256}.{n % 256}.0/24 {n % 2}\n" for n in range(5000)))
            self.assertTrue(cachewire.control(command="reload")["ok"])
            self.assertEqual(look("100.19.135.1"), ("forward", "100.19.135.0/24", "10.2.0.2", "p1"))
            self.assertEqual(look("10.11.1.1")[0], "no_route")
            self.assertEqual(cachewire.ask("/cachewire/route/stats")["static"], 7 + 5000)
            self.assertEqual(cachewire.ask("/cachewire/route/stats,default")["form_v4"], "fib")
            self.write(folder, "b.txt", "R10.11.0.0/16 2\n")
            refused = cachewire.control(command="reload")
            self.assertFalse(refused["ok"])
            self.assertEqual(look("100.19.135.1")[0], "forward")
            self.assertEqual(cachewire.stop().status, 0)

    def test_what_is_imported_from_l3fwd_is_a_configuration(self):
        folder = self.files(rules="# comment\nR198.18.0.0/24 0\nR198.18.1.0/24 1\nR2001:200::/48 1\nR198.18.1.0/24 0\nR1.2.3.4 5.6.7.8 1 2 0x06 0\nR10.0.0.0/8 99\n")
        result = harness.run("import", "l3fwd", f"{folder}/rules.txt")
        self.assertEqual(result.status, 1, result)  # not all of it
        self.assertEqual([line.replace(folder + "/", "").split(": left out: ")[0] for line in result.stderr.splitlines()], ["rules.txt:5:16", "rules.txt:6:2", "rules.txt:7:13"])
        with Cachewire(result.stdout) as cachewire:
            cachewire.wait_running()
            for address, port in (("198.18.0.9", "port0"), ("198.18.1.9", "port1"), ("2001:200::9", "port1")):
                answer = cachewire.ask(f"/cachewire/route/lookup,default,{address}")
                self.assertEqual((answer["action"], answer["port"], answer["mac"]), ("forward", port, f"02:00:00:00:00:0{port[-1]}"))

    def test_ecmp_by_weight_and_a_flow_stays(self):
        other = "02:00:00:00:02:77"
        flows = 2000

        def config(left, right):
            made = router(left, right)
            made["neighbors"].append({"address": "10.2.0.3", "mac": other})
            made["routes"].append({"prefix": "203.0.113.0/24", "via": ["10.2.0.2", {"address": "10.2.0.3", "weight": 3}]})
            made["routes"].append({"prefix": "203.0.113.128/25", "action": "drop"})
            return made

        frames = [to_router(p.udp_packet("198.18.1.9", "203.0.113.9", 1024 + n, 53, b"x")) for n in list(range(flows)) * 2]
        frames += [to_router(p.udp_packet("198.18.1.9", "203.0.113.200", 1, 2, b"x"))] * 10
        out, drops, _ = self.forward(frames, config=config)
        self.assertEqual(drops, {"route_drop": 10})
        self.assertEqual(len(out[1]), 2 * flows)
        self.assertEqual([frame[:6] for frame in out[1][:flows]], [frame[:6] for frame in out[1][flows:]])
        share = collections.Counter(frame[:6] for frame in out[1][:flows])[bytes.fromhex(other.replace(":", ""))] / flows
        self.assertLess(abs(share - 0.75), 0.06, share)  # six standard deviations


if __name__ == "__main__":
    harness.main()
