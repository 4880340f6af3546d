#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Who is where on the connected networks, as ARP (RFC 826, RFC 1122 2.3.2) and ND (RFC 4861 7.3) say: states, ageing,
// probes, and bounds. Pure: time comes in as milliseconds, what has to be done comes out as actions. One owner, the
// control thread.
//
//   need() -> incomplete --3 probes to the group, a second apart--> failed --20 s--> forgotten
//                 | reply                                            ^
//                 v                                                  |
//             reachable --30 s--> stale --30 s--> delay --5 s--> probe: 3 to its MAC address, 3 to the group
//
// No worker says which neighbor it sends to, so each is asked again when it has been silent: one that is there answers
// once in 65 s. Its MAC address serves until all probes have failed. Gateways (`wanted`) are probed at once after 15 s,
// never forgotten, and asked for every 5 s while they have failed, so that they are back without a packet lost to find
// that out.
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "net/flow_key.h"
#include "net/mac.h"

namespace cachewire::control {

struct NeighborKey {
    std::uint16_t tenant = 0;     // slot
    std::uint16_t interface = 0;  // index in the snapshot
    net::Address address{};
    friend auto operator<=>(const NeighborKey&, const NeighborKey&) = default;
};

enum class NeighborPhase : std::uint8_t { incomplete, reachable, stale, delay, probe, failed, permanent };
const char* to_string(NeighborPhase phase) noexcept;

struct Neighbor {
    NeighborPhase phase = NeighborPhase::incomplete;
    bool has_mac = false;
    bool wanted = false;  // a gateway: not forgotten
    std::uint8_t probes = 0;
    net::Mac mac{};
    std::uint64_t since_ms = 0;      // in this state
    std::uint64_t confirmed_ms = 0;  // last word from it; when it was made, before the first
    std::uint64_t due_ms = 0;        // of the timer; 0: none
};

struct NeighborAction {
    enum class Kind : std::uint8_t {
        ask_group,  // ARP request to all, or a solicitation to its group
        ask_it,     // the same to `mac` alone
        bound,      // has a MAC address now, or another one
        unbound,    // has none any more
        failed,     // what waits for it will not be sent
    };
    Kind kind;
    NeighborKey key;
    net::Mac mac{};
};

class NeighborTable {
  public:
    struct Limits {
        std::size_t entries = 8192;     // permanent and wanted ones apart
        std::size_t unresolved = 1024;  // of them without a MAC address: what a scan can take
    };
    NeighborTable() : NeighborTable(Limits{}) {}
    explicit NeighborTable(const Limits& limits) : limits_(limits) {}

    enum class Need : std::uint8_t { known, waiting, refused };
    // A packet needs it. Waiting: an action will follow, bound or failed. Refused: it has just failed.
    Need need(const NeighborKey& key, std::uint64_t now_ms);

    // Word from it, in RFC 4861 7.2.5's terms. `creates`: it asked for us, so it will want an answer.
    struct Word {
        std::optional<net::Mac> mac{};
        bool solicited = false;
        bool overrides = true;
        bool creates = false;
    };
    void hear(const NeighborKey& key, const Word& word, std::uint64_t now_ms);

    // All permanent ones, and all that are wanted: what is in neither set any more ages like the rest.
    void set_permanent(const std::map<NeighborKey, net::Mac>& permanent, std::uint64_t now_ms);
    void set_wanted(const std::set<NeighborKey>& wanted, std::uint64_t now_ms);

    // Timers. At most `limit` entries, so that none of a big table's turns is long.
    void tick(std::uint64_t now_ms, std::size_t limit = 256);
    // Forgets what `which` says, permanent ones apart; wanted ones begin anew. Returns how many.
    template <class Which>
    std::size_t flush(Which&& which, std::uint64_t now_ms) {
        std::vector<NeighborKey> keys;
        for (const auto& [key, neighbor] : entries_)
            if (neighbor.phase != NeighborPhase::permanent && which(key)) keys.push_back(key);
        for (const NeighborKey& key : keys) forget(key, now_ms);
        return keys.size();
    }

    // The link was away, so another one may be there now: whom `which` says is asked for among all at once, 16 in a
    // millisecond. A MAC address serves until that has failed.
    template <class Which>
    void doubt(Which&& which, std::uint64_t now_ms) {
        std::uint64_t asked = 0;
        for (auto entry = entries_.begin(); entry != entries_.end(); ++entry)
            if (which(entry->first) && ask_anew(entry, now_ms, asked / kDoubtsAMs)) ++asked;
    }

    // What there is to do since the last call.
    std::vector<NeighborAction> take_actions();

    [[nodiscard]] const std::map<NeighborKey, Neighbor>& all() const noexcept { return entries_; }
    [[nodiscard]] const Neighbor* find(const NeighborKey& key) const;
    [[nodiscard]] std::size_t unresolved() const noexcept { return unresolved_.size(); }
    [[nodiscard]] std::uint64_t evicted() const noexcept { return evicted_; }

  private:
    using Entry = std::map<NeighborKey, Neighbor>::iterator;
    static constexpr std::uint64_t kDoubtsAMs = 16;

    Entry make(const NeighborKey& key, std::uint64_t now_ms);
    bool make_room(bool unresolved, std::uint64_t now_ms);
    void forget(const NeighborKey& key, std::uint64_t now_ms);
    void begin(Entry entry, std::uint64_t now_ms);
    bool ask_anew(Entry entry, std::uint64_t now_ms, std::uint64_t in_ms);
    void enter(Entry entry, NeighborPhase phase, std::uint64_t now_ms, std::uint64_t timer_ms);
    void bind(Entry entry, const net::Mac& mac);
    void unbind(Entry entry);
    void fire(Entry entry, std::uint64_t now_ms);
    void ask(Entry entry);
    void set_timer(Entry entry, std::uint64_t due_ms);
    void index(Entry entry, bool in);
    static std::uint64_t spread(const NeighborKey& key, std::uint64_t ms) noexcept;

    Limits limits_;
    std::map<NeighborKey, Neighbor> entries_;
    std::set<std::pair<std::uint64_t, NeighborKey>> timers_;
    // What may be evicted, oldest word first.
    std::set<std::pair<std::uint64_t, NeighborKey>> unresolved_, resolved_;
    std::vector<NeighborAction> actions_;
    std::uint64_t evicted_ = 0;
};

}  // namespace cachewire::control
