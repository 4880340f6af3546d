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

// Levenshtein distance with a swap of neighbours as one edit; words longer than the table are "far".
std::size_t edit_distance(std::string_view a, std::string_view b) {
    constexpr std::size_t kMax = 32;
    if (a.size() >= kMax || b.size() >= kMax) return kMax;
    std::array<std::array<std::size_t, kMax>, kMax> d{};
    for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[a.size()][b.size()];
}

}  // namespace

std::string to_string(const Diagnostic& diagnostic) {
    std::string out = diagnostic.file;
    if (diagnostic.line > 0) out += fmt::format(":{}:{}", diagnostic.line, diagnostic.column);
    out += diagnostic.severity == Diagnostic::Severity::error ? ": error: " : ": warning: ";
    if (!diagnostic.key_path.empty()) out += diagnostic.key_path + ": ";
    return out + diagnostic.text;
void Reporter::warning(unsigned line, unsigned column, std::string key_path, std::string text) {
    if (++warnings_ > kMaxWarnings) return;
    diagnostics_.push_back({Diagnostic::Severity::warning, file_, line, column, std::move(key_path), std::move(text)});
}

void Reporter::absorb(Reporter&& other) {
    absorbed_errors_ += other.errors();
    for (Diagnostic& diagnostic : other.take()) absorbed_.push_back(std::move(diagnostic));
}

}

std::string Path::text() const {
    std::string out = parent != nullptr ? parent->text() : "";
    if (index != kNoIndex) return out + fmt::format("[{}]", index);
    if (!out.empty() && !key.empty()) out += '.';
    return out + shortened(key);
}
    if (warnings_ > kMaxWarnings) {
        diagnostics_.push_back({Diagnostic::Severity::warning, file_, 0, 0, "",
                                fmt::format("{} more warnings are not shown", warnings_ - kMaxWarnings)});
    }
    std::move(absorbed_.begin(), absorbed_.end(), std::back_inserter(diagnostics_));

void Reporter::error(unsigned line, unsigned column, std::string key_path, std::string text) {
    if (++errors_ > kMaxDiagnostics) return;
    diagnostics_.push_back({Diagnostic::Severity::error, file_, line, column, std::move(key_path), std::move(text)});
}

void Reporter::error(const Value& where, std::string text) {
    error(where.node->line, where.node->column, is_full() ? "" : where.path.text(), std::move(text));
}

std::vector<Diagnostic> Reporter::take() {
    std::stable_sort(diagnostics_.begin(), diagnostics_.end(), [](const Diagnostic& a, const Diagnostic& b) {
        return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    });
    if (errors_ > kMaxDiagnostics) {
        diagnostics_.push_back({Diagnostic::Severity::error, file_, 0, 0, "",
                                fmt::format("{} more errors are not shown", errors_ - kMaxDiagnostics)});
    }
    return std::move(diagnostics_);
}

std::string quote(std::string_view text) { return fmt::format("'{}'", shortened(text)); }

std::string join(const std::vector<std::string_view>& words) {
    constexpr std::size_t kShown = 32;
    std::string out;
    for (std::size_t i = 0; i < std::min(words.size(), kShown); ++i) out += (i == 0 ? "" : ", ") + shortened(words[i]);
    return words.size() > kShown ? out + ", ..." : out;
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
    std::string_view best;
    // One slip in short words, up to three in long ones.
    std::size_t limit = std::clamp<std::size_t>(word.size() / 3, 1, 3) + 1;
    for (const std::string_view candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < limit && distance < candidate.size()) {
            limit = distance;
            best = candidate;
        }
    }
    return best;
}

}  // namespace cachewire::config
