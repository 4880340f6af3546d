// SPDX-License-Identifier: BSD-3-Clause
#include "app/import.h"

#include <filesystem>
#include <fstream>

#include "config/load.h"
#include "support/catch.h"

namespace cachewire::app {

namespace {

std::string write(const std::string& name, const std::string& text) {
    const std::string path = (std::filesystem::temp_directory_path() / name).string();
    std::ofstream(path) << text;
    return path;
}

config::Config load(const std::string& yaml) {
    const auto loaded =
        config::load_text("version: 1\nports: [{name: wan, device: net_null0}]\n" + yaml, "imported.yaml");
    std::string errors;
    for (const auto& diagnostic : loaded.diagnostics) errors += config::to_string(diagnostic) + "\n";
    INFO(yaml << errors);
    REQUIRE(loaded.config.has_value());
    return *loaded.config;
}

}  // namespace

TEST_CASE("import: l3fwd's rules come out as a list that loads and means the same", "[app]") {
    const std::string path = write("cachewire-Rule_ipv4.db",
                                   "@192.168.0.0/24 10.0.0.0/8 0 : 65535 80 : 443 0x06/0xff\n"
                                   "R0.0.0.0/0 1.2.3.4/32 5 : 5 0 : 65535 17/0xff 1\n"
                                   "R2001:db8::/32 ::/0 0 : 65535 0 : 65535 0/0 2\n");
    const Imported imported = import_l3fwd_acl({path});
    CHECK(imported.complete);
    REQUIRE(imported.notes.size() == 1);
    CHECK(imported.notes[0] == path + ": 2 R lines name an egress port; here routes decide that");
    const config::Config config = load(imported.yaml);
    REQUIRE(config.acls.size() == 1);
    CHECK(config.acls[0].name == "cachewire-rule_ipv4");
    CHECK(config.acls[0].default_action == config::AclAction::deny);
    const auto& rules = config.acls[0].rules;
    REQUIRE(rules.size() == 3);
    CHECK(rules[0].action == config::AclAction::deny);
    CHECK(rules[0].src == net::parse_prefix("192.168.0.0/24").value().prefix);
    CHECK(rules[0].proto == 6);
    CHECK(rules[0].dst_ports.value().last == 443);
    CHECK(rules[1].action == config::AclAction::permit);
    CHECK(rules[1].src == net::parse_prefix("0.0.0.0/0").value().prefix);
    CHECK(rules[1].src_ports.value().first == 5);
    CHECK(rules[2].src->family == net::Family::ip6);
    CHECK_FALSE(rules[2].proto);
    std::filesystem::remove(path);
}

TEST_CASE("import: what can't be translated is named and left out, the rest stays", "[app]") {
    const std::string path = write("cachewire-import.rules",
                                   "@1.0.0.0/8 2.0.0.0/8 0 : 65535 80 : 80 0x01/0xff\n"
                                   "wrong\n"
                                   "@1.0.0.0/8 2.0.0.0/8 0 : 65535 80 : 80 0x00/0x00\n"
                                   "@1.0.0.0/8 2.0.0.0/8 0 : 65535 0 : 65535 58/0xff\n");
    const Imported imported = import_l3fwd_acl({path, path, path + ".absent"});
    CHECK_FALSE(imported.complete);
    REQUIRE(imported.notes.size() == 9);
    CHECK(imported.notes[0] ==
          path + ":2:1: error: a line begins with @ (deny), R (permit) or # (a comment); left out");
    CHECK(imported.notes[1] == path + ":1:1: protocol 1 has no ports; left out");
    CHECK(imported.notes[2] == path + ":3:1: ports of any protocol: three rules, for tcp, udp and sctp");
    CHECK(imported.notes[3] == path + ":4:1: protocol 58 is of the other family; left out");
    CHECK(imported.notes[8] == path + ".absent: can't be read: No such file or directory");
    const config::Config config = load(imported.yaml);
    REQUIRE(config.acls.size() == 2);
    CHECK(config.acls[0].name != config.acls[1].name);
    REQUIRE(config.acls[0].rules.size() == 3);
    CHECK(config.acls[0].rules[2].proto == 132);
    std::filesystem::remove(path);
}

}  // namespace cachewire::app
