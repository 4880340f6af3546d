// SPDX-License-Identifier: BSD-3-Clause
#include "config/diagnostics.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "config/yaml.h"

namespace cachewire::config {
namespace {

constexpr std::size_t kMaxQuoted = 48;

std::string shortened(std::string_view text) {
    std::string out;
    const bool cut = text.size() > kMaxQuoted;
    std::size_t end = std::min(text.size(), kMaxQuoted);
    while (cut && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
        --end;  // not inside a UTF-8 sequence
    for (const char c : text.substr(0, end)) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
            out += fmt::format("\\x{:02x}", byte);
        } else {
            out += c;
        }
    }
    return cut ? out + "..." : out;
}

}  // namespace

std::string to_string(const Diagnostic& diagnostic) {
    std::string out = diagnostic.file;
    if (diagnostic.line > 0) out += fmt::format(":{}:{}", diagnostic.line, diagnostic.column);
    out += diagnostic.severity == Diagnostic::Severity::error ? ": error: " : ": warning: ";
    if (!diagnostic.key_path.empty()) out += diagnostic.key_path + ": ";
    return out + diagnostic.text;
}

std::string Path::text() const {
    std::string out = parent != nullptr ? parent->text() : "";
    if (index != kNoIndex) return out + fmt::format("[{}]", index);
    if (!out.empty() && !key.empty()) out += '.';
    return out + shortened(key);
}

Origin origin(const Node& node) noexcept { return {node.line, node.file}; }

std::uint16_t Reporter::add_file(std::string path) {
    files_.push_back(std::move(path));
    return static_cast<std::uint16_t>(files_.size() - 1);
}

void Reporter::error(unsigned line, unsigned column, std::string key_path, std::string text, std::uint16_t file) {
    if (++errors_ > kMaxDiagnostics) return;
    entries_.push_back(
        {file, {Diagnostic::Severity::error, files_[file], line, column, std::move(key_path), std::move(text)}});
}

void Reporter::error(const Value& where, std::string text) {
    error(where.node->line, where.node->column, is_full() ? "" : where.path.text(), std::move(text), where.node->file);
}

void Reporter::warning(unsigned line, unsigned column, std::string key_path, std::string text, std::uint16_t file) {
    if (++warnings_ > kMaxWarnings) return;
    entries_.push_back(
        {file, {Diagnostic::Severity::warning, files_[file], line, column, std::move(key_path), std::move(text)}});
}

std::string Reporter::say(const Origin& origin, const Value& in_message_about) const {
    if (origin.file == in_message_about.node->file) return fmt::format("line {}", origin.line);
    return fmt::format("{}:{}", files_[origin.file], origin.line);
}

void Reporter::absorb(Reporter&& other) {
    absorbed_errors_ += other.errors();
    for (Diagnostic& diagnostic : other.take()) absorbed_.push_back(std::move(diagnostic));
}

std::vector<Diagnostic> Reporter::take() {
    std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
        return std::tie(a.file, a.diagnostic.line, a.diagnostic.column) <
               std::tie(b.file, b.diagnostic.line, b.diagnostic.column);
    });
    std::vector<Diagnostic> diagnostics;
    for (Entry& entry : entries_) diagnostics.push_back(std::move(entry.diagnostic));
    entries_.clear();
    if (errors_ > kMaxDiagnostics) {
        diagnostics.push_back({Diagnostic::Severity::error, files_[0], 0, 0, "",
                               fmt::format("{} more errors are not shown", errors_ - kMaxDiagnostics)});
    }
    if (warnings_ > kMaxWarnings) {
        diagnostics.push_back({Diagnostic::Severity::warning, files_[0], 0, 0, "",
                               fmt::format("{} more warnings are not shown", warnings_ - kMaxWarnings)});
    }
    std::move(absorbed_.begin(), absorbed_.end(), std::back_inserter(diagnostics));
    return diagnostics;
}

std::string quote(std::string_view text) { return fmt::format("'{}'", shortened(text)); }

std::string join(const std::vector<std::string_view>& words) {
    constexpr std::size_t kShown = 32;
    std::string out;
    for (std::size_t i = 0; i < std::min(words.size(), kShown); ++i) out += (i == 0 ? "" : ", ") + shortened(words[i]);
    return words.size() > kShown ? out + ", ..." : out;
}

}  // namespace cachewire::config
