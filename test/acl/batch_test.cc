// SPDX-License-Identifier: BSD-3-Clause
#include "acl/batch.h"

#include <array>

#include "acl/linear.h"
#include "acl/random_rules.h"
#include "support/catch.h"
#include "support/eal.h"
#include "support/random.h"

namespace cachewire::acl {

TEST_CASE("acl: a burst of several lists and both families comes back each with its own verdict", "[acl]") {
    test::ensure_eal();
    test::RandomRules random(test::random_engine());
    std::vector<std::unique_ptr<Classifier>> lists;
    for (const unsigned rules : {0u, 1u, 30u, 200u}) lists.push_back(Classifier::build(random.list(rules), -1));
    lists.push_back(nullptr);  // a tenant without a list
    for (unsigned round = 0; round < 400; ++round) {
        const unsigned size = random.below(Batch::kCapacity + 1);
        const unsigned used = 1 + random.below(static_cast<unsigned>(lists.size()));
        std::array<net::FlowKey, Batch::kCapacity> keys;
        std::array<const Classifier*, Batch::kCapacity> asked;
        Batch batch;
        for (unsigned i = 0; i < size; ++i) {
            asked[i] = lists[lists.size() - 1 - random.below(used)].get();
            keys[i] = random.key(lists[3]->list());
            // Tags come back as they are, whatever they are.
            batch.add(asked[i], &keys[i], static_cast<std::uint8_t>(255 - i));
        }
        std::array<unsigned, Batch::kCapacity> answers{};
        batch.judge([&](std::uint8_t tag, const Verdict& verdict) {
            const unsigned i = 255u - tag;
            REQUIRE(i < size);
            ++answers[i];
            const Verdict expected =
                asked[i] == nullptr ? Verdict{.action = Action::permit} : classify_linear(asked[i]->list(), keys[i]);
            REQUIRE(verdict.rule == expected.rule);
            REQUIRE(verdict.action == expected.action);
            REQUIRE(verdict.treatment == expected.treatment);
        });
        for (unsigned i = 0; i < Batch::kCapacity; ++i) REQUIRE(answers[i] == (i < size ? 1 : 0));
    }
}

}  // namespace cachewire::acl
