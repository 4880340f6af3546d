// SPDX-License-Identifier: BSD-3-Clause
#include "app/lcores.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>
#include <rte_lcore.h>

#include "base/error.h"
#include "pipeline/owner.h"

namespace cachewire::app {

namespace {

[[noreturn]] void fail(const std::string& text) {
    throw base::Error(base::ExitStatus::configuration, "workers.lcores: " + text);
}

std::string list(const std::vector<unsigned>& lcores) {
    std::string text;
    for (const unsigned lcore : lcores) text += (text.empty() ? "" : ", ") + std::to_string(lcore);
    return text;
}

std::optional<unsigned> number_in(std::string_view text) {
    unsigned number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc{} && end == text.data() + text.size() && number < RTE_MAX_LCORE;
    return whole ? std::optional(number) : std::nullopt;
}

// "3" or "0-3", also downwards, as EAL takes it.
bool add_range(std::string_view text, std::set<unsigned>& to) {
    const auto dash = text.find('-');
    const auto first = number_in(text.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_in(text.substr(dash + 1));
    if (!first || !last) return false;
    for (unsigned lcore = std::min(*first, *last); lcore <= std::max(*first, *last); ++lcore) to.insert(lcore);
    return true;
}

}  // namespace

// What stands behind an '@' is CPUs; parentheses only say how far it reaches.
std::optional<std::vector<unsigned>> lcores_in_list(std::string_view text) {
    std::set<unsigned> lcores;
    std::string item;
    bool cpus = false, inside = false;
    for (const char c : std::string(text) + ",") {
        if (c == '(' || c == ')') {
            inside = c == '(';
        } else if (c == '@') {
            if (!item.empty() && !add_range(item, lcores)) return std::nullopt;
            item.clear();
            cpus = true;
        } else if (c == ',') {
            if (!cpus && !item.empty() && !add_range(item, lcores)) return std::nullopt;
            item.clear();
            if (!inside) cpus = false;
        } else if (!cpus) {
            item += c;
        }
    }
    if (lcores.empty()) return std::nullopt;
    return std::vector<unsigned>(lcores.begin(), lcores.end());
}

std::optional<std::vector<unsigned>> lcores_in_mask(std::string_view text) {
    if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
    std::vector<unsigned> lcores;
    for (std::size_t digit = 0; digit < text.size(); ++digit) {
        unsigned bits = 0;
        const char* const at = text.data() + text.size() - 1 - digit;
        if (std::from_chars(at, at + 1, bits, 16).ec != std::errc{}) return std::nullopt;
        for (unsigned bit = 0; bit < 4; ++bit)
            if ((bits >> bit & 1) != 0) lcores.push_back(static_cast<unsigned>(4 * digit) + bit);
    }
    if (lcores.empty()) return std::nullopt;
    return lcores;
}

Lcores eal_lcores() {
    Lcores lcores{rte_get_main_lcore(), {}};
    unsigned lcore;
    RTE_LCORE_FOREACH_WORKER(lcore) lcores.others.push_back(lcore);
    return lcores;
}

std::vector<unsigned> choose_workers(const Lcores& lcores, const std::vector<unsigned>& configured) {
    if (lcores.others.empty())
        fail(
            "EAL has one lcore, and a worker needs one beside the main one: start with `-l 0,1`, or on a machine with "
            "one "
            "CPU with `--lcores '0@0,1@0'`");
    const std::vector<unsigned>& workers = configured.empty() ? lcores.others : configured;
    for (const unsigned lcore : workers) {
        if (lcore == lcores.main)
            fail(
                fmt::format("lcore {} is EAL's main one, which never forwards: choose among {}, or move it with "
                            "`--main-lcore`",
                            lcore, list(lcores.others)));
        if (std::find(lcores.others.begin(), lcores.others.end(), lcore) == lcores.others.end())
            fail(fmt::format("lcore {} is not one of EAL's: start with `-l {},{}`", lcore, lcores.main, lcore));
    }
    if (workers.size() > pipeline::kMaxWorkers)
        fail(fmt::format("{} workers are more than {}: choose fewer", workers.size(), pipeline::kMaxWorkers));
    return workers;
}

Jobs share_out(const Lcores& lcores, const std::vector<unsigned>& configured, bool schedules) {
    Jobs jobs{choose_workers(lcores, configured), std::nullopt};
    if (!schedules) return jobs;
    if (configured.empty() && jobs.workers.size() > 1) {
        jobs.scheduler = jobs.workers.back();
        jobs.workers.pop_back();
        return jobs;
    }
    for (const unsigned lcore : lcores.others)
        if (std::find(jobs.workers.begin(), jobs.workers.end(), lcore) == jobs.workers.end()) jobs.scheduler = lcore;
    if (!jobs.scheduler)
        fail(
            "`qos.schedulers` need an lcore of their own, and the main one and the workers leave none: start with one "
            "more, such as `-l 0-2`, or choose fewer workers");
    return jobs;
}

}  // namespace cachewire::app
