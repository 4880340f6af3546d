// SPDX-License-Identifier: BSD-3-Clause
#include "control/rule_hits.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include <fmt/format.h>

namespace cachewire::control {

namespace {

using session::RuleCounters;

std::uint32_t first_chunk(const RuleNumbers& numbers) { return numbers.first >> RuleCounters::kChunkBits; }
std::uint32_t chunks_for(std::uint32_t count) {
    return (count + RuleCounters::kChunkRules - 1) >> RuleCounters::kChunkBits;
}

// Equal for equal rules and for no others: what they match and do, and their name.
std::string identity(const acl::Rule& rule) {
    const auto prefix = [](const auto& p) { return p ? net::to_string(*p) : std::string("*"); };
    const auto number = [](const auto& n) { return n ? int{*n} : -1; };
    std::string text = fmt::format("{}|{}|{}|{}|{}|{}-{}|{}-{}|{}/{}|{}|{}|{}|{}/{}", rule.name,
                                   static_cast<int>(rule.action), number(rule.proto), prefix(rule.src),
                                   prefix(rule.dst), rule.src_ports.first, rule.src_ports.last, rule.dst_ports.first,
                                   rule.dst_ports.last, rule.tcp_flags, rule.tcp_flags_mask, number(rule.icmp_type),
                                   number(rule.icmp_code), number(rule.dscp), rule.match_flags, rule.match_flags_mask);
    for (const std::uint16_t interface : rule.in_interfaces) text += fmt::format("|i{}", interface);
    for (const std::uint16_t interface : rule.out_interfaces) text += fmt::format("|o{}", interface);
    return text;
}

// Which rule of `now` each rule of `before` is, and the default. The n-th of equal ones is the n-th of equal ones.
std::vector<std::uint32_t> match_rules(const acl::List& before, const acl::List& now) {
    std::unordered_map<std::string, std::vector<std::uint32_t>> known;
    for (std::size_t i = now.rules.size(); i-- > 0;)
        known[identity(now.rules[i])].push_back(static_cast<std::uint32_t>(i));
    std::vector<std::uint32_t> map;
    for (const acl::Rule& rule : before.rules) {
        const auto found = known.find(identity(rule));
        if (found == known.end() || found->second.empty()) {
            map.push_back(ListHits::kGone);
            continue;
        }
        map.push_back(found->second.back());
        found->second.pop_back();
    }
    map.push_back(static_cast<std::uint32_t>(now.rules.size()));
    return map;
}

void add(RuleTotals& to, const RuleTotals& from) {
    to.packets += from.packets;
    to.bytes += from.bytes;
    to.sessions += from.sessions;
}

}  // namespace

void RuleHits::add_worker(RuleCounters& counters) {
    workers_.push_back(&counters);
    for (std::uint32_t chunk = 0; chunk < used_.size(); ++chunk)
        if (used_[chunk]) counters.put(chunk);
}

std::shared_ptr<const ListHits> RuleHits::next(const ListHits* hits, const acl::List* before, const acl::List& now) {
    const auto count = static_cast<std::uint32_t>(now.rules.size() + 1);
    auto next = std::make_shared<ListHits>();
    next->numbers = take(count);
    next->before.resize(count);
    if (hits == nullptr || before == nullptr) return next;
    const std::vector<std::uint32_t> map = match_rules(*before, now);
    for (std::size_t i = 0; i < hits->before.size(); ++i)
        if (map[i] != ListHits::kGone) add(next->before[map[i]], hits->before[i]);
    // `was`: by rule of the version before this one. No two rules become one, so it can be turned around.
    const auto carry = [&](const std::shared_ptr<const RuleNumbers>& numbers, auto&& was) {
        std::vector<std::uint32_t> is(count, ListHits::kGone);
        for (std::uint32_t i = 0; i < map.size(); ++i)
            if (map[i] != ListHits::kGone) is[map[i]] = was(i);
        if (!is_over(*numbers)) {
            next->older.push_back({numbers, std::move(is)});
            return;
        }
        for (std::uint32_t i = 0; i < count; ++i)
            if (is[i] != ListHits::kGone) add(next->before[i], sum(numbers->first + is[i]));
    };
    for (const ListHits::Older& older : hits->older)
        carry(older.numbers, [&](std::uint32_t rule) { return older.was[rule]; });
    if (hits->numbers != nullptr) carry(hits->numbers, [](std::uint32_t rule) { return rule; });
    return next;
}

RuleTotals RuleHits::of(const ListHits& hits, std::uint32_t rule) const {
    RuleTotals totals = hits.before[rule];
    if (hits.numbers != nullptr) add(totals, sum(hits.numbers->first + rule));
    for (const ListHits::Older& older : hits.older)
        if (older.was[rule] != ListHits::kGone) add(totals, sum(older.numbers->first + older.was[rule]));
    return totals;
}

std::shared_ptr<const RuleNumbers> RuleHits::take(std::uint32_t count) {
    give_back_unused();
    const std::uint32_t need = chunks_for(count);
    std::uint32_t run = 0;
    for (std::uint32_t chunk = 0; chunk < used_.size(); ++chunk) {
        run = used_[chunk] ? 0 : run + 1;
        if (run != need) continue;
        const std::uint32_t first = chunk + 1 - need;
        for (std::uint32_t c = first; c <= chunk; ++c) {
            used_[c] = true;
            for (RuleCounters* worker : workers_) worker->put(c);
        }
        auto numbers = std::make_shared<RuleNumbers>();
        numbers->first = first << RuleCounters::kChunkBits;
        numbers->count = count;
        taken_.push_back(numbers);
        return numbers;
    }
    return nullptr;
}

// No snapshot names the numbers, so no session can come to hold one, and none does.
bool RuleHits::is_over(const RuleNumbers& numbers) const {
    if (numbers.in_snapshot.use_count() != 1) return false;
    for (const RuleCounters* worker : workers_)
        for (std::uint32_t c = 0; c < chunks_for(numbers.count); ++c)
            if (worker->held(first_chunk(numbers) + c) != 0) return false;
    return true;
}

RuleTotals RuleHits::sum(std::uint32_t number) const {
    RuleTotals totals;
    for (const RuleCounters* worker : workers_) {
        const session::RuleHits& hits = worker->hits(number);
        add(totals, {hits.packets.read(), hits.bytes.read(), hits.sessions.read()});
    }
    return totals;
}

void RuleHits::give_back_unused() {
    std::erase_if(taken_, [this](const std::shared_ptr<const RuleNumbers>& numbers) {
        if (numbers.use_count() != 1 || !is_over(*numbers)) return false;
        for (std::uint32_t c = 0; c < chunks_for(numbers->count); ++c) {
            used_[first_chunk(*numbers) + c] = false;
            for (RuleCounters* worker : workers_) worker->take(first_chunk(*numbers) + c);
        }
        return true;
    });
}

}  // namespace cachewire::control
