// SPDX-License-Identifier: BSD-3-Clause
#include "support/catch.h"
#include "wrong_files.h"

namespace {

using cachewire::test::kPort;
using cachewire::test::kRouter;
using cachewire::test::WrongFile;

// Text behind the prefix, and every error that it has, in order.
const WrongFile kWrongForms[] = {
    {"", "", "f.yaml: error: is empty; needed at least: version, ports and interfaces\n"},
    {"", "# nothing\n", "f.yaml: error: is empty; needed at least: version, ports and interfaces\n"},
    {"", "- a\n", "f.yaml:1:1: error: is a list; allowed: a map of keys\n"},
    {"", "just text\n", "f.yaml:1:1: error: is a single value; allowed: a map of keys\n"},
    {"", "a: b: c\n", "f.yaml:1:5: error: not YAML: illegal map value\n"},
    // Brackets too few or too many: which one, and where.
    {"", "ports: [{name: a, device: net_null0]\n",
     "f.yaml:1:36: error: a ']' where the '{' of line 1, column 9 is still open; allowed: ',' or '}'\n"},
    {"", "ports: [{name: a, device: \"net_null0],]\"}\n", "f.yaml:1:8: error: the '[' is never closed\n"},
    {"", "ports: [{name: a, device: net_null0}]]\n", "f.yaml:1:38: error: a ']' that closes nothing\n"},
    {"", "ports: [{name: a, device: net_null0}}]\n",
     "f.yaml:1:37: error: a '}' where the '[' of line 1, column 8 is still open; allowed: ',' or ']'\n"},
    {"", "ports:\n  - {name: a, device: net_null0\n  - {name: b, device: net_null1}\n",
     "f.yaml:3:5: error: not YAML where the '{' of line 2, column 5 is still open; allowed: ',' or '}'\n"},
    {"", "ports:\n  - {name: a, device: net_null0}}\n  - {name: b, device: net_null1}\n",
     "f.yaml:2:33: error: a '}' that closes nothing\n"},
    {"", "{\"version\": 1, \"ports\": [{\"name\": \"it's\"}\n", "f.yaml:1:25: error: the '[' is never closed\n"},
    {"", "version: 1\r\nports: []\r\n",
     "f.yaml:1:11: error: a carriage return; allowed: lines that end in LF (dos2unix FILE)\n"},
    {"", "\357\273\277BOM", "f.yaml:1:1: error: a byte order mark; allowed: UTF-8 without one\n"},
    {"", "version: 1\nports:\n\t- a\n", "f.yaml:3:1: error: a tab in the indentation; allowed: spaces\n"},
    {"", "version: 1\n\001", "f.yaml:2:1: error: byte 0x01 is not text; allowed: UTF-8 text\n"},
    {"", "version: \377\n", "f.yaml:1:10: error: byte 0xff is not UTF-8; allowed: UTF-8 text\n"},
    {"", "version: 1\nports: &p [*p]\n", "f.yaml:2:12: error: an alias inside the value that it stands for\n"},
    {"", "---\nversion: 1\n---\nversion: 1\n",
     "f.yaml:3:1: error: a second document starts here; allowed: one document in a file\n"},
    {"", "version: !!int 1\n", "f.yaml:1:10: error: tags are not used here; write the value without one\n"},
    {kPort, "<<: {mtu: 1}\n",
     "f.yaml:3:1: error: <<: merging is not allowed; what tenants have in common belongs into `defaults: {tenant: "
     "{...}}`\n"},
    {kPort, "? [a]\n: b\n", "f.yaml:3:3: error: a key that is a list; allowed: a word\n"},
    {kPort, "prots: []\n", "f.yaml:3:1: error: prots: unknown key; did you mean 'ports'?\n"},
    {kPort, "zzz: 1\n",
     "f.yaml:3:1: error: zzz: unknown key; allowed: version, include, defaults, eal, workers, memory, pipeline, ports, "
     "cross_connects, tenants, interfaces, neighbors, routes, kernel, acl, sessions, qos, description\n"},
    {kPort, "ports: []\n", "f.yaml:3:1: error: ports: this key stands twice\n"},
    {kPort, "description: [a]\n", "f.yaml:3:14: error: description: is a list; allowed: text\n"},
    {kPort, "description: a\ndescription: b\n", "f.yaml:4:1: error: description: this key stands twice\n"},
    {"", "ports: [{name: wan, device: net_null0}]\n", "f.yaml:1:1: error: version: this key is missing\n"},
    {"", "version: 2\nports: [{name: wan, device: net_null0}]\n",
     "f.yaml:1:10: error: version: '2' is not known, only 1 is\n"},
    {"", "version: '1'\nports: [{name: wan, device: net_null0}]\n",
     "f.yaml:1:10: error: version: '1' is quoted and so is text, not a number; allowed: 1\n"},
    {"", "version: 1\n", "f.yaml:1:1: error: ports: this key is missing\n"},
    {"", "version: 1\nports: []\n", "f.yaml:2:8: error: ports: no port; allowed: at least one\n"},
    {"", "version: 1\nports: wan\n", "f.yaml:2:8: error: ports: is a single value; allowed: a list\n"},
    {"", "version: 1\nports: {wan: net_null0}\n", "f.yaml:2:8: error: ports: is a map; allowed: a list\n"},
    {"", "version: 1\nports: [wan]\n", "f.yaml:2:9: error: ports[0]: is a single value; allowed: a map of keys\n"},
    {"", "version: 1\nports:\n", "f.yaml:2:1: error: ports: has no value; allowed: a list\n"},
    {kPort, "defaults: {service: {}}\n", "f.yaml:3:12: error: defaults.service: not supported yet\n"},
    {kPort, "user: none\n", "f.yaml:3:1: error: user: not supported yet\n"},
    {kPort, "nat: []\n", "f.yaml:3:1: error: nat: not supported yet\n"},
    {kPort, "pools: []\n", "f.yaml:3:1: error: pools: not supported yet\n"},
    {kPort, "services: []\n", "f.yaml:3:1: error: services: not supported yet\n"},
    {kPort, "capture: []\n", "f.yaml:3:1: error: capture: not supported yet\n"},
    {kPort, "telemetry: {}\n", "f.yaml:3:1: error: telemetry: not supported yet\n"},
    {kPort, "pipeline: {metadata: mbuf}\n",
     "f.yaml:3:22: error: pipeline.metadata: 'mbuf' is not known; allowed: session | mbuf_dynfield\n"},
    {kPort, "workers: {idle: sleepy}\n",
     "f.yaml:3:17: error: workers.idle: 'sleepy' is not known; allowed: poll | adaptive\n"},
    {kPort, "workers: {placement: stric}\n",
     "f.yaml:3:22: error: workers.placement: 'stric' is not known; allowed: strict | warn | ignore\n"},
    {kPort, "sessions: {state_file: none}\n", "f.yaml:3:12: error: sessions.state_file: not supported yet\n"},
    {"", "version: 1\nports: [{name: wan, device: net_null0, admin: on}]\n",
     "f.yaml:2:47: error: ports[0].admin: 'on' is not known; allowed: up | down\n"},
    {kPort, "interfaces: [{port: wan, mss_clamp: 100}]\n",
     "f.yaml:3:37: error: interfaces[0].mss_clamp: '100' is out of range; allowed: 536 to 65495\n"},
    {kPort, "tenants: [{name: red, id: 1, rpf: feasible}]\n",
     "f.yaml:3:35: error: tenants[0].rpf: 'feasible' is not known; allowed: none | loose | strict\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, capture: a}]}]\n",
     "f.yaml:3:49: error: acl[0].rules[0].capture: there are no capture subscriptions to name yet; not supported "
     "yet\n"},
    {kPort, "acl: [{name: a, file: x.rules}]\n", "f.yaml:3:7: error: acl[0].format: this key is missing\n"},
    {kPort, "acl: [{name: a, format: classbench}]\n",
     "f.yaml:3:25: error: acl[0].format: there is no `file` that has it; allowed: beside `file`\n"},
    {kPort, "qos: {policers: [{name: p, rate: 2Mpps}]}\n",
     "f.yaml:3:34: error: qos.policers[0].rate: '2Mpps': packets a second are not supported yet; allowed: 8kbit to "
     "1Tbit, in bit, kbit, Mbit, Gbit or Tbit\n"},
    {kRouter, "routes: [{prefix: 10.0.0.0/8, action: reject}]\n",
     "f.yaml:4:39: error: routes[0].action: 'reject' is not known; allowed: drop\n"},
    {"", "version: 1\nports: [{name: wan, device: 'kernel:'}]\n",
     "f.yaml:2:29: error: ports[0].device: 'kernel:' is not a device; allowed: a Linux interface such as "
     "\"kernel:eth1\", a PCI address such as \"0000:03:00.0\", or a vdev such as \"net_tap0,iface=cw0\"\n"},
    {"", "version: 1\nports: [{name: wan, device: 'kernel:a,b'}]\n",
     "f.yaml:2:29: error: ports[0].device: 'kernel:a,b' is not a device; allowed: a Linux interface such as "
     "\"kernel:eth1\", a PCI address such as \"0000:03:00.0\", or a vdev such as \"net_tap0,iface=cw0\"\n"},
    {"", "version: 1\nports: [{name: a, device: 'kernel:eth1'}, {name: b, device: 'kernel:eth1'}]\n",
     "f.yaml:2:61: error: ports[1].device: device 'kernel:eth1' is port 'a' already\n"},
};

}  // namespace

TEST_CASE("config: what is no configuration, unknown keys and keys of later versions are refused", "[config]") {
    for (const WrongFile& wrong : kWrongForms) {
        CAPTURE(wrong.text);
        CHECK(cachewire::test::errors_of(wrong) == wrong.errors);
    }
}
