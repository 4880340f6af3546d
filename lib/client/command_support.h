#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What the commands share: complaints about how they are written, answers on the terminal, orders over the control
// socket.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "client/commands.h"
#include "client/sockets.h"

namespace cachewire::client {

struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// "a, b, c"
std::string join_words(const std::vector<std::string_view>& words);
// "no 'drosp'; did you mean 'drops'? there are: info, ports, ..."
std::string unknown_word(std::string_view word, const std::vector<std::string_view>& known);

// JSON where it was asked for, else the text.
void print(Context& context, const Json& json, const std::string& text);

// One order. Throws Refused, with the command's name in front, where the answer is no.
Json order(Context& context, const std::string& name, const Json& request);

// "90s", "10m", "2h", "1d" in seconds; throws UsageError that names the option.
std::uint32_t seconds_of(const std::string& option, const std::string& text);

}  // namespace cachewire::client
