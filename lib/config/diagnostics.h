#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Where a value stands in the file, and the list of what is wrong with it. One Reporter collects the diagnostics of one
// load in any order and hands them out sorted by position; past kMaxDiagnostics it only counts, so a hostile file costs
// bounded memory. Used by the loader's thread alone.
#include <cstddef>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "config/load.h"

namespace cachewire::config {

inline constexpr std::size_t kMaxDiagnostics = 1000;
inline constexpr std::size_t kMaxWarnings = 50;  // of one file

struct Node;

// A key path such as "ports[0].mtu", as a chain of parents: text is made only when something is wrong. Parents have to
// outlive the path: Reporter::keep.
struct Path {
    static constexpr std::size_t kNoIndex = std::numeric_limits<std::size_t>::max();

    const Path* parent = nullptr;
    std::string_view key;
    std::size_t index = kNoIndex;

    [[nodiscard]] std::string text() const;
};

// One value of the file and how it is reached.
struct Value {
    const Node* node;
    Path path;
};

class Reporter {
  public:
    explicit Reporter(std::string file) : file_(std::move(file)) {}

    // line 0: the file as a whole.
    void error(unsigned line, unsigned column, std::string key_path, std::string text);
    void error(const Value& where, std::string text);
    // At most kMaxWarnings, then only counted.
    void warning(unsigned line, unsigned column, std::string key_path, std::string text);
    // What was found in a file that this one names; it stands behind what was found in this one.
    void absorb(Reporter&& other);

    const Path* keep(const Path& path) { return &paths_.emplace_back(path); }
    [[nodiscard]] std::size_t errors() const noexcept { return errors_ + absorbed_errors_; }
    // Further errors are only counted: no need to word them well.
    [[nodiscard]] bool is_full() const noexcept { return errors_ >= kMaxDiagnostics; }
    // By line and column; ends with a note when some were left out.
    std::vector<Diagnostic> take();

  private:
    std::string file_;
    std::size_t errors_ = 0, warnings_ = 0, absorbed_errors_ = 0;
    std::vector<Diagnostic> diagnostics_, absorbed_;
    std::deque<Path> paths_;
};

// The file's text in a message: quoted, at most 48 bytes of it, control bytes as \xNN.
std::string quote(std::string_view text);

// ", a, b and c" pieces of messages.
std::string join(const std::vector<std::string_view>& words);

using base::nearest;

}  // namespace cachewire::config
