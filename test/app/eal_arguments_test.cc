// SPDX-License-Identifier: BSD-3-Clause
#include "app/eal_arguments.h"

#include <sstream>

#include "base/error.h"
#include "support/catch.h"

using namespace cachewire;
using app::merge_eal_arguments;

namespace {

std::vector<std::string> words(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> result;
    for (std::string word; stream >> word;) result.push_back(word);
    return result;
}

std::vector<port::Device> devices(const std::string& text) {
    std::vector<port::Device> result;
    for (const std::string& word : words(text)) {
        std::string why;
        const auto device = port::parse_device(word, why);
        REQUIRE(device.has_value());
        result.push_back(*device);
    }
    return result;
}

}  // namespace

TEST_CASE("eal arguments: an option on the command line replaces its group from the file", "[app]") {
    struct Case {
        const char* what;
        const char* file;
        const char* ports;
        const char* command_line;
        const char* merged;
    };
    const Case cases[] = {
        {"nothing anywhere: no NIC is taken", "", "", "", "--no-pci"},
        {"the file alone", "-l 0-1 --no-huge -m 512", "", "", "-l 0-1 --no-huge -m 512 --no-pci"},
        {"the command line alone", "", "", "-l 2,3", "--no-pci -l 2,3"},
        {"-l replaces -l", "-l 0-1 -m 512", "", "-l 2,3", "-m 512 --no-pci -l 2,3"},
        {"--lcores replaces -l", "-l 0-1", "", "--lcores (0-1)@0", "--no-pci --lcores (0-1)@0"},
        {"--lcores= replaces -c", "-c 3", "", "--lcores=0@0,1@0", "--no-pci --lcores=0@0,1@0"},
        {"-l0,1 in one word", "-l0-3", "", "-l0,1", "--no-pci -l0,1"},
        {"-l replaces service lcores", "-l 0-3 -s 8 -S 3", "", "-l 0,1", "--no-pci -l 0,1"},
        {"-l makes the file's main lcore meaningless", "-l 2,3 --main-lcore 3", "", "-l 0,1", "--no-pci -l 0,1"},
        {"--main-lcore leaves -l alone", "-l 2,3 --main-lcore 3", "", "--main-lcore=2",
         "-l 2,3 --no-pci --main-lcore=2"},
        {"-m replaces --socket-mem", "--socket-mem=512,512", "", "-m 64", "--no-pci -m 64"},
        {"--huge-dir undoes --no-huge", "--no-huge -m 64", "", "--huge-dir /dev/hugepages",
         "-m 64 --no-pci --huge-dir /dev/hugepages"},
        {"--telemetry undoes --no-telemetry", "--no-telemetry", "", "--telemetry", "--no-pci --telemetry"},
        {"an abbreviation is the option", "--file-prefix a --no-huge", "", "--file-p b",
         "--no-huge --no-pci --file-p b"},
        {"a flag twice is given once", "--no-huge", "", "--no-huge", "--no-pci --no-huge"},
        {"all of a repeated option go", "--log-level=a:8 --log-level b:8", "", "--log-level=c:8",
         "--no-pci --log-level=c:8"},
        {"an optional value comes with '=' only", "--huge-unlink -l 0", "", "--huge-unlink=never",
         "-l 0 --no-pci --huge-unlink=never"},
        {"an option of a later DPDK", "-l 0", "", "--new-thing=8", "-l 0 --no-pci --new-thing=8"},

        {"ports are devices", "-l 0-1", "net_tap0,iface=a 0000:03:00.0", "",
         "-l 0-1 -a 0000:03:00.0 --vdev=net_tap0,iface=a"},
        {"the file's --vdev and the ports' add up", "--vdev=net_null7", "net_tap0,iface=a", "",
         "--vdev=net_null7 --no-pci --vdev=net_tap0,iface=a"},
        {"--vdev replaces the file's, not the ports'", "--vdev net_null7", "net_tap0,iface=a", "--vdev net_null8",
         "--no-pci --vdev=net_tap0,iface=a --vdev net_null8"},
        {"--vdev of a port's device gives its arguments", "", "net_tap0,iface=a net_tap1,iface=b",
         "--vdev=net_tap0,iface=c", "--no-pci --vdev=net_tap1,iface=b --vdev=net_tap0,iface=c"},
        {"-a of a port's device gives its arguments", "", "0000:03:00.0", "-a 03:00.0,mprq_en=1",
         "-a 03:00.0,mprq_en=1"},
        {"-a beside the ports' own", "-a 0000:05:00.0", "0000:03:00.0", "", "-a 0000:05:00.0 -a 0000:03:00.0"},
        {"-a replaces the file's --no-pci", "--no-pci", "net_null0", "-a 0000:05:00.0",
         "--vdev=net_null0 -a 0000:05:00.0"},
        {"--no-pci is given once", "--no-pci", "net_null0", "", "--no-pci --vdev=net_null0"},
        {"-b replaces -a", "-a 0000:05:00.0", "net_null0", "-b 0000:06:00.0", "--vdev=net_null0 -b 0000:06:00.0"},
    };
    for (const Case& c : cases) {
        INFO(c.what);
        const auto merged = merge_eal_arguments({words(c.file), devices(c.ports), words(c.command_line)});
        CHECK(app::to_shell(merged) == app::to_shell(words(c.merged)));
    }
}

TEST_CASE("eal arguments: what can't be merged is an error of its place", "[app]") {
    struct Case {
        const char* file;
        const char* ports;
        const char* command_line;
        base::ExitStatus status;
        const char* text;
    };
    using Status = base::ExitStatus;
    const Case cases[] = {
        {"-l", "", "", Status::configuration, "`eal:`: -l needs a value"},
        {"0-1", "", "", Status::configuration, "`eal:`: \"0-1\" is no EAL option"},
        {"-l 0 -- --config a", "", "", Status::configuration, "`eal:`: \"--\" is no EAL option"},
        {"--no-hugh", "", "", Status::configuration,
         "`eal:`: \"--no-hugh\" is no EAL option; did you mean \"--no-huge\"?"},
        {"--dance", "", "", Status::configuration, "`eal:`: \"--dance\" is no EAL option"},
        {"", "", "--vdev", Status::usage, "command line: --vdev needs a value"},
        {"", "", "-l 0 1", Status::usage, "command line: \"1\" is no EAL option"},
        {"", "", "-i", Status::usage, "command line: \"-i\" is no EAL option; `-- --help` lists cachewire's own"},
        {"--no-pci", "0000:03:00.0", "", Status::configuration,
         "--no-pci can't go with the port on the PCI device 0000:03:00.0"},
        {"", "0000:03:00.0", "--no-pci", Status::usage, "--no-pci can't go with"},
        {"", "0000:03:00.0", "-b 0000:04:00.0", Status::usage, "-b can't go with"},
    };
    for (const Case& c : cases) {
        INFO(c.file << " | " << c.command_line);
        try {
            merge_eal_arguments({words(c.file), devices(c.ports), words(c.command_line)});
            FAIL("no error");
        } catch (const base::Error& error) {
            CHECK(error.status() == c.status);
            INFO(error.what());
            CHECK(std::string(error.what()).find(c.text) == 0);
        }
    }
}

TEST_CASE("eal arguments: what EAL refuses is the file's fault or the command line's", "[app]") {
    struct Case {
        const char* file;
        const char* command_line;
        const char* log;
        base::ExitStatus status;
    };
    using Status = base::ExitStatus;
    const Case cases[] = {
        {"--iova-mode=x", "", "EAL: Invalid parameters for --iova-mode", Status::configuration},
        {"", "--iova-mode=x", "EAL: Invalid parameters for --iova-mode", Status::usage},
        {"--iova-mode=x", "-l 0-1", "EAL: Invalid parameters for --iova-mode\n", Status::configuration},
        {"-l 0-1", "--iova-mode=x", "EAL: Invalid parameters for --iova-mode", Status::usage},
        {"--iova-mode=x", "--iova-mode=y", "EAL: Invalid parameters for --iova-mode", Status::usage},
        {"-l 0-99", "--no-huge", "EAL: invalid core list", Status::usage},  // not named: the nearer suspect
        {"--log-level=x", "-m 64", "EAL: Invalid parameters for --log-level-x", Status::usage},  // another one
    };
    for (const Case& c : cases) {
        INFO(c.file << " | " << c.command_line << " | " << c.log);
        CHECK(app::who_is_wrong({words(c.file), {}, words(c.command_line)}, c.log) == c.status);
    }
    CHECK(app::asks_for_help({"-h"}));
    CHECK(app::asks_for_help({"-l", "0", "--version"}));
    CHECK_FALSE(app::asks_for_help({"--file-prefix", "-h"}));
}

TEST_CASE("eal arguments: the logged line can be given to a shell", "[app]") {
    CHECK(app::to_shell({"-l", "0-1", "--vdev=net_tap0,iface=cw0"}) == "-l 0-1 --vdev=net_tap0,iface=cw0");
    CHECK(app::to_shell({"--lcores", "(0-1)@0", ""}) == "--lcores '(0-1)@0' ''");
    CHECK(app::to_shell({"it's"}) == "'it'\\''s'");
}

TEST_CASE("eal arguments: what keeps secondary processes out is named", "[app]") {
    CHECK(app::unshared_by(words("-l 0-1 -m 512")).empty());
    CHECK(app::unshared_by(words("-l 0-1 --no-huge -m 512")) == "--no-huge");
    CHECK(app::unshared_by(words("--in-memory")) == "--in-memory");
    CHECK(app::unshared_by(words("--no-sh")) == "--no-shconf");
    CHECK(app::unshared_by(words("--file-prefix --no-huge")).empty());
}
