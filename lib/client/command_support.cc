// SPDX-License-Identifier: BSD-3-Clause
#include "client/command_support.h"

#include <charconv>
#include <ostream>

#include <fmt/format.h>

#include "base/nearest.h"
#include "client/table.h"

namespace cachewire::client {

std::string join_words(const std::vector<std::string_view>& words) {
    std::string text;
    for (const std::string_view word : words) text.append(text.empty() ? "" : ", ").append(word);
    return text;
}

std::string unknown_word(std::string_view word, const std::vector<std::string_view>& known) {
    const std::string_view near = base::nearest(word, known);
    return fmt::format("no '{}'; {}there are: {}", word, near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                       join_words(known));
}

void print(Context& context, const Json& json, const std::string& text) {
    *context.out << (context.json ? json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : text)
                 << std::flush;
}

Json order(Context& context, const std::string& name, const Json& request) {
    ControlClient client(control_path(context.file_prefix), context.cancel_fd);
    Json answer = client.call(request);
    if (!answer.value("ok", false))
        throw Refused(fmt::format("{}: {}", name, cell(answer.value("error", Json("no reason given")))));
    return answer;
}

std::uint32_t seconds_of(const std::string& option, const std::string& text) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string unit(end, text.data() + text.size());
    const std::uint64_t factor = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86400 : 0;
    if (error != std::errc{} || factor == 0 || number == 0 || number * factor > UINT32_MAX)
        throw UsageError(
            fmt::format("{}: '{}' is no time; allowed: a number and s, m, h or d, such as 120s", option, text));
    return static_cast<std::uint32_t>(number * factor);
}

}  // namespace cachewire::client
