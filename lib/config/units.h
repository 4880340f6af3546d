#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Numbers as people write them in the file: decimal only, and with a unit where a bare number could mean several
// things. Every parser answers a value or, in `why`, what is wrong with the text (the caller adds where). Pure; nothing
// is rounded.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cachewire::config {

// "1500". Refused, each by name: signs, leading zeros (octal to YAML 1.1), 0x10, 1_000, 1e3, 1.5.
std::optional<std::uint64_t> parse_decimal(std::string_view text, std::string& why);

enum class RateKind { bits, packets };
struct Rate {
    std::uint64_t per_second;
    RateKind kind;
};
// "100Mbit", "2.5Gbit" (powers of 1000, bits a second), "2Mpps" (packets a second).
std::optional<Rate> parse_rate(std::string_view text, std::string& why);

// "64KiB" (powers of 1024), "64kB" (powers of 1000), "1500B": bytes.
std::optional<std::uint64_t> parse_size(std::string_view text, std::string& why);

// "500ms", "30s", "2m", "2h", "1d": milliseconds.
std::optional<std::uint64_t> parse_time(std::string_view text, std::string& why);

// "90%": 90.
std::optional<std::uint64_t> parse_percent(std::string_view text, std::string& why);

// "80" or "80-443", both ends included.
struct Range {
    std::uint64_t first, last;
};
std::optional<Range> parse_range(std::string_view text, std::string& why);

// "1-3,5", each lcore once, below kMaxLcores; ascending.
inline constexpr unsigned kMaxLcores = 1024;
std::optional<std::vector<unsigned>> parse_lcores(std::string_view text, std::string& why);

}  // namespace cachewire::config
