// SPDX-License-Identifier: BSD-3-Clause
// `check` refuses what a start would refuse, and says where it stands.
#include "app/eal_check.h"

#include "app/lcores.h"
#include "config/load.h"
#include "support/catch.h"

using namespace cachewire;
using List = std::vector<unsigned>;

namespace {

std::string checked(const std::string& eal_and_more, const std::string& device = "net_null0") {
    const auto loaded = config::load_text(
        "version: 1\nports: [{name: wan, device: \"" + device + "\"}]\ninterfaces: [{port: wan}]\n" + eal_and_more,
        "f.yaml");
    std::string text;
    for (const auto& diagnostic : loaded.diagnostics) text += config::to_string(diagnostic) + "\n";
    REQUIRE(loaded.config);
    for (const auto& diagnostic : app::check_eal(*loaded.config)) text += config::to_string(diagnostic) + "\n";
    return text;
}

}  // namespace

TEST_CASE("check: what EAL would not take is said of each item, and all of it", "[app]") {
    CHECK(checked("") == "");
    CHECK(checked("eal: [-l, 0-1, --no-huge, -m, \"512\"]\n") == "");
    CHECK(checked("eal: [-l, 0-1,\n  --no-hugh,\n  --iova-mod, va, --nothing-like-it, \"3\",\n  -q]\n") ==
          "f.yaml:5:3: error: eal[2]: \"--no-hugh\" is no EAL option; did you mean \"--no-huge\"?\n"
          "f.yaml:6:19: error: eal[5]: \"--nothing-like-it\" is no EAL option\n"
          "f.yaml:7:3: error: eal[7]: \"-q\" is no EAL option; `-- --help` lists cachewire's own\n");
    CHECK(checked("eal: [-l, 0-1, -m]\n") == "f.yaml:4:16: error: eal[2]: -m needs a value\n");
    CHECK(checked("eal: [-l, 0-1, --no-pci]\n", "0000:03:00.0") ==
          "f.yaml:4:16: error: eal[2]: --no-pci can't go with the port on the PCI device 0000:03:00.0: cachewire "
          "allows its "
          "ports' devices with -a and no others\n");
}

TEST_CASE("check: lcores of the file that leave no worker, or not the ones that are wanted", "[app]") {
    const char* const kNone =
        "EAL has one lcore, and a worker needs one beside the main one: start with `-l 0,1`, or on a machine with one "
        "CPU "
        "with `--lcores '0@0,1@0'`\n";
    CHECK(checked("eal: [-l, \"0\"]\n") == std::string("f.yaml:4:7: error: eal[0]: ") + kNone);
    CHECK(checked("eal: [-c, \"0x1\"]\n") == std::string("f.yaml:4:7: error: eal[0]: ") + kNone);
    CHECK(checked("eal: [\"--lcores=0@(0-1)\"]\n") == std::string("f.yaml:4:7: error: eal[0]: ") + kNone);
    CHECK(checked("eal: [--lcores, \"(0-1)@0\"]\n") == "");
    CHECK(checked("workers: {lcores: \"5\"}\neal: [-l, 0-1]\n") ==
          "f.yaml:4:19: error: workers.lcores: lcore 5 is not one of EAL's: start with `-l 0,5`\n");
    CHECK(checked("workers: {lcores: \"0\"}\neal: [-l, 0-1]\n") ==
          "f.yaml:4:19: error: workers.lcores: lcore 0 is EAL's main one, which never forwards: choose among 1, or "
          "move it "
          "with `--main-lcore`\n");
    CHECK(checked("workers: {lcores: \"0\"}\neal: [-l, 0-1, --main-lcore, \"1\"]\n") == "");
    // Without lcores in the file the machine or the command line has the word, with service lcores EAL.
    CHECK(checked("workers: {lcores: \"5\"}\n") == "");
    CHECK(checked("workers: {lcores: \"5\"}\neal: [-l, 0-1, -s, \"2\"]\n") == "");
    CHECK(checked("workers: {lcores: \"5\"}\neal: [-l, what]\n") == "");
}

TEST_CASE("lcores: as EAL's options spell them", "[app]") {
    struct Case {
        const char* text;
        std::optional<List> lcores;
    };
    const Case lists[] = {
        {"0", List{0}},
        {"0-3,5", List{0, 1, 2, 3, 5}},
        {"3,1", List{1, 3}},
        {"3-1", List{1, 2, 3}},
        {"0@0,1@1,2@1", List{0, 1, 2}},
        {"(0-3)@(0-1)", List{0, 1, 2, 3}},
        {"(0,2)@1,4@(2,3),5", List{0, 2, 4, 5}},
        {"", std::nullopt},
        {"x", std::nullopt},
        {"1-", std::nullopt},
        {"0,x", std::nullopt},
        {"99999", std::nullopt},
    };
    for (const Case& c : lists) {
        INFO(c.text);
        CHECK(app::lcores_in_list(c.text) == c.lcores);
    }
    const Case masks[] = {
        {"1", List{0}}, {"0xf", List{0, 1, 2, 3}}, {"A0", List{5, 7}}, {"0", std::nullopt}, {"0xg", std::nullopt}};
    for (const Case& c : masks) {
        INFO(c.text);
        CHECK(app::lcores_in_mask(c.text) == c.lcores);
    }
}
