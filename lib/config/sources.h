#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The files of one load: the configuration itself, what it includes, and the files of rules and routes that they name.
// Includes are merged into one tree before any section is read: lists follow each other in the files' order, maps are
// put together key by key, and a scalar that stands twice is an error. Keeps the trees, and a digest over all bytes.
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/diagnostics.h"
#include "config/yaml.h"

namespace cachewire::config {

inline constexpr std::size_t kMaxIncluded = 4096;  // files

class Sources {
  public:
    explicit Sources(Reporter& reporter);
    ~Sources();
    Sources(const Sources&) = delete;
    Sources& operator=(const Sources&) = delete;

    // The merged tree of `text`, which is Reporter's file 0; nullptr, and reported, when any of the files can't be
    // read.
    const Node* read(std::string_view text);
    // A file of rules or routes.
    void add_data(const std::string& path, std::string_view text);

    [[nodiscard]] std::vector<SourceFile> files() const { return files_; }
    [[nodiscard]] std::string sha256() const;

  private:
    struct Digest;

    const Node* parse(std::string_view text, std::uint16_t file);
    void add(const std::string& path, std::string_view text, bool keep);
    bool include(const Value& value, std::vector<const Node*>& roots);
    bool read_included(const std::string& path, const Value& pattern, std::vector<const Node*>& roots);
    void merge(Node& into, const Node& from, const Path& path);
    Node& copy(const Node& node);

    Reporter& reporter_;
    std::unique_ptr<Digest> digest_;
    std::vector<SourceFile> files_;
    std::vector<std::unique_ptr<const Document>> documents_;
    std::deque<Node> merged_;  // nodes that stand for several
    std::size_t bytes_ = 0, kept_bytes_ = 0, nodes_ = 0;
};

}  // namespace cachewire::config
