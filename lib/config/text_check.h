#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Is this text at all, before a parser sees it: UTF-8 without a byte order mark, lines that end in LF, no control
// bytes, no tab in an indentation, not absurdly many brackets. One pass, no allocation; the first problem is the
// answer, because behind it nothing can be trusted.
#include <optional>
#include <string>
#include <string_view>

namespace cachewire::config {

struct TextProblem {
    unsigned line, column;  // 1-based; 0: the file as a whole
    std::string text;
};

std::optional<TextProblem> check_text(std::string_view text);

}  // namespace cachewire::config
