// SPDX-License-Identifier: BSD-3-Clause
#include "support/catch.h"
#include "wrong_files.h"

namespace {

using cachewire::test::kPort;
using cachewire::test::kRouter;
using cachewire::test::WrongFile;

// Text behind the prefix, and every error that it has, in order.
const WrongFile kWrongObjects[] = {
    {kPort, "tenants: [{name: red, id: 1, match: [{port: wam}]}]\n",
     "f.yaml:3:45: error: tenants[0].match[0].port: no port is named 'wam'; did you mean 'wan'?\n"},
    {kPort, "tenants: [{name: red, id: 1, match: [{port: wan, vlan: 010}]}]\n",
     "f.yaml:3:56: error: tenants[0].match[0].vlan: '010' has a leading zero, octal to some readers; allowed: 0 to "
     "4094\n"},
    {kPort, "tenants: [{name: red, id: 1, match: [{port: wan, vlan: 4095}]}]\n",
     "f.yaml:3:56: error: tenants[0].match[0].vlan: '4095' is out of range; allowed: 0 to 4094\n"},
    {kPort, "tenants: [{name: red, id: 1, match: [{port: wan, inner_vlan: 5}]}]\n",
     "f.yaml:3:62: error: tenants[0].match[0].inner_vlan: an inner tag without an outer one; allowed: beside `vlan` "
     "from 1 to 4094\n"},
    {kPort, "tenants: [{name: red, id: 1, match: [{port: wan, vlan: 0, inner_vlan: 5}]}]\n",
     "f.yaml:3:71: error: tenants[0].match[0].inner_vlan: an inner tag without an outer one; allowed: beside `vlan` "
     "from 1 to 4094\n"},
    {kPort, "tenants: [{name: red, id: 1, match: [{port: wan}, {port: wan}]}]\n",
     "f.yaml:3:51: error: tenants[0].match[1]: tenant 'red' matches the same already\n"},
    {kPort, "tenants: [{name: red, id: 1, acl: edge}]\n",
     "f.yaml:3:35: error: tenants[0].acl: no acl is named 'edge'; known: none\n"},
    {kPort, "tenants: [{name: red, id: 1, policer: {in: p}}]\n",
     "f.yaml:3:44: error: tenants[0].policer.in: no policer is named 'p'; known: none\n"},
    {kPort, "tenants: []\n", "f.yaml:3:10: error: tenants: no tenant; allowed: at least one, or no `tenants` at all\n"},
    {kPort, "tenants: [{name: default, id: 1}]\n",
     "f.yaml:3:18: error: tenants[0].name: 'default' is the tenant of files without `tenants`; allowed: another "
     "name\n"},
    {kPort, "tenants: [{name: red}]\n", "f.yaml:3:11: error: tenants[0].id: this key is missing\n"},
    {kPort, "tenants: [{name: red, id: 0}]\n",
     "f.yaml:3:27: error: tenants[0].id: '0' is out of range; allowed: 1 to 65535\n"},
    {kPort,
     "tenants:\n  - {name: red, id: 1, match: [{port: wan, vlan: 5}]}\n  - {name: blue, id: 1, match: [{port: wan, "
     "vlan: 5}]}\n",
     "f.yaml:5:22: error: tenants[1].id: 1 is the id of tenant 'red' already\n"
     "f.yaml:5:33: error: tenants[1].match[0]: tenant 'red' matches the same already\n"},
    {kPort, "tenants:\n  - {name: red, id: 1}\n  - {name: red, id: 2}\n",
     "f.yaml:5:12: error: tenants[1].name: a second tenant named 'red'; the first stands in line 4\n"},
    {kPort, "acl: [{name: a, stateful: true}]\ntenants: [{name: red, id: 1, acl: a, sessions: none}]\n",
     "f.yaml:4:48: error: tenants[0].sessions: tenant 'red' has a stateful list, which needs sessions; allowed: "
     "track\n"},
    {kPort, "acl: [{name: a, stateful: true}]\ntenants: [{name: red, id: 1, acl: a, sessions: cache}]\n",
     "f.yaml:4:48: error: tenants[0].sessions: tenant 'red' has a stateful list, which needs sessions; allowed: "
     "track\n"},
    {kPort, "tenants: [{name: red, id: 1, sessions: on}]\n",
     "f.yaml:3:40: error: tenants[0].sessions: 'on' is not known; allowed: track | cache | none\n"},
    {kPort, "tenants: [{name: red, id: 1, midstream: permit}]\n",
     "f.yaml:3:41: error: tenants[0].midstream: 'permit' is not known; allowed: deny | allow\n"},
    {kPort, "tenants: [{name: red, id: 1, quota: {sessions: 0, new_sessions_per_second: 2k, rate: 1}}]\n",
     "f.yaml:3:48: error: tenants[0].quota.sessions: '0' is out of range; allowed: 1 to 268435456\n"
     "f.yaml:3:76: error: tenants[0].quota.new_sessions_per_second: '2k' is not a number; allowed: 1 to "
     "1000000000\n"
     "f.yaml:3:80: error: tenants[0].quota.rate: unknown key; allowed: sessions, new_sessions_per_second, "
     "description\n"},
    {kPort, "tenants: [{name: red, id: 1, quota: 5}]\n",
     "f.yaml:3:37: error: tenants[0].quota: is a single value; allowed: a map of keys\n"},
    {kPort, "sessions: {high_watermark: 0%, on_full: evict, timeouts: {new: 500ms, icmp: 10, closed: 1.5s}}\n",
     "f.yaml:3:28: error: sessions.high_watermark: '0%' is out of range; allowed: 1% to 100%\n"
     "f.yaml:3:41: error: sessions.on_full: 'evict' is not known; allowed: evict_embryonic | deny_new\n"
     "f.yaml:3:64: error: sessions.timeouts.new: '500ms' is out of range; allowed: 1s to 365d in whole seconds, in s, "
     "m, h or d\n"
     "f.yaml:3:77: error: sessions.timeouts.icmp: '10' has no unit; allowed: 1s to 365d in whole seconds, in s, m, h "
     "or d\n"
     "f.yaml:3:89: error: sessions.timeouts.closed: '1.5s' is out of range; allowed: 1s to 365d in whole seconds, in "
     "s, m, h or d\n"},
    {kPort, "sessions: {high_watermark: 101%}\n",
     "f.yaml:3:28: error: sessions.high_watermark: '101%' is out of range; allowed: 1% to 100%\n"},
    {kPort, "sessions: {high_watermark: 90}\n",
     "f.yaml:3:28: error: sessions.high_watermark: '90' has no unit; allowed: 1% to 100%\n"},
    {kPort, "sessions: {timeouts: {time_wait: 366d, syn: 5s}}\n",
     "f.yaml:3:34: error: sessions.timeouts.time_wait: '366d' is out of range; allowed: 1s to 365d in whole "
     "seconds, in s, m, h or d\n"
     "f.yaml:3:40: error: sessions.timeouts.syn: unknown key; allowed: new, established_udp, established_tcp, "
     "half_close, time_wait, closed, icmp, description\n"},
    {kPort, "interfaces: [{port: wan, vlan: 0}]\n",
     "f.yaml:3:32: error: interfaces[0].vlan: '0' is out of range; allowed: 1 to 4094\n"},
    {kPort, "interfaces: [{port: wan, vlan: 010}]\n",
     "f.yaml:3:32: error: interfaces[0].vlan: '010' has a leading zero, octal to some readers; allowed: 1 to 4094\n"},
    {kPort, "interfaces: [{port: wan, inner_vlan: 3}]\n",
     "f.yaml:3:38: error: interfaces[0].inner_vlan: an inner tag without an outer one; allowed: beside `vlan`\n"},
    {kPort, "interfaces: [{port: wan, mtu: 9000}]\n",
     "f.yaml:3:31: error: interfaces[0].mtu: 9000 is more than its port's 1500; allowed: 68 to 1500\n"},
    {kPort, "interfaces: [{port: wan, addresses: 192.0.2.1/24}]\n",
     "f.yaml:3:37: error: interfaces[0].addresses: is a single value; allowed: a list\n"},
    {kPort, "interfaces: [{port: wan, addresses: [192.0.2.1]}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '192.0.2.1' has no prefix length; allowed: 192.0.2.1/32 for this "
     "one address\n"},
    {kPort, "interfaces: [{port: wan, addresses: [192.0.2.0/24]}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '192.0.2.0/24' is the network's own address; allowed: a host's "
     "address\n"},
    {kPort, "interfaces: [{port: wan, addresses: [192.0.2.255/24]}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '192.0.2.255/24' is the network's broadcast address; allowed: a "
     "host's address\n"},
    {kPort, "interfaces: [{port: wan, addresses: [127.0.0.1/8]}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '127.0.0.1/8' is a loopback address; allowed: a host's "
     "address\n"},
    {kPort, "interfaces: [{port: wan, addresses: [224.0.0.1/4]}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '224.0.0.1/4' is a multicast or reserved address; allowed: a "
     "host's address\n"},
    {kPort, "interfaces: [{port: wan, addresses: [0.0.0.1/8]}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '0.0.0.1/8' is in 0.0.0.0/8; allowed: a host's address\n"},
    {kPort, "interfaces: [{port: wan, addresses: ['::ffff:192.0.2.1/120']}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '::ffff:192.0.2.1/120' is an IPv4-mapped IPv6 address; write the "
     "IPv4 address\n"},
    {kPort, "interfaces: [{port: wan, addresses: ['2001:db8::/64']}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '2001:db8::/64' is the network's anycast address; allowed: a "
     "host's address\n"},
    {kPort, "interfaces: [{port: wan, addresses: ['fe80::1/64']}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: 'fe80::1/64' is a link-local address, which is not supported "
     "yet; allowed: a host's address\n"},
    {kPort, "interfaces: [{port: wan, addresses: ['::1/128']}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '::1/128' is the loopback address; allowed: a host's address\n"},
    {kPort, "interfaces: [{port: wan, addresses: ['ff02::1/64']}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: 'ff02::1/64' is a multicast address; allowed: a host's "
     "address\n"},
    {kPort, "interfaces: [{port: wan, addresses: [10.1/8]}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '10.1/8' is not a prefix; allowed: ADDRESS/LENGTH such as "
     "192.0.2.1/24 or 2001:db8::1/64\n"},
    {kPort, "interfaces: [{port: wan, addresses: [010.0.0.1/8]}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '010.0.0.1/8' is not a prefix; allowed: ADDRESS/LENGTH such as "
     "192.0.2.1/24 or 2001:db8::1/64\n"},
    {kPort, "interfaces: [{port: wan, addresses: [10.0.0.1/33]}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '10.0.0.1/33' has a length that is none; allowed: /0 to /32\n"},
    {kPort, "interfaces: [{port: wan, addresses: [\"2001:db8::1/129\", 10.0.0.1/x]}]\n",
     "f.yaml:3:38: error: interfaces[0].addresses[0]: '2001:db8::1/129' has a length that is none; allowed: /0 to "
     "/128\n"
     "f.yaml:3:57: error: interfaces[0].addresses[1]: '10.0.0.1/x' has a length that is none; allowed: /0 to /32\n"},
    {kPort, "interfaces: [{port: wan, addresses: [10.0.0.1/8, 10.0.0.1/8]}]\n",
     "f.yaml:3:50: error: interfaces[0].addresses[1]: 10.0.0.1 is in use already, in line 3\n"},
    {kPort, "interfaces: [{port: wan, tenant: red}]\n",
     "f.yaml:3:34: error: interfaces[0].tenant: no tenant is named 'red'; known: default\n"},
    {kPort, "interfaces:\n  - {name: a, port: wan, vlan: 5}\n  - {name: b, port: wan, vlan: 5}\n",
     "f.yaml:5:5: error: interfaces[1]: wan.5 is interface 'a' already\n"},
    {kPort, "interfaces:\n  - {name: a, port: wan, vlan: 5}\n  - {name: a, port: wan, vlan: 6}\n",
     "f.yaml:5:12: error: interfaces[1].name: a second interface named 'a'; the first stands in line 4\n"},
    {kPort, "interfaces:\n  - {name: wan.5, port: wan}\n  - {port: wan, vlan: 5}\n",
     "f.yaml:5:5: error: interfaces[1]: a second interface named 'wan.5'; the first stands in line 4\n"},
    {kPort,
     "interfaces:\n  - {name: a, port: wan, vlan: 5, addresses: [10.0.0.1/8]}\n  - {name: b, port: wan, vlan: 6, "
     "addresses: [10.0.0.2/8]}\n",
     "f.yaml:5:47: error: interfaces[1].addresses[0]: network 10.0.0.0/8 is on interface 'a' already\n"},
    {kPort, "interfaces: [{name: a}]\n", "f.yaml:3:14: error: interfaces[0].port: this key is missing\n"},
    {kPort, "interfaces: [{port: wan, vlan: 7}]\ntenants: [{name: red, id: 1, match: [{port: wan, vlan: 5}]}]\n",
     "f.yaml:3:14: error: interfaces[0]: no tenant's match covers wan.7\n"},
    {kPort,
     "interfaces: [{port: wan, vlan: 5, tenant: blue}]\ntenants:\n  - {name: red, id: 1, match: [{port: wan, vlan: "
     "5}]}\n  - {name: blue, id: 2}\n",
     "f.yaml:3:43: error: interfaces[0].tenant: wan.5 belongs to tenant 'red' by its match\n"},
    {kPort,
     "tenants:\n  - {name: red, id: 1, match: [{port: wan, vlan: 5}]}\n  - {name: blue, id: 2, interfaces: [{port: "
     "wan, vlan: 5}]}\n",
     "f.yaml:5:38: error: tenants[1].interfaces[0]: wan.5 belongs to tenant 'red' by its match\n"},
    {kPort, "tenants:\n  - {name: red, id: 1, interfaces: [{port: wan, tenant: blue}]}\n  - {name: blue, id: 2}\n",
     "f.yaml:4:57: error: tenants[0].interfaces[0].tenant: stands in tenant 'red'; allowed: that name, or none\n"},
    {kRouter, "neighbors: [{address: 192.0.3.9, mac: '02:00:00:00:00:09'}]\n",
     "f.yaml:4:23: error: neighbors[0].address: 192.0.3.9 is on no connected network of tenant 'default'\n"},
    {kRouter, "neighbors: [{address: 192.0.2.1, mac: '02:00:00:00:00:09'}]\n",
     "f.yaml:4:23: error: neighbors[0].address: 192.0.2.1 is an address of our own, in f.yaml:3\n"},
    {kRouter, "neighbors: [{address: 192.0.2.255, mac: '02:00:00:00:00:09'}]\n",
     "f.yaml:4:23: error: neighbors[0].address: 192.0.2.255 is a network's own or its broadcast address; allowed: a "
     "host's address\n"},
    {kRouter, "routes: [{prefix: 10.0.0.0/8, via: 192.0.2.0}]\n",
     "f.yaml:4:36: error: routes[0].via: 192.0.2.0 is a network's own or its broadcast address; allowed: a host's "
     "address\n"},
    {kRouter, "neighbors: [{address: 192.0.2.9/24, mac: '02:00:00:00:00:09'}]\n",
     "f.yaml:4:23: error: neighbors[0].address: '192.0.2.9/24' is a prefix; allowed: an address without a length\n"},
    {kRouter, "neighbors: [{address: 192.0.2.9}]\n", "f.yaml:4:13: error: neighbors[0].mac: this key is missing\n"},
    {kRouter, "neighbors: [{tenant: red, address: 192.0.2.9, mac: '02:00:00:00:00:09'}]\n",
     "f.yaml:4:22: error: neighbors[0].tenant: no tenant is named 'red'; known: default\n"},
    {kRouter,
     "neighbors:\n  - {address: 192.0.2.9, mac: '02:00:00:00:00:09'}\n  - {address: 192.0.2.9, mac: "
     "'02:00:00:00:00:0a'}\n",
     "f.yaml:6:15: error: neighbors[1].address: a second neighbour 192.0.2.9; the first stands in line 5\n"},
    {kRouter, "routes: [{prefix: 10.1.2.3/8, via: 192.0.2.2}]\n",
     "f.yaml:4:19: error: routes[0].prefix: '10.1.2.3/8' has host bits set; allowed: the network, 10.0.0.0/8\n"},
    {kRouter, "routes: [{prefix: '2521:111::4/37', via: '2001:db8::2'}]\n",
     "f.yaml:4:19: error: routes[0].prefix: '2521:111::4/37' has host bits set; allowed: the network, 2521:111::/37\n"},
    {kRouter, "routes: [{prefix: '::/0', via: 192.0.2.2}]\n",
     "f.yaml:4:32: error: routes[0].via: ::/0 and 192.0.2.2 are of different families\n"},
    {kRouter, "routes: [{prefix: 0.0.0.0/0, via: '2001:db8::2'}]\n",
     "f.yaml:4:35: error: routes[0].via: 0.0.0.0/0 and 2001:db8::2 are of different families\n"},
    {kRouter, "routes: [{prefix: '::', via: '2001:db8::2'}]\n",
     "f.yaml:4:19: error: routes[0].prefix: '::' has no prefix length; allowed: ::/128 for this one address\n"},
    {kRouter, "routes: [{prefix: '::ffff:1.2.3.4/128', via: '2001:db8::2'}]\n",
     "f.yaml:4:19: error: routes[0].prefix: '::ffff:1.2.3.4/128' is an IPv4-mapped IPv6 address; write the IPv4 "
     "address\n"},
    {kRouter, "routes: [{prefix: 10.0.0.0/8, via: 198.51.100.1}]\n",
     "f.yaml:4:36: error: routes[0].via: 198.51.100.1 is on no connected network of tenant 'default'\n"},
    {kRouter, "routes: [{prefix: 10.0.0.0/8, via: 192.0.2.1}]\n",
     "f.yaml:4:36: error: routes[0].via: 192.0.2.1 is an address of our own, in f.yaml:3\n"},
    {kRouter, "routes: [{prefix: 10.0.0.0/8}]\n", "f.yaml:4:10: error: routes[0].via: this key is missing\n"},
    {kRouter, "routes: [{via: 192.0.2.2}]\n", "f.yaml:4:10: error: routes[0].prefix: this key is missing\n"},
    {kRouter, "routes: [{prefix: 10.0.0.0/8, via: nowhere}]\n",
     "f.yaml:4:36: error: routes[0].via: 'nowhere' is not an address; allowed: an IPv4 or IPv6 address\n"},
    {kRouter, "routes:\n  - {prefix: 10.0.0.0/8, via: 192.0.2.2}\n  - {prefix: 10.0.0.0/8, via: 192.0.2.3}\n",
     "f.yaml:6:14: error: routes[1].prefix: a second route to 10.0.0.0/8; the first stands in line 5\n"},
    {kPort,
     "tenants: [{name: red, id: 1, interfaces: [{port: wan, addresses: [192.0.2.1/24]}]}]\nroutes: [{prefix: "
     "10.0.0.0/8, via: 192.0.2.2}]\n",
     "f.yaml:4:10: error: routes[0].tenant: this key is missing\n"},
    {kPort,
     "tenants:\n  - {name: red, id: 1, interfaces: [{port: wan, addresses: [192.0.2.1/24]}]}\n  - {name: blue, id: 2, "
     "routes: [{prefix: 10.0.0.0/8, via: 192.0.2.2}]}\n",
     "f.yaml:5:60: error: tenants[1].routes[0].via: 192.0.2.2 is on no connected network of tenant 'blue'\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, in: lan}]}]\n",
     "f.yaml:3:44: error: acl[0].rules[0].in: no interface or port is named 'lan'; did you mean 'wan'?\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: tpc}]}]\n",
     "f.yaml:3:47: error: acl[0].rules[0].proto: 'tpc' is not known; allowed: tcp | udp | icmp | icmpv6 | sctp, or 0 "
     "to 255\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: 256}]}]\n",
     "f.yaml:3:47: error: acl[0].rules[0].proto: '256' is out of range; allowed: tcp | udp | icmp | icmpv6 | sctp, or "
     "0 to 255\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: 06}]}]\n",
     "f.yaml:3:47: error: acl[0].rules[0].proto: '06' has a leading zero, octal to some readers; allowed: tcp | udp | "
     "icmp | icmpv6 | sctp, or 0 to 255\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: tcp, dst_ports: 80-}]}]\n",
     "f.yaml:3:63: error: acl[0].rules[0].dst_ports: '' is not a number; allowed: a port or a range such as 80-443, "
     "from 0 to 65535\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: tcp, dst_ports: 443-80}]}]\n",
     "f.yaml:3:63: error: acl[0].rules[0].dst_ports: '443-80' ends before it begins; allowed: a port or a range such "
     "as 80-443, from 0 to 65535\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: tcp, dst_ports: 70000}]}]\n",
     "f.yaml:3:63: error: acl[0].rules[0].dst_ports: '70000' is out of range; allowed: a port or a range such as "
     "80-443, from 0 to 65535\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: tcp, dst_ports: 0800}]}]\n",
     "f.yaml:3:63: error: acl[0].rules[0].dst_ports: '0800' has a leading zero, octal to some readers; allowed: a port "
     "or a range such as 80-443, from 0 to 65535\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, dst_ports: 80}]}]\n",
     "f.yaml:3:51: error: acl[0].rules[0].dst_ports: ports need a protocol that has them; allowed: with proto tcp, udp "
     "or sctp\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: icmp, src_ports: 1}]}]\n",
     "f.yaml:3:64: error: acl[0].rules[0].src_ports: ports need a protocol that has them; allowed: with proto tcp, udp "
     "or sctp\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, tcp_flags: syn/syn}]}]\n",
     "f.yaml:3:51: error: acl[0].rules[0].tcp_flags: TCP flags need TCP; allowed: with proto tcp\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: tcp, tcp_flags: syn}]}]\n",
     "f.yaml:3:63: error: acl[0].rules[0].tcp_flags: 'syn' has no mask; allowed: SET/MASK such as \"syn/syn,ack\", of "
     "fin syn rst psh ack urg ece cwr, or none as SET\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: tcp, tcp_flags: 'syn/foo'}]}]\n",
     "f.yaml:3:63: error: acl[0].rules[0].tcp_flags: 'foo' is no TCP flag; allowed: SET/MASK such as \"syn/syn,ack\", "
     "of fin syn rst psh ack urg ece cwr, or none as SET\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: tcp, tcp_flags: 'syn/ack'}]}]\n",
     "f.yaml:3:63: error: acl[0].rules[0].tcp_flags: 'syn/ack' asks for a flag outside of its mask; allowed: SET/MASK "
     "such as \"syn/syn,ack\", of fin syn rst psh ack urg ece cwr, or none as SET\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: tcp, icmp: {type: 8}}]}]\n",
     "f.yaml:3:58: error: acl[0].rules[0].icmp: ICMP keys need ICMP; allowed: with proto icmp or icmpv6\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: icmp, icmp: {code: 0}}]}]\n",
     "f.yaml:3:59: error: acl[0].rules[0].icmp.type: this key is missing\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: icmp, icmp: {type: 256}}]}]\n",
     "f.yaml:3:66: error: acl[0].rules[0].icmp.type: '256' is out of range; allowed: 0 to 255\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, src: 10.0.0.0/8, dst: '2001:db8::/32'}]}]\n",
     "f.yaml:3:62: error: acl[0].rules[0].dst: `src` and `dst` are of different families\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, src: 10.0.0.1}]}]\n",
     "f.yaml:3:45: error: acl[0].rules[0].src: '10.0.0.1' has no prefix length; allowed: 10.0.0.1/32 for this one "
     "address\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, src: 10.0.0.1/8}]}]\n",
     "f.yaml:3:45: error: acl[0].rules[0].src: '10.0.0.1/8' has host bits set; allowed: the network, 10.0.0.0/8\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: icmp, dst: '::/0'}]}]\n",
     "f.yaml:3:47: error: acl[0].rules[0].proto: icmp is IPv4's and the prefix is IPv6; allowed: icmpv6\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: 58, src: 10.0.0.0/8}]}]\n",
     "f.yaml:3:47: error: acl[0].rules[0].proto: icmpv6 is IPv6's and the prefix is IPv4; allowed: icmp\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, dscp: 64}]}]\n",
     "f.yaml:3:46: error: acl[0].rules[0].dscp: '64' is out of range; allowed: 0 to 63, or a name such as ef, af11, "
     "cs6\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, dscp: af14}]}]\n",
     "f.yaml:3:46: error: acl[0].rules[0].dscp: 'af14' is not known; allowed: 0 to 63, or a name such as ef, af11, "
     "cs6\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, fragment: middle}]}]\n",
     "f.yaml:3:50: error: acl[0].rules[0].fragment: 'middle' is not known; allowed: none | first | later | any\n"},
    {kPort, "acl: [{name: a, rules: [{action: deny, proto: udp, dst_ports: 53, fragment: later}]}]\n",
     "f.yaml:3:63: error: acl[0].rules[0].dst_ports: later fragments have no L4 header; allowed: without `fragment: "
     "later`\n"},
    {kPort, "acl: [{name: a, rules: [{proto: tcp}]}]\n",
     "f.yaml:3:25: error: acl[0].rules[0].action: this key is missing\n"},
    {kPort, "acl: [{name: a, rules: [{name: r, action: deny}, {name: r, action: deny}]}]\n",
     "f.yaml:3:50: error: acl[0].rules[1]: a second rule named 'r'; the first stands in line 3\n"},
    {kPort, "acl: [{name: a}, {name: a}]\n",
     "f.yaml:3:25: error: acl[1].name: a second acl named 'a'; the first stands in line 3\n"},
};

}  // namespace

TEST_CASE("config: objects that contradict each other or refer to nothing are refused", "[config]") {
    for (const WrongFile& wrong : kWrongObjects) {
        CAPTURE(wrong.text);
        CHECK(cachewire::test::errors_of(wrong) == wrong.errors);
    }
}
