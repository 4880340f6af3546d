#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// A YAML document as a plain tree with positions, built from yaml-cpp's events. Scalars stay text: what a text means is
// decided by the schema that reads it, so no YAML version's idea of octal, base 60 or "no" comes in. Duplicate keys are
// kept. Bounded: depth, number of nodes, and what aliases expand to. Immutable once parsed; shared nodes (aliases) are
// read-only.
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostics.h"

namespace cachewire::config {

inline constexpr unsigned kMaxDepth = 64;
inline constexpr std::size_t kMaxNodes = 4'000'000;
inline constexpr std::size_t kMaxAliasNodes = 1'000'000;  // what all aliases together stand for

struct Node {
    enum class Kind : std::uint8_t { null, scalar, sequence, map };
    Kind kind = Kind::null;
    bool plain = false;       // a scalar without quotes
    bool flow = false;        // a map or sequence in braces or brackets
    std::uint8_t height = 0;  // levels below
    std::uint32_t line = 0;   // 1-based
    std::uint32_t column = 0;
    std::uint32_t expanded = 1;  // nodes from here down, aliases counted as what they stand for
    std::uint16_t file = 0;      // Reporter's number of the file that it stands in
    std::string text;
    std::vector<const Node*> children;  // items; of a map: key, value, key, value
};

struct Document {
    std::deque<Node> nodes;
    const Node* root = nullptr;  // null node for a file without content
};

// nullptr when the text is no single, well-formed, bounded document; the reporter says why.
std::unique_ptr<const Document> parse_yaml(std::string_view text, Reporter& reporter, std::uint16_t file = 0);

}  // namespace cachewire::config
