// SPDX-License-Identifier: BSD-3-Clause
// `include` and `defaults`: several files that read as one, each error in the file that it stands in.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <unistd.h>

#include "config/load.h"
#include "support/catch.h"

using namespace cachewire;
namespace fs = std::filesystem;

namespace {

constexpr const char* kMain =
    "version: 1\ninclude: [\"tenants.d/*.yaml\"]\nports: [{name: wan, device: net_null0}]\n"
    "acl: [{name: shut}, {name: state, stateful: true}]\n";

const std::string kNoInclude =
    "version: 1\n#\nports: [{name: wan, device: net_null0}]\nacl: [{name: shut}, {name: state, stateful: true}]\n";

class Folder {
  public:
    Folder() {
        std::string path = (fs::temp_directory_path() / "cachewire-include-XXXXXX").string();
        REQUIRE(::mkdtemp(path.data()) != nullptr);
        path_ = path;
        fs::create_directory(path_ / "tenants.d");
    }
    ~Folder() { fs::remove_all(path_); }
    void write(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }
    // Paths without the folder, so that they can be compared.
    [[nodiscard]] std::string shorten(std::string text) const {
        const std::string prefix = path_.string() + "/";
        for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix))
            text.erase(at, prefix.size());
        return text;
    }
    [[nodiscard]] std::string diagnostics(const config::LoadResult& result) const {
        std::string text;
        for (const auto& diagnostic : result.diagnostics) text += config::to_string(diagnostic) + "\n";
        return shorten(text);
    }
    [[nodiscard]] config::LoadResult load() const { return config::load_file((path_ / "main.yaml").string()); }
    [[nodiscard]] config::Config good() const {
        auto result = load();
        INFO(diagnostics(result));
        REQUIRE(result.config);
        return std::move(*result.config);
    }
    // What is said of a wrong one.
    [[nodiscard]] std::string wrong() const {
        const auto result = load();
        CHECK_FALSE(result.config);
        return diagnostics(result);
    }

  private:
    fs::path path_;
};

std::string tenant(const std::string& name, int id, const std::string& more = "") {
    return "tenants: [{name: " + name + ", id: " + std::to_string(id) + more + "}]\n";
}

}  // namespace

TEST_CASE("include: files in the order of their names, lists one behind the other", "[config][include]") {
    const Folder folder;
    folder.write("main.yaml", std::string(kMain) + tenant("first", 1));
    folder.write("tenants.d/b.yaml", tenant("second-b", 2));
    folder.write("tenants.d/a.yaml", tenant("second-a", 3) + "sessions: {capacity: 1000}\n");
    folder.write("tenants.d/Z.yaml",
                 "description: capitals come first\nsessions: {timeouts: {icmp: 3s}}\n" + tenant("upper", 4));
    folder.write("tenants.d/a.yaml~", "nonsense");
    const auto config = folder.good();
    std::string names;
    for (const auto& t : config.tenants) names += t.name + " ";
    CHECK(names == "first upper second-a second-b ");
    CHECK(config.sessions.capacity == 1000);
    CHECK(config.sessions.timeouts.icmp == 3);
    std::string files;
    for (const auto& file : config.sources) files += folder.shorten(file.path) + " ";
    CHECK(files == "main.yaml tenants.d/Z.yaml tenants.d/a.yaml tenants.d/b.yaml ");
    CHECK(*config.sources[3].text == tenant("second-b", 2));
}

TEST_CASE("include: the digest is that of all files' bytes, rules and routes too", "[config][include]") {
    const Folder folder;
    const std::string main = std::string(kMain) + "  #\n" + tenant("first", 1);
    const std::string included = "acl: [{name: filed, file: some.rules, format: l3fwd-acl}]\n";
    const std::string rules = "@1.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xff\n";
    folder.write("main.yaml", main);
    folder.write("tenants.d/a.yaml", included);
    folder.write("tenants.d/some.rules", rules);  // beside the file that names it
    const std::string all = main + included + rules;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    REQUIRE(EVP_Digest(all.data(), all.size(), digest, &length, EVP_sha256(), nullptr) == 1);
    std::string hex;
    for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
    const auto config = folder.good();
    CHECK(config.sha256 == hex);
    CHECK(config.acls.back().rules.size() == 1);
    folder.write("tenants.d/some.rules", "#\n" + rules);
    CHECK(folder.good().sha256 != hex);
}

TEST_CASE("include: errors name the file, and the other place", "[config][include]") {
    const Folder folder;
    folder.write("main.yaml", std::string(kMain) + "sessions: {capacity: 1000}\n" + tenant("red", 1));
    SECTION("wrong in an included file") {
        folder.write("tenants.d/a.yaml", "# one\n" + tenant("blue", 2, ", acl: nothing"));
        CHECK(folder.wrong() ==
              "tenants.d/a.yaml:2:36: error: tenants[1].acl: no acl is named 'nothing'; known: shut, state\n");
    }
    SECTION("no YAML") {
        folder.write("tenants.d/a.yaml", "tenants: [\n");
        CHECK(folder.wrong() == "tenants.d/a.yaml:1:10: error: the '[' is never closed\n");
    }
    SECTION("sorted by file, then line") {
        folder.write("tenants.d/a.yaml", tenant("blue", 2) + "zzz: 1\n");
        folder.write("tenants.d/b.yaml", "\n\n" + tenant("red", 3));
        CHECK(
            folder.wrong() ==
            "tenants.d/a.yaml:2:1: error: zzz: unknown key; allowed: version, include, defaults, eal, workers, memory, "
            "pipeline, ports, cross_connects, tenants, interfaces, neighbors, routes, kernel, acl, sessions, qos, "
            "description\n"
            "tenants.d/b.yaml:3:18: error: tenants[2].name: a second tenant named 'red'; the first stands in "
            "main.yaml:6\n");
    }
    SECTION("a scalar twice, a list and a scalar") {
        folder.write("tenants.d/a.yaml", "sessions: {capacity: 1000}\nversion: 1\nports: 1\n");
        CHECK(folder.wrong() ==
              "tenants.d/a.yaml:1:12: error: sessions.capacity: is set twice; the first stands in main.yaml:5\n"
              "tenants.d/a.yaml:2:1: error: version: is set twice; the first stands in main.yaml:1\n"
              "tenants.d/a.yaml:3:1: error: ports: is set twice; the first stands in main.yaml:3\n");
    }
    SECTION("in one included file") {
        folder.write("tenants.d/a.yaml", tenant("blue", 2) + tenant("blue", 2));
        CHECK(folder.wrong() == "tenants.d/a.yaml:2:1: error: tenants: this key stands twice\n");
    }
    SECTION("no nesting") {
        folder.write("tenants.d/a.yaml", "include: [b.yaml]\n");
        CHECK(folder.wrong() ==
              "tenants.d/a.yaml:1:1: error: include: an included file includes nothing; allowed: in the first file "
              "only\n");
    }
    SECTION("no map") {
        folder.write("tenants.d/a.yaml", "- a\n");
        CHECK(folder.wrong() ==
              "tenants.d/a.yaml:1:1: error: is no map; allowed: keys as in the file that includes it\n");
    }
}

TEST_CASE("include: what a pattern may be, and what it finds", "[config][include]") {
    const Folder folder;
    const std::string ports = "ports: [{name: wan, device: net_null0}]\n";
    const auto including = [&](const std::string& list) {
        folder.write("main.yaml", "version: 1\ninclude: " + list + "\n" + ports);
    };
    folder.write("tenants.d/a.yaml", tenant("red", 1));
    SECTION("a file by name, and twice by two patterns") {
        including("[tenants.d/a.yaml, \"tenants.d/*.yaml\"]");
        CHECK(folder.good().tenants.size() == 1);
    }
    SECTION("an absolute path") {
        including("[\"" + fs::absolute(fs::temp_directory_path()).string() + "/no/such/folder/*\"]");
        CHECK(folder.load().config);
    }
    SECTION("nothing") {
        including("[\"none.d/*.yaml\"]");
        const auto result = folder.load();
        CHECK(result.config);
        CHECK(folder.diagnostics(result).find(
                  "main.yaml:2:11: warning: include[0]: 'none.d/*.yaml' matches no file\n") != std::string::npos);
    }
    SECTION("an empty file") {
        folder.write("tenants.d/b.yaml", "# later\n");
        including("[\"tenants.d/*.yaml\"]");
        const auto result = folder.load();
        CHECK(result.config);
        CHECK(folder.diagnostics(result).find("tenants.d/b.yaml: warning: is empty\n") != std::string::npos);
    }
    SECTION("a file that is not there") {
        including("[none.yaml]");
        CHECK(folder.wrong() ==
              "main.yaml:2:11: error: include[0]: none.yaml: can't be read: No such file or directory\n");
    }
    SECTION("a folder") {
        including("[tenants.d]");
        CHECK(folder.wrong() == "main.yaml:2:11: error: include[0]: tenants.d: is a directory; allowed: a file\n");
    }
    SECTION("itself") {
        including("[\"*.yaml\"]");
        CHECK(folder.wrong() == "main.yaml:2:11: error: include[0]: main.yaml is this very file\n");
    }
    SECTION("no list, no text") {
        including("tenants.d/a.yaml");
        CHECK(folder.wrong() ==
              "main.yaml:2:10: error: include: is no list; allowed: a list of files or patterns such as "
              "[tenants.d/*.yaml]\n");
        including("[{}]");
        CHECK(
            folder.wrong() ==
            "main.yaml:2:11: error: include[0]: is no file; allowed: a path, or a pattern such as tenants.d/*.yaml\n");
    }
}

TEST_CASE("defaults: a tenant has what it does not say itself", "[config][include]") {
    const Folder folder;
    const auto read = [&](const std::string& more) {
        folder.write("main.yaml", kNoInclude + more);
        return folder.load();
    };
    SECTION("key by key") {
        const auto result = read(
            "defaults: {tenant: {acl: shut, sessions: cache, quota: {sessions: 10, new_sessions_per_second: 5}, rpf: "
            "loose}}\n"
            "tenants:\n  - {name: a, id: 1}\n  - {name: b, id: 2, quota: {sessions: 7}, rpf: none, sessions: none}\n");
        REQUIRE(result.config);
        const auto& a = result.config->tenants[0];
        const auto& b = result.config->tenants[1];
        CHECK((a.acl == 0 && b.acl == 0));
        CHECK((a.sessions == config::SessionMode::cache && b.sessions == config::SessionMode::none));
        CHECK((a.quota.sessions == 10 && a.quota.new_sessions_per_second == 5));
        CHECK((b.quota.sessions == 7 && !b.quota.new_sessions_per_second));  // a map is replaced whole
        CHECK((a.rpf == config::Rpf::loose && b.rpf == config::Rpf::none));
    }
    SECTION("a file without tenants") {
        const auto result = read("defaults: {tenant: {acl: state}}\n");
        REQUIRE(result.config);
        CHECK(result.config->tenants[0].acl == 1);
        CHECK(result.config->tenants[0].sessions == config::SessionMode::track);
    }
    SECTION("wrong, said once") {
        CHECK(folder.diagnostics(read("defaults: {tenant: {acl: no, name: x}, service: {}}\n"
                                      "tenants: [{name: a, id: 1}, {name: b, id: 2}]\n")) ==
              "main.yaml:5:26: error: defaults.tenant.acl: no acl is named 'no'; known: shut, state\n"
              "main.yaml:5:30: error: defaults.tenant.name: unknown key; allowed: sessions, acl, policer, quota, "
              "midstream, rpf, "
              "description\n"
              "main.yaml:5:40: error: defaults.service: not supported yet\n");
        CHECK(folder.diagnostics(
                  read("defaults: {tenant: {sessions: none}}\ntenants: [{name: a, id: 1, acl: state}]\n")) ==
              "main.yaml:5:31: error: defaults.tenant.sessions: tenant 'a' has a stateful list, which needs sessions; "
              "allowed: "
              "track\n");
    }
}
