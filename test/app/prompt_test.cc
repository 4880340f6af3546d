// SPDX-License-Identifier: BSD-3-Clause
#include "app/prompt.h"

#include "support/catch.h"

using namespace cachewire;
using Words = std::vector<std::string>;

TEST_CASE("prompt: a line is words at blanks, and quotes keep them together", "[app]") {
    struct Case {
        const char* line;
        Words words;
    };
    const Case cases[] = {
        {"", {}},
        {" \t\r", {}},
        {"show drops", {"show", "drops"}},
        {"  show\t drops  \r", {"show", "drops"}},
        {"show 'two words' \"it's\"", {"show", "two words", "it's"}},
        {"a'b c'd", {"ab cd"}},
        {"show ''", {"show", ""}},
        {"'open until the end", {"open until the end"}},
    };
    for (const Case& c : cases) {
        INFO(c.line);
        CHECK(app::split_words(c.line) == c.words);
    }
}
