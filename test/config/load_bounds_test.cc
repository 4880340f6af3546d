// SPDX-License-Identifier: BSD-3-Clause
// Files made to exhaust a reader. No time is asserted: each of these ends within seconds because the limits hold, and
// would run into the test program's timeout otherwise.
#include <cstdlib>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "config/load.h"
#include "support/catch.h"
#include "wrong_files.h"

using namespace cachewire;

namespace {

std::string repeat(const std::string& piece, std::size_t times) {
    std::string out;
    out.reserve(piece.size() * times);
    for (std::size_t i = 0; i < times; ++i) out += piece;
    return out;
}

std::string first_error(const config::LoadResult& result) {
    CHECK_FALSE(result.config.has_value());
    REQUIRE_FALSE(result.diagnostics.empty());
    return config::to_string(result.diagnostics.front());
}

std::string first_error(const std::string& text) { return first_error(config::load_text(text, "f.yaml")); }

class TemporaryDirectory {
  public:
    TemporaryDirectory() { REQUIRE(::mkdtemp(path_.data()) != nullptr); }
    ~TemporaryDirectory() {
        ::unlink(file().c_str());
        ::rmdir(path_.c_str());
    }
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] std::string file() const { return path_ + "/f.yaml"; }

  private:
    std::string path_ = "/tmp/cachewire-config-XXXXXX";
};

}  // namespace

TEST_CASE("config: alias bombs are refused while they are read", "[config]") {
    std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 30; ++i) {
        const std::string alias = "*a" + std::to_string(i - 1);
        bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeat(alias + ", ", 9) + alias + "]\n";
    }
    CHECK(first_error(bomb) == "f.yaml:6:45: error: aliases stand for more than 1000000 values in all");
}

TEST_CASE("config: deep nesting is refused in every form", "[config]") {
    for (const char* piece : {"[", "{a: ", "- ", "? ", "{", "[{a: "}) {
        INFO(piece);
        CHECK(first_error(repeat(piece, 20000)).find("nested deeper than 64 levels") != std::string::npos);
    }
}

TEST_CASE("config: a flood of errors is cut and counted", "[config]") {
    std::string text = test::kPort;
    for (int i = 0; i < 5000; ++i) text += "k" + std::to_string(i) + ": 1\n";
    const auto result = config::load_text(text, "f.yaml");
    CHECK_FALSE(result.config.has_value());
    REQUIRE(result.diagnostics.size() == 1001);
    CHECK(config::to_string(result.diagnostics.back()) == "f.yaml: error: 4000 more errors are not shown");
}

TEST_CASE("config: a 10 MB file is read, each route of it", "[config]") {
    std::string text = std::string(test::kRouter) + "routes:\n";
    std::size_t routes = 0;
    for (unsigned i = 0; text.size() < 10'000'000; ++i, ++routes) {
        const net::Address network = net::Address::from_v4((16u << 24) + (i << 8));
        text += "  - prefix: " + net::to_string(network) + "/24\n    via: 192.0.2.2\n";
    }
    const auto result = config::load_text(text, "f.yaml");
    REQUIRE(result.config);
    CHECK(result.config->routes.size() == routes);
}

TEST_CASE("config: 10 MB of junk is an error", "[config]") {
    constexpr std::size_t kSize = 10'000'000;
    CHECK(first_error(std::string(kSize, ',')) ==
          "f.yaml:1:8000001: error: more than 8000000 brackets and commas in one file");
    CHECK(first_error(std::string(kSize, '\0')) == "f.yaml:1:1: error: byte 0x00 is not text; allowed: UTF-8 text");
    CHECK(first_error(std::string(kSize, '\x80')) == "f.yaml:1:1: error: byte 0x80 is not UTF-8; allowed: UTF-8 text");
    CHECK(first_error(std::string(kSize, 'x')) == "f.yaml:1:1: error: is a single value; allowed: a map of keys");
    CHECK(first_error(std::string(kSize, '\n')) ==
          "f.yaml: error: is empty; needed at least: version, ports and interfaces");
}

TEST_CASE("config: what is no readable file of bounded size is refused", "[config]") {
    const TemporaryDirectory directory;
    const std::string file = directory.file();
    CHECK(first_error(config::load_file(directory.path())) ==
          directory.path() + ": error: is a directory; allowed: a file");
    CHECK(first_error(config::load_file(file)) == file + ": error: can't be read: No such file or directory");
    CHECK(first_error(config::load_file("/dev/zero")) == "/dev/zero: error: is no regular file; allowed: a file");
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    CHECK(first_error(config::load_file(file)) == file + ": error: is no regular file; allowed: a file");
    REQUIRE(::unlink(file.c_str()) == 0);
    std::ofstream(file) << test::kPort;
    CHECK(config::load_file(file).config.has_value());
    REQUIRE(::truncate(file.c_str(), static_cast<off_t>(config::kMaxFileBytes) + 1) == 0);
    CHECK(first_error(config::load_file(file)) == file + ": error: is larger than 64 MiB");
}
