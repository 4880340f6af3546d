#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Answers for people: aligned columns, text left, numbers right with thousands separators. Knows nothing of endpoints.
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace cachewire::client {

using Json = nlohmann::ordered_json;

class Table {
  public:
    explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}

    // Short rows are filled with empty cells. A column of nothing but numbers, "-" and empty cells is right-aligned.
    void add(std::vector<Json> row) { rows_.push_back(std::move(row)); }
    [[nodiscard]] bool empty() const { return rows_.empty(); }
    [[nodiscard]] std::string text() const;

  private:
    std::vector<std::string> header_;  // all empty: no header line
    std::vector<std::vector<Json>> rows_;
};

std::string grouped(std::uint64_t n);         // 1234567 -> "1,234,567"
std::string duration(std::uint64_t seconds);  // 93784 -> "1d 02:03:04"
std::string cell(const Json& value);          // one value as text: numbers grouped, lists joined with ", "
bool is_number(const Json& value);  // a JSON number, or text that is one: the socket carries fractions as text

// Any answer: scalars as "key  value" lines, dictionaries of dictionaries as tables.
std::string generic_text(const Json& value);

}  // namespace cachewire::client
