// SPDX-License-Identifier: BSD-3-Clause
#include "net/ip6_extensions.h"

namespace cachewire::net {

namespace {

using Verdict = Ip6Chain::Verdict;

constexpr std::uint8_t kPad1 = 0;
constexpr std::uint8_t kJumboPayload = 0xc2;

// Hop-by-hop and destination options are rows of type, length, data, with Pad1 as the one exception (RFC 8200 4.2).
Verdict check_options(std::span<const std::uint8_t> options) noexcept {
    while (!options.empty()) {
        if (options[0] == kPad1) {
            options = options.subspan(1);
            continue;
        }
        // RFC 2675 3: never beside a payload length, and without one the packet is none that an mbuf can hold.
        if (options[0] == kJumboPayload) return Verdict::jumbogram;
        if (options.size() < 2) return Verdict::truncated;
        const std::size_t size = 2u + options[1];
        if (size > options.size()) return Verdict::truncated;
        options = options.subspan(size);
    }
    return Verdict::ok;
}

// 0 for a length that the header can't have.
std::size_t extension_bytes(std::uint8_t type, const std::uint8_t* header) noexcept {
    if (type == kProtoFragment) return 8;
    if (type == kProtoAuthentication)
        return header[1] == 0 ? 0 : (std::size_t{header[1]} + 2) * 4;  // RFC 4302 2.2: 12 bytes are fixed
    return (std::size_t{header[1]} + 1) * 8;
}

// RFC 8200 4.5: pieces but the last are multiples of 8 bytes, and the whole has a 16-bit payload length.
bool fragment_fits(std::uint16_t fragment, std::size_t length, std::size_t data_offset) noexcept {
    const std::size_t data = length - data_offset;
    if ((fragment & 1) != 0 && data % 8 != 0) return false;
    const std::size_t before = data_offset - kIp6Bytes - 8;  // headers that each piece repeats
    return before + (fragment & 0xfff8u) + data <= 65535;
}

}  // namespace

Ip6Chain walk_ip6_extensions(const std::uint8_t* datagram, std::size_t length) noexcept {
    Ip6Chain chain;
    const auto refuse = [&chain](Verdict verdict) {
        chain.verdict = verdict;
        return chain;
    };
    std::size_t offset = kIp6Bytes;
    std::uint8_t next = datagram[6];
    bool fragment_seen = false;
    for (unsigned count = 0; is_ip6_extension(next); ++count) {
        const std::uint8_t* header = datagram + offset;
        if (offset + 8 > length) return refuse(Verdict::truncated);
        if (count == kMaxIp6Extensions || offset + 8 > kIp6Bytes + kMaxIp6ExtensionBytes)
            return refuse(Verdict::over_limit);
        const std::size_t size = extension_bytes(next, header);
        if (size == 0 || offset + size > length) return refuse(Verdict::truncated);
        if (offset + size > kIp6Bytes + kMaxIp6ExtensionBytes) return refuse(Verdict::over_limit);

        const std::uint8_t type = next;
        next = header[0];
        offset += size;
        if (type == kProtoHopByHop && count != 0) return refuse(Verdict::order);
        if (type == kProtoHopByHop || type == kProtoDestinationOptions) {
            const Verdict verdict = check_options({header + 2, size - 2});
            if (verdict != Verdict::ok) return refuse(verdict);
        }
        if (type == kProtoRouting && header[2] == 0) return refuse(Verdict::routing_type_0);  // RFC 5095
        if (type != kProtoFragment) {
            chain.has_options = true;
            continue;
        }
        if (fragment_seen) return refuse(Verdict::order);
        fragment_seen = true;
        chain.fragment = load16_be(header + 2) & 0xfff9;
        if (!fragment_fits(chain.fragment, length, offset)) return refuse(Verdict::fragment_length);
        if (chain.fragment > 7) break;  // past offset 0 no header follows
    }
    chain.proto = next;
    chain.upper_offset = static_cast<std::uint16_t>(offset);
    return chain;
}

}  // namespace cachewire::net
