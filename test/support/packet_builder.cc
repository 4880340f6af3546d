// SPDX-License-Identifier: BSD-3-Clause
#include "support/packet_builder.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

#include "net/checksum.h"
#include "net/prefix.h"

namespace cachewire::test {

namespace {

void store16(Bytes& bytes, std::size_t at, std::uint16_t value) {
    bytes.at(at) = static_cast<std::uint8_t>(value >> 8);
    bytes.at(at + 1) = static_cast<std::uint8_t>(value);
}

// A checksum is computed in memory order.
void store_checksum(Bytes& bytes, std::size_t at, std::uint16_t value) { std::memcpy(&bytes.at(at), &value, 2); }

Bytes padded(Bytes bytes, std::size_t head, std::size_t unit) {
    while ((bytes.size() + head) % unit != 0) bytes.push_back(0);
    return bytes;
}

net::Address ip_address(const Bytes& bytes, std::size_t ip, bool dst) {
    net::Address a;
    if (bytes.at(ip) >> 4 == 6) {
        std::memcpy(a.bytes.data(), bytes.data() + ip + 8 + (dst ? 16 : 0), 16);
        return a;
    }
    a.bytes[10] = a.bytes[11] = 0xff;
    std::memcpy(a.bytes.data() + 12, bytes.data() + ip + 12 + (dst ? 4 : 0), 4);
    return a;
}

}  // namespace

void PacketBuilder::put16(std::uint16_t value) {
    put8(static_cast<std::uint8_t>(value >> 8));
    put8(static_cast<std::uint8_t>(value));
}

void PacketBuilder::put32(std::uint32_t value) {
    put16(static_cast<std::uint16_t>(value >> 16));
    put16(static_cast<std::uint16_t>(value));
}

void PacketBuilder::next_at(NextField kind, std::size_t offset) {
    next_ = kind;
    next_offset_ = offset;
}

// Names the new layer in the header above it; answers the layer's offset.
std::size_t PacketBuilder::begin(std::uint16_t ether_type, std::optional<std::uint8_t> protocol) {
    if (next_ == NextField::ether_type && ether_type != 0) store16(bytes_, next_offset_, ether_type);
    if (next_ == NextField::protocol && protocol) bytes_.at(next_offset_) = *protocol;
    next_ = NextField::none;
    return bytes_.size();
}

PacketBuilder& PacketBuilder::eth(const net::Mac& dst, const net::Mac& src) {
    begin(0x6558, std::nullopt);
    bytes_.insert(bytes_.end(), dst.bytes.begin(), dst.bytes.end());
    bytes_.insert(bytes_.end(), src.bytes.begin(), src.bytes.end());
    put16(0);
    next_at(NextField::ether_type, bytes_.size() - 2);
    return *this;
}

PacketBuilder& PacketBuilder::vlan(std::uint16_t vid, std::uint16_t tpid, std::uint8_t pcp) {
    begin(tpid, std::nullopt);
    put16(static_cast<std::uint16_t>(pcp << 13 | vid));
    put16(0);
    next_at(NextField::ether_type, bytes_.size() - 2);
    return *this;
}

PacketBuilder& PacketBuilder::ether_type(std::uint16_t type) {
    begin(type, std::nullopt);
    return *this;
}

PacketBuilder& PacketBuilder::ip4(std::string_view src, std::string_view dst, const Ip4Fields& fields) {
    const std::size_t at = ip_ = begin(0x0800, 4);
    const Bytes options = padded(fields.options, 0, 4);
    const auto words = static_cast<std::uint8_t>(5 + options.size() / 4);
    put8(static_cast<std::uint8_t>(fields.version.value_or(4) << 4 | fields.header_words.value_or(words)));
    put8(fields.tos);
    put16(fields.total_length.value_or(0));
    put16(fields.id);
    put16(fields.fragment);
    put8(fields.ttl);
    put8(fields.proto.value_or(253));  // "for experimentation" unless a layer follows
    put16(0);
    put32(address(src).v4());
    put32(address(dst).v4());
    put(options);
    if (!fields.total_length) fix_ups_.push_back({Fix::ip4_length, at, at});
    if (fields.checksum) {
        store16(bytes_, at + 10, *fields.checksum);
    } else {
        fix_ups_.push_back({Fix::ip4_checksum, at, at});
    }
    if (!fields.proto) next_at(NextField::protocol, at + 9);
    return *this;
}

PacketBuilder& PacketBuilder::ip6(std::string_view src, std::string_view dst, const Ip6Fields& fields) {
    const std::size_t at = ip_ = begin(0x86dd, 41);
    put32(static_cast<std::uint32_t>(fields.version.value_or(6)) << 28 |
          static_cast<std::uint32_t>(fields.traffic_class) << 20 | fields.flow_label);
    put16(fields.payload_length.value_or(0));
    put8(fields.next_header.value_or(59));  // no next header unless a layer follows
    put8(fields.hop_limit);
    for (const auto text : {src, dst}) {
        const net::Address a = address(text);
        bytes_.insert(bytes_.end(), a.bytes.begin(), a.bytes.end());
    }
    if (!fields.payload_length) fix_ups_.push_back({Fix::ip6_length, at, at});
    if (!fields.next_header) next_at(NextField::protocol, at + 6);
    return *this;
}

PacketBuilder& PacketBuilder::extension(std::uint8_t type, const Bytes& body, std::optional<std::uint8_t> length) {
    const std::size_t at = begin(0, type);
    const Bytes whole = padded(body.empty() ? Bytes(6) : body, 2, 8);
    put8(59);
    put8(length.value_or(static_cast<std::uint8_t>((whole.size() + 2) / 8 - 1)));
    put(whole);
    next_at(NextField::protocol, at);
    return *this;
}

PacketBuilder& PacketBuilder::routing(std::uint8_t type, std::uint8_t segments_left, const Bytes& data) {
    Bytes body(2 + data.size());
    body[0] = type;
    body[1] = segments_left;
    std::copy(data.begin(), data.end(), body.begin() + 2);
    return extension(43, body);
}

PacketBuilder& PacketBuilder::fragment(std::uint16_t offset_units, bool more, std::uint32_t id) {
    const std::size_t at = begin(0, 44);
    put8(59);
    put8(0);
    put16(static_cast<std::uint16_t>(offset_units << 3 | (more ? 1 : 0)));
    put32(id);
    next_at(NextField::protocol, at);
    return *this;
}

PacketBuilder& PacketBuilder::authentication(std::size_t icv_bytes) {
    const std::size_t at = begin(0, 51);
    put8(59);
    put8(static_cast<std::uint8_t>((12 + icv_bytes) / 4 - 2));  // RFC 4302 2.2: 32-bit words minus 2
    put16(0);
    put32(0x1234);
    put32(1);
    put(Bytes(icv_bytes, 0xaa));
    next_at(NextField::protocol, at);
    return *this;
}

PacketBuilder& PacketBuilder::tcp(std::uint16_t src_port, std::uint16_t dst_port, const TcpFields& fields) {
    const std::size_t at = begin(0, 6);
    const Bytes options = padded(fields.options, 0, 4);
    put16(src_port);
    put16(dst_port);
    put32(fields.sequence);
    put32(fields.acknowledgment);
    put8(
        static_cast<std::uint8_t>(fields.data_offset.value_or(static_cast<std::uint8_t>(5 + options.size() / 4)) << 4));
    put8(fields.flags);
    put16(8192);
    put16(fields.checksum.value_or(0));
    put16(0);
    put(options);
    if (!fields.checksum) fix_ups_.push_back({Fix::tcp_checksum, at, ip_});
    return *this;
}

PacketBuilder& PacketBuilder::udp(std::uint16_t src_port, std::uint16_t dst_port, const UdpFields& fields) {
    const std::size_t at = begin(0, 17);
    put16(src_port);
    put16(dst_port);
    put16(fields.length.value_or(0));
    put16(fields.checksum.value_or(0));
    if (!fields.length) fix_ups_.push_back({Fix::udp_length, at, ip_});
    if (!fields.checksum) fix_ups_.push_back({Fix::udp_checksum, at, ip_});
    return *this;
}

PacketBuilder& PacketBuilder::sctp(std::uint16_t src_port, std::uint16_t dst_port) {
    begin(0, 132);
    put16(src_port);
    put16(dst_port);
    put32(0x1234);
    put32(0);
    return *this;
}

PacketBuilder& PacketBuilder::icmp_like(std::uint8_t protocol, Fix fix, std::uint8_t type, std::uint8_t code,
                                        std::uint16_t identifier, std::uint16_t sequence) {
    const std::size_t at = begin(0, protocol);
    put8(type);
    put8(code);
    put16(0);
    put16(identifier);
    put16(sequence);
    fix_ups_.push_back({fix, at, ip_});
    return *this;
}

PacketBuilder& PacketBuilder::icmp(std::uint8_t type, std::uint8_t code, std::uint16_t identifier,
                                   std::uint16_t sequence) {
    return icmp_like(1, Fix::icmp_checksum, type, code, identifier, sequence);
}

PacketBuilder& PacketBuilder::icmp6(std::uint8_t type, std::uint8_t code, std::uint16_t identifier,
                                    std::uint16_t sequence) {
    return icmp_like(58, Fix::icmp6_checksum, type, code, identifier, sequence);
}

PacketBuilder& PacketBuilder::payload(std::size_t size) {
    begin(0, std::nullopt);
    for (std::size_t i = 0; i < size; ++i) put8(static_cast<std::uint8_t>(i));
    return *this;
}

PacketBuilder& PacketBuilder::payload(const Bytes& bytes) {
    begin(0, std::nullopt);
    put(bytes);
    return *this;
}

PacketBuilder& PacketBuilder::pad_to(std::size_t frame_size, std::uint8_t with) {
    while (bytes_.size() < frame_size) {
        put8(with);
        ++padding_;
    }
    return *this;
}

Bytes PacketBuilder::bytes() const {
    Bytes out = bytes_;
    const std::size_t end = out.size() - padding_;
    const auto length = [end](std::size_t from) { return static_cast<std::uint16_t>(end - from); };
    const auto l4 = [&](const FixUp& f, std::uint8_t protocol) {
        return net::l4_checksum(ip_address(out, f.ip, false), ip_address(out, f.ip, true), protocol,
                                std::span(out).subspan(f.layer, end - f.layer));
    };
    // Lengths stand above checksums in the list of each layer, and inner layers are done before outer checksums matter:
    // an IPv4 header's sum covers that header alone.
    for (auto f = fix_ups_.rbegin(); f != fix_ups_.rend(); ++f) {
        if (f->what == Fix::ip4_length) store16(out, f->layer + 2, length(f->layer));
        if (f->what == Fix::ip6_length) store16(out, f->layer + 4, length(f->layer + 40));
        if (f->what == Fix::udp_length) store16(out, f->layer + 4, length(f->layer));
    }
    for (auto f = fix_ups_.rbegin(); f != fix_ups_.rend(); ++f) {
        switch (f->what) {
            case Fix::ip4_checksum: {
                const std::size_t header =
                    std::min<std::size_t>(std::size_t{4} * (out[f->layer] & 15u), end - f->layer);
                store_checksum(out, f->layer + 10, net::checksum(std::span(out).subspan(f->layer, header)));
                break;
            }
            case Fix::tcp_checksum:
                store_checksum(out, f->layer + 16, l4(*f, 6));
                break;
            case Fix::udp_checksum: {
                const std::uint16_t sum = l4(*f, 17);
                store_checksum(out, f->layer + 6, sum == 0 ? 0xffff : sum);
                break;
            }
            case Fix::icmp_checksum:
                store_checksum(out, f->layer + 2, net::checksum(std::span(out).subspan(f->layer, end - f->layer)));
                break;
            case Fix::icmp6_checksum:
                store_checksum(out, f->layer + 2, l4(*f, 58));
                break;
            default:
                break;
        }
    }
    return out;
}

}  // namespace cachewire::test
