#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Two memif wires between this process and a forwarder, and the one lcore that sends and counts.
//
// The forwarder is memif's server and copies each frame in and out; this end is the client with zero-copy where there
// are 2 MB pages: its frames lie in the memory that both see, so that it has a third of the forwarder's work at most
// and the forwarder is what is measured. Two that both copy are alike in speed, and which of them is the slower one,
// hence how full rings and bursts are, was a matter of luck: a factor of three from one start to the next.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "peer_memory.h"

struct rte_mbuf;
struct rte_mempool;

namespace cachewire::bench {

inline constexpr unsigned kPeerFlows = 100000;
inline constexpr const char* kPeerMacs[] = {"02:00:00:00:00:01", "02:00:00:00:00:02"};

// This process' end of a wire.
class PeerPort {
  public:
    PeerPort(std::string name, const std::string& socket, unsigned rx_queues, rte_mempool* pool);
    ~PeerPort();
    PeerPort(const PeerPort&) = delete;
    PeerPort& operator=(const PeerPort&) = delete;

    [[nodiscard]] bool is_connected() const;
    [[nodiscard]] std::uint16_t id() const noexcept { return id_; }
    [[nodiscard]] unsigned rx_queues() const noexcept { return rx_queues_; }

  private:
    std::string name_;
    std::uint16_t id_ = 0;
    unsigned rx_queues_;
};

struct PeerCount {
    std::uint64_t offers = 0, refused = 0;  // bursts; refused: the ring had not room for all of one
    std::uint64_t taken = 0, received = 0;  // frames
    double seconds = 0;
};

// The wires of one start. Pools are new for each: a port that is closed keeps what was on its way.
class PeerWires {
  public:
    // `queues`: how many the forwarder sends on, 0 as long as nobody knows.
    PeerWires(std::string folder, unsigned& queues);
    ~PeerWires();
    PeerWires(const PeerWires&) = delete;
    PeerWires& operator=(const PeerWires&) = delete;

    // One try to connect what isn't connected yet; true where both are.
    bool connect();
    [[nodiscard]] bool are_connected() const;
    [[nodiscard]] bool has_socket(unsigned side) const;
    // Sends the flows to `west` as fast as they are taken, and counts what comes out of `east`.
    void run(double seconds, PeerCount& count);
    // A reply to each flow, from `east`, so that whoever tracks them has seen both directions. Ends after a few
    // seconds, whether all were taken or not: a forwarder without a way back doesn't need it.
    void answer();
    // What the forwarder did to the last frame that came out: "as it was", "new MACs, TTL less".
    [[nodiscard]] const std::string& change() const noexcept { return change_; }

  private:
    unsigned receive(unsigned side);
    rte_mbuf* answer_to(const rte_mbuf& frame);
    void note_change(const rte_mbuf& frame);

    bool connect(unsigned side, unsigned queues);

    std::string folder_;
    unsigned& queues_;
    MemoryFiles memory_;
    rte_mempool *received_ = nullptr, *flows_ = nullptr;
    std::vector<rte_mbuf*> frames_;
    std::array<std::unique_ptr<PeerPort>, 2> ports_;
    std::string change_;
    unsigned next_ = 0, try_ = 0;
};

// The forwarder's device of this side, as EAL's --vdev has it.
std::string peer_device(const std::string& folder, unsigned side);

}  // namespace cachewire::bench
