#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Whether a device's RSS puts both directions of a session on the queue of the session's owner. The device is told the
// symmetric key (net/rss_hash.h) and a redirection table, both are read back, and what it says it has is held against
// the owner that the pipeline computes, for random tuples in both directions. That shows what the device was told, not
// what its silicon does: so the pipeline computes the owner of every packet all the same, and hands over what a device
// puts elsewhere. Control thread, at start and when a port comes.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/flow_hash.h"

namespace cachewire::port {

inline constexpr unsigned kOwnerBuckets = 1u << net::kOwnerHashBits;

// What the decision needs of a device. A fake in tests.
class RssDevice {
  public:
    struct Offer {
        std::uint16_t queues = 1;     // receive queues in use
        std::uint16_t reta_size = 0;  // 0: no redirection table
        std::uint8_t key_size = 0;    // 0: takes no key
        std::uint64_t fields = 0;     // RTE_ETH_RSS_*
    };
    struct Hash {
        std::vector<std::uint8_t> key;
        std::uint64_t fields = 0;
    };
    RssDevice() = default;
    RssDevice(const RssDevice&) = delete;
    RssDevice& operator=(const RssDevice&) = delete;
    virtual ~RssDevice() = default;

    [[nodiscard]] virtual Offer offer() const = 0;
    // 0, or -errno.
    virtual int set_hash(const Hash& hash) = 0;
    virtual int get_hash(Hash& hash) const = 0;  // `key` has the offer's size
    virtual int set_table(std::span<const std::uint16_t> queues) = 0;
    virtual int get_table(std::span<std::uint16_t> queues) const = 0;
};

// A started ethdev.
class EthRssDevice final : public RssDevice {
  public:
    EthRssDevice(std::uint16_t id, std::uint16_t queues) : id_(id), queues_(queues) {}
    [[nodiscard]] Offer offer() const override;
    int set_hash(const Hash& hash) override;
    int get_hash(Hash& hash) const override;
    int set_table(std::span<const std::uint16_t> queues) override;
    int get_table(std::span<std::uint16_t> queues) const override;

  private:
    std::uint16_t id_, queues_;
};

// Why the device can't be asked at all; empty: it can.
std::string why_no_rss(const RssDevice::Offer& offer);

// Buckets that a table of this size tells apart: the owner has to be the same for those that it doesn't.
constexpr unsigned rss_granularity(std::uint16_t reta_size) noexcept {
    return reta_size < kOwnerBuckets ? reta_size : kOwnerBuckets;
}

// Tells the device, and tests what it then says it has. `queue_of`: by owner bucket, periodic in the granularity.
// Empty: it gives the owner; else why not.
std::string set_up_rss(RssDevice& device, const net::HashSeed& seed, std::span<const std::uint16_t> queue_of);

}  // namespace cachewire::port
