// SPDX-License-Identifier: BSD-3-Clause
#include "client/diff.h"

#include <string>

#include "support/catch.h"

using cachewire::client::unified_diff;

namespace {

std::string diff(std::string_view before, std::string_view after) { return unified_diff(before, after, "a", "b"); }

// What `patch` makes of `before`.
std::string patched(const std::string& before, const std::string& diff) {
    const auto line_end = [](const std::string& text, std::size_t at) { return text.find('\n', at) + 1; };
    std::string out;
    std::size_t in = 0, line = 1;
    for (std::size_t at = line_end(diff, line_end(diff, 0)); at < diff.size(); at = line_end(diff, at)) {
        const auto copy = [&] {
            const std::size_t end = line_end(before, in);
            out += before.substr(in, end - in);
        };
        if (diff[at] == '@') {
            std::size_t first = std::stoul(diff.substr(diff.find('-', at) + 1));
            const std::size_t count = std::stoul(diff.substr(diff.find(',', at) + 1));
            if (count == 0) ++first;
            for (; line < first; ++line) copy(), in = line_end(before, in);
        } else if (diff[at] == '+') {
            out += diff.substr(at + 1, line_end(diff, at) - at - 1);
        } else {
            CHECK(before.compare(in, line_end(before, in) - in, diff, at + 1, line_end(diff, at) - at - 1) == 0);
            if (diff[at] == ' ') copy();
            in = line_end(before, in);
            ++line;
        }
    }
    return out + before.substr(in);
}

}  // namespace

TEST_CASE("diff: what changed, with three lines around it", "[client]") {
    CHECK(diff("a\n", "a\n") == "");
    CHECK(diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n") ==
          "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
    CHECK(diff("", "x\n") == "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+x\n");
    CHECK(diff("x\n", "") == "--- a\n+++ b\n@@ -1,1 +0,0 @@\n-x\n");
    CHECK(diff("x", "x\n").find("line feed") != std::string::npos);
}

TEST_CASE("diff: applied to the one text it makes the other", "[client]") {
    unsigned state = 12345;  // the same every time
    const auto random = [&state](unsigned below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
    for (int round = 0; round < 300; ++round) {
        INFO("round " << round);
        std::string before, after;
        for (unsigned n = random(60); n > 0; --n) {
            const std::string line = std::to_string(random(20)) + "\n";
            const unsigned fate = random(8);
            if (fate != 0) before += line;
            if (fate != 1) after += line;
        }
        if (before != after) CHECK(patched(before, diff(before, after)) == after);
    }
    std::string many, others;  // too many to be compared line by line
    for (int n = 0; n < 3000; ++n) many += std::to_string(n) + "\n", others += std::to_string(-n - 1) + "\n";
    CHECK(patched(many, diff(many, others)) == others);
}
