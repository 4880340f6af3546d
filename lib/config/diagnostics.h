#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Where a value stands in the files, and the list of what is wrong with it. One Reporter collects the diagnostics of
// one load in any order and hands them out sorted by file and position; past kMaxDiagnostics it only counts, so a
// hostile file costs bounded memory. Used by the loader's thread alone.
#include <cstddef>
#include <cstdint>
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

// The line that something stands in, for messages about something else.
struct Origin {
    unsigned line = 0;
    std::uint16_t file = 0;  // Reporter's number
};
Origin origin(const Node& node) noexcept;

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
    // `file` has the number 0.
    explicit Reporter(std::string file) : files_{std::move(file)} {}

    // Another file of the same load: its number.
    std::uint16_t add_file(std::string path);
    [[nodiscard]] const std::string& path(std::uint16_t file) const { return files_[file]; }

    // line 0: the file as a whole.
    void error(unsigned line, unsigned column, std::string key_path, std::string text, std::uint16_t file = 0);
    void error(const Value& where, std::string text);
    // At most kMaxWarnings, then only counted.
    void warning(unsigned line, unsigned column, std::string key_path, std::string text, std::uint16_t file = 0);
    // "line 3", or "PATH:3" in a message about something that stands in another file.
    [[nodiscard]] std::string say(const Origin& origin, const Value& in_message_about) const;
    // What was found in a file that this one names; it stands behind what was found in this one.
    void absorb(Reporter&& other);

    const Path* keep(const Path& path) { return &paths_.emplace_back(path); }
    [[nodiscard]] std::size_t errors() const noexcept { return errors_ + absorbed_errors_; }
    // Further errors are only counted: no need to word them well.
    [[nodiscard]] bool is_full() const noexcept { return errors_ >= kMaxDiagnostics; }
    // By file, line and column; ends with a note when some were left out.
    std::vector<Diagnostic> take();

  private:
    struct Entry {
        std::uint16_t file;
        Diagnostic diagnostic;
    };

    std::vector<std::string> files_;
    std::size_t errors_ = 0, warnings_ = 0, absorbed_errors_ = 0;
    std::vector<Entry> entries_;
    std::vector<Diagnostic> absorbed_;
    std::deque<Path> paths_;
};

// The file's text in a message: quoted, at most 48 bytes of it, control bytes as \xNN.
std::string quote(std::string_view text);

// ", a, b and c" pieces of messages.
std::string join(const std::vector<std::string_view>& words);

using base::nearest;

}  // namespace cachewire::config
