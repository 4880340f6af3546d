// SPDX-License-Identifier: BSD-3-Clause
#include "port/xdp_buffers.h"

#include <algorithm>
#include <bit>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include <linux/if_xdp.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/own_descriptors.h"

namespace cachewire::port {

namespace {

constexpr std::uint64_t kAddressMask = (std::uint64_t{1} << XSK_UNALIGNED_BUF_OFFSET_SHIFT) - 1;
constexpr std::size_t kPage = 4096;

struct Mapping {
    std::uint64_t inode, offset;  // the offset says which ring it is
    const char* begin;
    std::size_t bytes;
};

// A line of /proc/self/maps: "7f00-7f90 rw-s 100000000 00:09 1316 socket:[1316]".
std::vector<Mapping> mapped_sockets() {
    std::vector<Mapping> mappings;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find(" socket:[") == std::string::npos) continue;
        std::istringstream words(line);
        std::uint64_t begin = 0, end = 0, offset = 0, inode = 0;
        char dash = 0;
        std::string rights, device;
        words >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> std::dec >> inode;
        // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel says addresses as numbers
        if (words) mappings.push_back({inode, offset, reinterpret_cast<const char*>(begin), end - begin});
    }
    return mappings;
}

// -1: closed.
int descriptor_of(std::uint64_t inode) {
    for (const int fd : own_descriptors()) {
        struct stat status {};
        if (fstat(fd, &status) == 0 && status.st_ino == inode && S_ISSOCK(status.st_mode)) return fd;
    }
    return -1;
}

// What the kernel says of the socket under this option.
template <class T>
std::optional<T> ask(std::uint64_t inode, int option) {
    T answer{};
    socklen_t size = sizeof answer;
    const bool known = getsockopt(descriptor_of(inode), SOL_XDP, option, &answer, &size) == 0 && size == sizeof answer;
    return known ? std::optional(answer) : std::nullopt;
}

// Entries between the two positions, oldest first.
class Ring {
  public:
    // `entry_bytes`: 8 for addresses, 16 for descriptors that begin with one. The mapping ends on a page, so its
    // entries, a power of two, are told from twice as many only where they fill a page more.
    Ring(const Mapping& mapping, const xdp_ring_offset& at, std::size_t entry_bytes)
        : producer_(*reinterpret_cast<const std::uint32_t*>(mapping.begin + at.producer)),
          consumer_(*reinterpret_cast<const std::uint32_t*>(mapping.begin + at.consumer)),
          entries_(mapping.begin + at.desc),
          entry_bytes_(entry_bytes) {
        const std::size_t entries = std::bit_floor((mapping.bytes - at.desc) / entry_bytes);
        if (entries * entry_bytes >= 2 * kPage) size_ = static_cast<std::uint32_t>(entries);
    }

    void read_into(std::vector<std::uint64_t>& addresses) const {
        if (producer_ - consumer_ > size_) return;
        for (std::uint32_t at = consumer_; at != producer_; ++at)
            addresses.push_back(*reinterpret_cast<const std::uint64_t*>(entries_ + (at & (size_ - 1)) * entry_bytes_) &
                                kAddressMask);
    }
    [[nodiscard]] std::uint32_t consumed() const { return consumer_; }
    [[nodiscard]] std::uint32_t produced() const { return producer_; }

  private:
    std::uint32_t producer_, consumer_;
    const char* entries_;
    std::size_t entry_bytes_;
    std::uint32_t size_ = 0;
};

struct Rings {
    std::vector<std::uint64_t> received, sent;  // addresses
    std::uint32_t taken_to_send = 0, sent_and_returned = 0;
};

// A buffer goes from fill to receive and from send to completion: read in that order none is missed between the two.
Rings read_rings(const std::vector<Mapping>& mappings, std::uint64_t inode, const xdp_mmap_offsets& at) {
    Rings rings;
    const auto read = [&](std::uint64_t offset, const xdp_ring_offset& where, std::size_t entry_bytes, auto&& use) {
        for (const Mapping& mapping : mappings)
            if (mapping.inode == inode && mapping.offset == offset) use(Ring(mapping, where, entry_bytes));
    };
    const auto into = [](std::vector<std::uint64_t>& to) { return [&to](const Ring& ring) { ring.read_into(to); }; };
    read(XDP_UMEM_PGOFF_FILL_RING, at.fr, sizeof(std::uint64_t), into(rings.received));
    read(XDP_PGOFF_RX_RING, at.rx, sizeof(xdp_desc), into(rings.received));
    read(XDP_PGOFF_TX_RING, at.tx, sizeof(xdp_desc), [&](const Ring& ring) {
        ring.read_into(rings.sent);
        rings.taken_to_send = ring.consumed();
    });
    read(XDP_UMEM_PGOFF_COMPLETION_RING, at.cr, sizeof(std::uint64_t), [&](const Ring& ring) {
        ring.read_into(rings.sent);
        rings.sent_and_returned = ring.produced();
    });
    return rings;
}

void sort_out_twins(std::vector<rte_mbuf*>& mbufs) {
    std::sort(mbufs.begin(), mbufs.end());
    mbufs.erase(std::unique(mbufs.begin(), mbufs.end()), mbufs.end());
}

// The driver counts addresses from the page in which the pool's memory begins.
class Buffers {
  public:
    explicit Buffers(rte_mempool* pool) : header_bytes_(pool->header_size) {
        const auto* memory = STAILQ_FIRST(&pool->mem_list);
        base_ = reinterpret_cast<std::uintptr_t>(memory->addr) & ~std::uintptr_t{kPage - 1};
        rte_mempool_obj_iter(
            pool,
            [](rte_mempool*, void* all, void* mbuf, unsigned) { static_cast<decltype(all_)*>(all)->push_back(mbuf); },
            &all_);
        std::sort(all_.begin(), all_.end());
    }

    // False: not all of them are buffers of the pool.
    bool translate(const std::vector<std::uint64_t>& addresses, std::vector<rte_mbuf*>& to) const {
        for (const std::uint64_t address : addresses) {
            // NOLINTNEXTLINE(performance-no-int-to-ptr): offsets are what the rings hold
            void* const mbuf = reinterpret_cast<void*>(base_ + address + header_bytes_);
            if (!std::binary_search(all_.begin(), all_.end(), mbuf)) return false;
            to.push_back(static_cast<rte_mbuf*>(mbuf));
        }
        return true;
    }

  private:
    std::uintptr_t base_;
    unsigned header_bytes_;
    std::vector<void*> all_;
};

}  // namespace

std::vector<std::uint64_t> xdp_sockets() {
    std::vector<std::uint64_t> inodes;
    for (const Mapping& mapping : mapped_sockets())
        if (mapping.offset == XDP_UMEM_PGOFF_FILL_RING) inodes.push_back(mapping.inode);
    std::sort(inodes.begin(), inodes.end());
    return inodes;
}

std::uint64_t xdp_ring_full(const std::vector<std::uint64_t>& sockets) {
    std::uint64_t frames = 0;
    for (const std::uint64_t inode : sockets)
        if (const auto statistics = ask<xdp_statistics>(inode, XDP_STATISTICS)) frames += statistics->rx_ring_full;
    return frames;
}

void close_left_sockets(const std::vector<std::uint64_t>& sockets) noexcept {
    for (const std::uint64_t inode : sockets)
        if (const int fd = descriptor_of(inode); fd >= 0) close(fd);
}

XdpBuffers find_xdp_buffers(const std::vector<std::uint64_t>& sockets, rte_mempool* pool) {
    XdpBuffers result;
    if (sockets.empty()) return result;
    const Buffers buffers(pool);
    const std::vector<Mapping> mappings = mapped_sockets();
    for (const std::uint64_t inode : sockets) {
        const auto at = ask<xdp_mmap_offsets>(inode, XDP_MMAP_OFFSETS);
        std::vector<rte_mbuf*> received, sent;
        Rings rings;
        if (at) rings = read_rings(mappings, inode, *at);
        if (!at || !buffers.translate(rings.received, received) || !buffers.translate(rings.sent, sent)) {
            result.lost += 2 * kXdpFill;
            continue;
        }
        sort_out_twins(received);
        result.lost += kXdpFill - std::min<unsigned>(kXdpFill, static_cast<unsigned>(received.size()));
        result.lost += rings.taken_to_send - rings.sent_and_returned;
        result.found.insert(result.found.end(), received.begin(), received.end());
        result.found.insert(result.found.end(), sent.begin(), sent.end());
    }
    sort_out_twins(result.found);
    return result;
}

}  // namespace cachewire::port
