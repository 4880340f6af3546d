// SPDX-License-Identifier: BSD-3-Clause
// Rule files: what each line means, where a wrong one is wrong, and how a list names one.
#include "config/rule_file.h"

#include <filesystem>
#include <fstream>

#include "config/load.h"
#include "support/catch.h"
#include "support/parsed.h"
#include "support/skip.h"

namespace cachewire::config {

namespace {

using test::prefix;

std::string text_of(std::vector<Diagnostic> diagnostics) {
    std::string text;
    for (const auto& diagnostic : diagnostics) text += to_string(diagnostic) + "\n";
    return text;
}

std::vector<AclRule> parse(std::string_view text, RuleFormat format) {
    Reporter reporter("r");
    auto rules = parse_rule_file(text, format, reporter);
    INFO(text_of(reporter.take()));
    REQUIRE(reporter.errors() == 0);
    return rules;
}

std::string errors_in(std::string_view text, RuleFormat format = RuleFormat::l3fwd_acl) {
    Reporter reporter("r");
    parse_rule_file(text, format, reporter);
    return text_of(reporter.take());
}

// A file beside a configuration, both gone at the end.
class Folder {
  public:
    Folder() {
        char name[] = "/tmp/cachewire-rules-XXXXXX";
        path_ = mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    void write(const char* name, const std::string& text) const { std::ofstream(path_ / name) << text; }
    [[nodiscard]] std::string operator/(const char* name) const { return (path_ / name).string(); }

  private:
    std::filesystem::path path_;
};

constexpr const char* kHead = "version: 1\nports: [{name: wan, device: net_null0}]\n";

}  // namespace

TEST_CASE("rule file: @ denies, R permits, fields are read as l3fwd reads them", "[config]") {
    const auto rules = parse(
        "# comment\n\n"
        "@192.168.0.9/24 10.0.0.0/8 0 : 65535 80 : 443 0x06/0xff\n"
        "R0.0.0.0/0\t0.0.0.0/0\t020 : 0x20 0 : 65535 17/255 1\r\n"
        "@10.0.0.0/8 10.0.0.0/8 0 : 65535 0 : 65535 0x06/0x00 whatever stands here\n"
        "R2001:0db8:0000:0000:0000:0000:0000:0000/32 ::/0 0 : 65535 0 : 65535 58/0xFF 0",
        RuleFormat::l3fwd_acl);
    REQUIRE(rules.size() == 4);
    CHECK(rules[0].action == AclAction::deny);
    CHECK(rules[0].line == 3);
    CHECK(rules[0].src == prefix("192.168.0.0/24"));
    CHECK(rules[0].dst == prefix("10.0.0.0/8"));
    CHECK_FALSE(rules[0].src_ports);
    CHECK(rules[0].dst_ports.value().first == 80);
    CHECK(rules[0].dst_ports.value().last == 443);
    CHECK(rules[0].proto == 6);
    CHECK(rules[1].action == AclAction::permit);
    CHECK(rules[1].src == prefix("0.0.0.0/0"));
    CHECK(rules[1].src_ports.value().first == 16);
    CHECK(rules[1].src_ports.value().last == 32);
    CHECK(rules[1].proto == 17);
    CHECK_FALSE(rules[2].proto);
    CHECK(rules[3].src == prefix("2001:db8::/32"));
    CHECK(rules[3].dst == prefix("::/0"));
    CHECK(rules[3].line == 6);
}

TEST_CASE("rule file: ClassBench's last column is TCP's flags or ICMP's type", "[config]") {
    const auto rules = parse(
        "@1.0.0.0/8 2.0.0.0/8 0 : 65535 0 : 65535 0x06/0xFF\t0x0200/0x1200\t\n"
        "R1.0.0.0/8 2.0.0.0/8 0 : 65535 0 : 65535 0x01/0xFF 0x0b00/0xff00 7\n"
        "R1.0.0.0/8 2.0.0.0/8 0 : 65535 0 : 65535 0x2f/0xFF 0x0000/0x0000\n"
        "R1.0.0.0/8 2.0.0.0/8 0 : 65535 0 : 65535 0x2f/0xFF 3\n"
        "@1.0.0.0/8 2.0.0.0/8 0 : 65535 0 : 65535 0x00/0x00",
        RuleFormat::classbench);
    REQUIRE(rules.size() == 5);
    CHECK(rules[0].tcp_flags == 0x02);
    CHECK(rules[0].tcp_flags_mask == 0x12);
    CHECK(rules[1].icmp_type == 11);
    CHECK_FALSE(rules[1].icmp_code);
    CHECK(rules[2].tcp_flags_mask == 0);
    CHECK(rules[3].action == AclAction::permit);
    CHECK_FALSE(rules[4].proto);
}

TEST_CASE("rule file: what is wrong is named with its line and column", "[config]") {
    CHECK(errors_in("permit all\n @1.0.0.0/8 2.0.0.0/8 0 : 1 0 : 1 6/0xff\n") ==
          "r:1:1: error: a line begins with @ (deny), R (permit) or # (a comment)\n"
          "r:2:2: error: a line begins with @ (deny), R (permit) or # (a comment)\n");
    CHECK(errors_in("@1.0.0.0 2.0.0.0/8 0 : 1 0 : 1 6/0xff\n") ==
          "r:1:2: error: '1.0.0.0' is wrong; allowed: a source prefix such as 10.0.0.0/8 or 2001:db8::/32\n");
    CHECK(errors_in("@1.0.0.0/33 2.0.0.0/8 0 : 1 0 : 1 6/0xff\n") ==
          "r:1:2: error: '1.0.0.0/33' is wrong; allowed: a source prefix such as 10.0.0.0/8 or 2001:db8::/32\n");
    CHECK(errors_in("@1.0.0.0/8 ::/0 0 : 1 0 : 1 6/0xff\n") ==
          "r:1:1: error: source and destination are of different families\n");
    CHECK(
        errors_in("@1.0.0.0/8 2.0.0.0/8 0 : 1 5 : 4 6/0xff\n") ==
        "r:1:32: error: '4' is wrong; allowed: destination ports as LOW : HIGH, 0 to 65535, blanks around the colon\n");
    CHECK(errors_in("@1.0.0.0/8 2.0.0.0/8 0:1 5 : 4 6/0xff\n") ==
          "r:1:22: error: '0:1' is wrong; allowed: source ports as LOW : HIGH, 0 to 65535, blanks around the colon\n");
    CHECK(errors_in("@1.0.0.0/8 2.0.0.0/8 0 : 1 5 : 65536 6/0xff\n") ==
          "r:1:32: error: '65536' is wrong; allowed: destination ports as LOW : HIGH, 0 to 65535, blanks around the "
          "colon\n");
    CHECK(errors_in("@1.0.0.0/8 2.0.0.0/8 0 : 1 0 : 1 6/0x0f\n") ==
          "r:1:34: error: '6/0x0f' is wrong; allowed: PROTOCOL/MASK such as 0x06/0xFF, 0x00 as the mask for any\n");
    CHECK(errors_in("R1.0.0.0/8 2.0.0.0/8 0 : 1 0 : 1 6/0xff\n") ==
          "r:1:40: error: the line ends here; allowed: the number of a port at the end of R lines\n");
    CHECK(errors_in("R1.0.0.0/8 2.0.0.0/8 0 : 1 0 : 1 6/0xff 0x0200/0x0200 1\n") ==
          "r:1:41: error: '0x0200/0x0200' is wrong; allowed: the number of a port at the end of R lines\n");
    CHECK(errors_in("@1.0.0.0/8 2.0.0.0/8 0 : 1 0 : 1 47/0xff 0x0200/0x0200\n", RuleFormat::classbench) ==
          "r:1:42: error: '0x0200/0x0200' is wrong; allowed: a mask other than 0 for TCP's flags, or 0xff00 for ICMP's "
          "type\n");
    CHECK(errors_in("@1.0.0.0/8 2.0.0.0/8 0 : 1 0 : 1 6/0xff 9\n", RuleFormat::classbench) ==
          "r:1:41: error: '9' is wrong; allowed: nothing behind PROTOCOL/MASK and FLAGS/MASK\n");
}

TEST_CASE("rule file: a list names one beside its configuration, and reads it at each load", "[config]") {
    const Folder folder;
    folder.write("c.yaml",
                 std::string(kHead) + "acl: [{name: edge, default: permit, file: edge.rules, format: l3fwd-acl}]\n");
    folder.write("edge.rules", "@10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0/0\n");
    auto loaded = load_file(folder / "c.yaml");
    REQUIRE(loaded.config);
    CHECK(loaded.config->acls.at(0).rules.size() == 1);
    CHECK(loaded.config->acls.at(0).file == folder / "edge.rules");

    folder.write("edge.rules",
                 "R10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0/0 1\n@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0/0\n");
    CHECK(load_file(folder / "c.yaml").config.value().acls.at(0).rules.size() == 2);

    folder.write("edge.rules", "# nothing\nwrong\n");
    loaded = load_file(folder / "c.yaml");
    CHECK_FALSE(loaded.config);
    CHECK(text_of(loaded.diagnostics) ==
          (folder / "edge.rules") + ":2:1: error: a line begins with @ (deny), R (permit) or # (a comment)\n");

    std::filesystem::remove(folder / "edge.rules");
    loaded = load_file(folder / "c.yaml");
    CHECK_FALSE(loaded.config);
    CHECK(text_of(loaded.diagnostics) == (folder / "c.yaml") + ":3:43: error: acl[0].file: " + (folder / "edge.rules") +
                                             ": can't be read: No such file or directory\n");
}

TEST_CASE("rule file: public lists are read whole", "[config][shared]") {
    const std::filesystem::path sets = std::filesystem::path(CACHEWIRE_SOURCE_DIR) / ".." / "shared" / "cases" / "acl";
    if (!std::filesystem::exists(sets)) return test::say_skipped("no rule sets in ../shared/cases/acl");
    for (const char* name : {"acl_1k", "acl_1k.v6", "fw_1k", "ipc1_1k", "acl1_10k", "fw1_10k", "ipc1_10k"}) {
        std::ifstream file(sets / name);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '@'));
        for (const RuleFormat format : {RuleFormat::l3fwd_acl, RuleFormat::classbench}) {
            INFO(name);
            CHECK(parse(text, format).size() == lines);
        }
    }
}

}  // namespace cachewire::config
