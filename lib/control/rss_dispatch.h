#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// `workers.dispatch`: by which function sessions find their owner, and what devices were told of it. With `rss`, where
// several workers run and at least one port's device gives the same owner (port/rss.h), the owner follows from the
// symmetric Toeplitz hash; else from the keyed hash, which no device can compute. Chosen once, at start: it decides
// where every session is. Control thread.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/flow_hash.h"
#include "pipeline/owner.h"
#include "port/rss.h"

namespace cachewire::control {

struct RssPort {
    std::string name, driver;
    std::unique_ptr<port::RssDevice> device;
    std::vector<std::vector<std::uint16_t>> queues;  // of this port, by the worker that polls them
};

class RssDispatch {
  public:
    using Say = std::function<void(const std::string&)>;

    // `seed.rss` is not in use. `wanted`: the file says `rss`.
    RssDispatch(bool wanted, unsigned workers, const net::HashSeed& seed, Say say);

    // Once, before the first snapshot. Says for each port whether its device is used, or why not.
    void choose(std::span<const RssPort> ports);
    // A port that came or came back, or whose buckets have other owners now. Only where RSS is used; silent when it
    // goes well.
    void tell(const RssPort& port) const;

    [[nodiscard]] bool uses_rss() const noexcept { return seed_.rss.in_use(); }
    [[nodiscard]] const net::HashSeed& seed() const noexcept { return seed_; }
    // Buckets from here on have the owners of those before: no device tells them apart. A power of two.
    [[nodiscard]] unsigned granularity() const noexcept { return granularity_; }
    [[nodiscard]] const pipeline::Owners& owners() const noexcept { return owners_; }
    void set_owners(const pipeline::Owners& owners) noexcept { owners_ = owners; }

  private:
    [[nodiscard]] std::string try_device(const RssPort& port, const net::HashSeed& seed) const;
    [[nodiscard]] std::string why_not(const port::RssDevice::Offer& offer) const;

    bool wanted_;
    unsigned workers_;
    net::HashSeed seed_;
    Say say_;
    unsigned granularity_ = pipeline::kOwnerBuckets;
    pipeline::Owners owners_;
};

}  // namespace cachewire::control
