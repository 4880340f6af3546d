// SPDX-License-Identifier: BSD-3-Clause
#include "client/table.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

namespace cachewire::client {

namespace {

// Digits with an optional sign and fraction; 0x.., names and addresses are text.
bool is_decimal(const std::string& text) {
    const std::size_t first = !text.empty() && text[0] == '-' ? 1 : 0;
    std::size_t dots = 0;
    for (std::size_t i = first; i < text.size(); ++i) {
        if (text[i] == '.' && i > first && i + 1 < text.size()) {
            ++dots;
        } else if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) {
            return false;
        }
    }
    return text.size() > first && dots <= 1;
}

std::string group_digits(std::string text) {
    const std::size_t first = text[0] == '-' ? 1 : 0;
    for (std::size_t i = std::min(text.find('.'), text.size()); i > first + 3;) text.insert(i -= 3, 1, ',');
    return text;
}

bool all_objects(const Json& object) {
    return !object.empty() && std::all_of(object.begin(), object.end(), [](const Json& v) { return v.is_object(); });
}

// One row an entry. The key is shown unless it only counts entries that have a name.
std::string object_table(const Json& object) {
    const bool keyed = !std::all_of(object.begin(), object.end(),
                                    [](const Json& v) { return v.contains("name") || v.contains("lcore"); });
    std::vector<std::string> columns;
    for (const Json& entry : object) {
        for (const auto& [key, value] : entry.items()) {
            if (std::find(columns.begin(), columns.end(), key) == columns.end()) columns.push_back(key);
        }
    }
    std::vector<std::string> header = columns;
    if (keyed) header.insert(header.begin(), "");
    Table table(header);
    for (const auto& [key, entry] : object.items()) {
        std::vector<Json> row;
        if (keyed) row.emplace_back(key);
        for (const std::string& column : columns) row.push_back(entry.contains(column) ? entry[column] : Json(""));
        table.add(std::move(row));
    }
    return table.text();
}

}  // namespace

std::string grouped(std::uint64_t n) { return group_digits(std::to_string(n)); }

std::string duration(std::uint64_t seconds) {
    const std::uint64_t days = seconds / 86400;
    const std::string clock = fmt::format("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    return days == 0 ? clock : fmt::format("{}d {}", days, clock);
}

bool is_number(const Json& value) {
    return value.is_number() || (value.is_string() && is_decimal(value.get_ref<const std::string&>()));
}

std::string cell(const Json& value) {
    if (value.is_number_float()) return group_digits(fmt::format("{:.1f}", value.get<double>()));
    if (value.is_number()) return group_digits(value.dump());
    if (value.is_string()) {
        const std::string& text = value.get_ref<const std::string&>();
        return is_decimal(text) ? group_digits(text) : text;
    }
    if (value.is_null()) return "-";
    if (!value.is_array()) return value.dump();
    std::string joined;
    for (const Json& element : value) joined += (joined.empty() ? "" : ", ") + cell(element);
    return joined.empty() ? "-" : joined;
}

std::string Table::text() const {
    std::vector<std::size_t> width(header_.size());
    std::vector<bool> numeric(header_.size(), true);
    for (std::size_t c = 0; c < header_.size(); ++c) {
        width[c] = header_[c].size();
        for (const auto& row : rows_) {
            if (c >= row.size()) continue;
            width[c] = std::max(width[c], cell(row[c]).size());
            numeric[c] = numeric[c] && (is_number(row[c]) || cell(row[c]).empty() || row[c] == "-" || row[c].is_null());
        }
    }
    const auto line = [&](const auto& cell_of) {
        std::string out;
        for (std::size_t c = 0; c < header_.size(); ++c) {
            out += fmt::format(fmt::runtime(numeric[c] ? "{}{:>{}}" : "{}{:<{}}"), c == 0 ? "" : "  ", cell_of(c),
                               width[c]);
        }
        return out.erase(out.find_last_not_of(' ') + 1) + "\n";
    };
    std::string out;
    const bool has_header =
        std::any_of(header_.begin(), header_.end(), [](const std::string& h) { return !h.empty(); });
    if (has_header) out += line([&](std::size_t c) { return header_[c]; });
    for (const auto& row : rows_)
        out += line([&](std::size_t c) { return c < row.size() ? cell(row[c]) : std::string(); });
    return out;
}

std::string generic_text(const Json& value) {
    if (!value.is_object()) return cell(value) + "\n";
    if (value.empty()) return "(none)\n";
    if (all_objects(value) && std::none_of(value.begin(), value.end(), [](const Json& v) { return all_objects(v); })) {
        return object_table(value);
    }
    Table scalars({"", ""});
    std::string below;
    for (const auto& [key, child] : value.items()) {
        if (child.is_object()) {
            below += fmt::format("\n{}:\n{}", key, generic_text(child));
        } else {
            scalars.add({key, cell(child)});
        }
    }
    std::string out = scalars.text() + below;
    return out.starts_with('\n') ? out.substr(1) : out;
}

}  // namespace cachewire::client
