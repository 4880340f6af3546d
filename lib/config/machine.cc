// SPDX-License-Identifier: BSD-3-Clause
// What the process takes from the machine: EAL, lcores, memory, and how its pipeline runs.
#include <fmt/format.h>

#include "config/sections.h"
#include "config/units.h"

namespace cachewire::config {
namespace {

constexpr Key kWorkers[] = {{"lcores"}, {"idle"}, {"placement"}, {"dispatch"}};
constexpr Key kMemory[] = {{"mbufs"}, {"mbuf_size"}, {"mempool_cache"}};
constexpr Key kPipeline[] = {{"burst"}, {"prefetch"}, {"metadata"}, {"memoize"}, {"shadow_check"}};
constexpr Key kPrefetch[] = {{"header"}, {"session"}};

constexpr Choice<Idle> kIdle[] = {{"poll", Idle::poll}, {"adaptive", Idle::adaptive}};
constexpr Choice<Placement> kPlacement[] = {
    {"strict", Placement::strict}, {"warn", Placement::warn}, {"ignore", Placement::ignore}};
constexpr Choice<Dispatch> kDispatch[] = {{"rss", Dispatch::rss}, {"software", Dispatch::software}};
constexpr Choice<Metadata> kMetadata[] = {{"session", Metadata::session}, {"mbuf_dynfield", Metadata::mbuf_dynfield}};

// What YAML itself would take for a number or a boolean: an EAL argument is text, and says so by quotes.
bool looks_typed(std::string_view text) {
    return text.find_first_not_of("0123456789") == std::string_view::npos || text == "true" || text == "false";
}

void read_eal(Loading& loading, const std::optional<Value>& value) {
    for (const Value& item : read_list(loading.reporter, value)) {
        const auto text = read_scalar(loading.reporter, item, "text");
        if (!text) continue;
        if (text->empty()) {
            loading.reporter.error(item, "an EAL argument is empty; allowed: text");
        } else if (item.node->plain && looks_typed(*text)) {
            loading.reporter.error(item, fmt::format("{} is not text; allowed: \"{}\" in quotes", quote(*text), *text));
        } else {
            loading.config.eal.emplace_back(*text);
            loading.config.eal_at.push_back({item.node->line, item.node->column, item.node->file});
        }
    }
}

void read_lcores(Loading& loading, const std::optional<Value>& value) {
    if (is_auto(value)) return;
    auto lcores = read_parsed(loading.reporter, value, "auto, or a list such as \"1-3,5\"", parse_lcores,
                              [](const auto&) { return ""; });
    if (!lcores) return;
    loading.config.workers.lcores = std::move(*lcores);
    loading.config.workers.lcores_at = {value->node->line, value->node->column, value->node->file};
}

void read_workers(Loading& loading, const Value& value) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, value, kWorkers);
    read_lcores(loading, map.get("lcores"));
    read_choice(reporter, map.get("idle"), loading.config.workers.idle, kIdle);
    read_choice(reporter, map.get("placement"), loading.config.workers.placement, kPlacement);
    read_choice(reporter, map.get("dispatch"), loading.config.workers.dispatch, kDispatch);
}

void read_memory(Loading& loading, const Value& value) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, value, kMemory);
    Memory& memory = loading.config.memory;
    read_auto_or_number(reporter, map.get("mbufs"), memory.mbufs, 512, 1u << 26);
    // 128 bytes of headroom and at least a minimal IPv6 packet's frame; the segment length field has 16 bits.
    read_number(reporter, map.get("mbuf_size"), memory.mbuf_size, 1536, 65535);
    read_number(reporter, map.get("mempool_cache"), memory.mempool_cache, 0, 512);
    // rte_mempool_create: a cache holds up to 1.5 times its size, and that has to fit into the pool.
    if (memory.mbufs != 0 && 3u * memory.mempool_cache > 2u * memory.mbufs) {
        reporter.error(map.self(),
                       fmt::format("a mempool_cache of {} is too large for {} mbufs; allowed: two thirds of mbufs",
                                   memory.mempool_cache, memory.mbufs));
    }
}

void read_pipeline(Loading& loading, const Value& value) {
    Reporter& reporter = loading.reporter;
    const MapReader map(reporter, value, kPipeline);
    Pipeline& pipeline = loading.config.pipeline;
    read_number(reporter, map.get("burst"), pipeline.burst, 1, 256);
    read_bool(reporter, map.get("memoize"), pipeline.memoize);
    read_number(reporter, map.get("shadow_check"), pipeline.shadow_check, 0, 1'000'000'000);
    read_choice(reporter, map.get("metadata"), pipeline.metadata, kMetadata);
    const auto prefetch = map.get("prefetch");
    if (!prefetch) return;
    const MapReader distances(reporter, *prefetch, kPrefetch);
    read_number(reporter, distances.get("header"), pipeline.prefetch_header, 0, 256);
    read_auto_or_number(reporter, distances.get("session"), pipeline.prefetch_session, 1, 256);
}

}  // namespace

void read_machine(Loading& loading, const MapReader& top) {
    read_eal(loading, top.get("eal"));
    if (const auto workers = top.get("workers")) read_workers(loading, *workers);
    if (const auto memory = top.get("memory")) read_memory(loading, *memory);
    if (const auto pipeline = top.get("pipeline")) read_pipeline(loading, *pipeline);
}

}  // namespace cachewire::config
