// SPDX-License-Identifier: BSD-3-Clause
#include "pipeline/parse_oracle.h"

#include <vector>

namespace cachewire::test {

namespace {

using pipeline::DropReason;

struct Dropped {
    DropReason reason;
};

void require(bool condition, DropReason reason) {
    if (!condition) throw Dropped{reason};
}

class Slow {
  public:
    Slow(const Bytes& frame, const pipeline::Port& port, OracleResult& out) : frame_(frame), port_(port), out_(out) {}

    void parse() {
        ethernet();
        const unsigned type = two(out_.l3_offset - 2);
        if (type == 0x0800) {
            ip4();
        } else if (type == 0x86dd) {
            require(!neighbor_discovery(), DropReason::nd);
            out_.ipv6 = true;
            ip6();
        } else {
            throw Dropped{type == 0x0806 ? DropReason::arp : DropReason::not_ip};
        }
    }

  private:
    unsigned one(std::size_t at) const { return frame_.at(at); }
    unsigned two(std::size_t at) const { return one(at) << 8 | one(at + 1); }
    unsigned long four(std::size_t at) const { return static_cast<unsigned long>(two(at)) << 16 | two(at + 2); }

    bool neighbor_discovery() const {
        const std::size_t ip = out_.l3_offset;
        if (frame_.size() < ip + 44 || one(ip) / 16 != 6) return false;
        const bool any = one(ip + 40) == 133 || one(ip + 40) == 134 || one(ip + 40) == 135 || one(ip + 40) == 136 ||
                         one(ip + 40) == 137;
        return one(ip + 6) == 58 && one(ip + 7) == 255 && any;
    }

    void ethernet() {
        require(frame_.size() >= 14, DropReason::frame_short);
        bool own = true;
        broadcast_mac_ = true;
        for (std::size_t i = 0; i < 6; ++i) {
            own = own && frame_[i] == port_.mac.bytes[i];
            broadcast_mac_ = broadcast_mac_ && frame_[i] == 0xff;
        }
        group_mac_ = frame_[0] % 2 == 1;
        require(own || group_mac_, DropReason::foreign_mac);

        std::vector<unsigned> tags;
        std::size_t at = 14;
        while (two(at - 2) == 0x8100 || two(at - 2) == 0x88a8) {
            require(frame_.size() >= at + 4, DropReason::vlan_truncated);
            tags.push_back(two(at));
            require(tags.size() <= 2, DropReason::vlan_depth);
            at += 4;
        }
        std::vector<unsigned> vlans;
        for (const unsigned tag : tags) {
            if (tag % 4096 != 0) vlans.push_back(tag % 4096);
        }
        if (!tags.empty()) out_.key.pcp = static_cast<std::uint8_t>(tags[0] >> 13);
        attach(vlans);
        out_.l3_offset = at;
    }

    void attach(std::vector<unsigned> vlans) {
        vlans.resize(2);
        pipeline::Attachment found{};
        if (vlans[0] == 0) {
            found = port_.untagged;
        } else if (vlans[0] != 4095 && vlans[1] != 4095) {
            // From the least to the most specific; the last one that fits stands.
            for (auto w = port_.wildcards.rbegin(); w != port_.wildcards.rend(); ++w) {
                if (w->outer == 0xffff || w->outer == vlans[0]) found = w->attachment;
            }
            for (const auto& t : port_.tagged) {
                if (t.outer == vlans[0] && t.inner == vlans[1]) found = t.attachment;
            }
        }
        out_.tenant = out_.key.tenant = found.tenant;
        require(found.tenant != 0, DropReason::no_tenant);
        require(found.interface != 0xffff, DropReason::no_interface);
        out_.in_interface = found.interface;
        out_.key.in_interface_be = static_cast<std::uint16_t>(found.interface >> 8 | (found.interface & 0xff) << 8);
    }

    void ip4() {
        const std::size_t at = out_.l3_offset;
        const std::size_t available = frame_.size() - at;
        require(available >= 20, DropReason::ip4_truncated);
        require(one(at) / 16 == 4, DropReason::ip4_version);
        const std::size_t header = std::size_t{4} * (one(at) % 16);
        require(header >= 20 && header <= available, DropReason::ip4_header_length);
        ip4_options(at + 20, at + header);
        unsigned long sum = 0;
        for (std::size_t i = 0; i < header; i += 2) sum += two(at + i);
        require(sum % 65535 == 0, DropReason::ip4_checksum);
        const std::size_t total = two(at + 2);
        require(total >= header && total <= available, DropReason::ip4_total_length);
        const std::size_t offset = std::size_t{8} * (two(at + 6) % 8192);
        const bool more = (two(at + 6) & 0x2000) != 0;
        if (more) require((total - header) % 8 == 0, DropReason::fragment_length);
        if (more || offset != 0) require(offset + total <= 65535, DropReason::fragment_length);

        out_.l3_length = total;
        out_.ttl = frame_[at + 8];
        out_.key.dscp = static_cast<std::uint8_t>(one(at + 1) / 4);
        if (header > 20) out_.key.match_flags |= net::kHasOptions;
        out_.key.src = net::Address::from_v4(static_cast<std::uint32_t>(four(at + 12)));
        out_.key.dst = net::Address::from_v4(static_cast<std::uint32_t>(four(at + 16)));
        addresses4(four(at + 12), four(at + 16));
        upper(one(at + 9), at + header, at + total, offset, more);
    }

    void ip4_options(std::size_t at, std::size_t end) {
        while (at < end && one(at) != 0) {
            const unsigned type = one(at);
            if (type == 1) {
                ++at;
                continue;
            }
            require(type != 131 && type != 137, DropReason::ip4_options);
            require(at + 2 <= end, DropReason::ip4_options);
            const unsigned length = one(at + 1);
            require(length >= (type == 7 ? 3u : type == 68 ? 4u : 2u), DropReason::ip4_options);
            require(at + length <= end, DropReason::ip4_options);
            at += length;
        }
    }

    void addresses4(unsigned long src, unsigned long dst) {
        require(dst != 0xffffffff, DropReason::broadcast);
        require(dst / 0x10000000 != 14, DropReason::multicast);
        const auto bad = [](unsigned long a) {
            return a / 0x1000000 == 0 || a / 0x1000000 == 127 || a / 0x10000 == 0xa9fe || a >= 0xe0000000;
        };
        require(!bad(dst), DropReason::martian_destination);
        require(!bad(src), DropReason::martian_source);
        group_mac();
    }

    void group_mac() {
        require(!broadcast_mac_, DropReason::broadcast);
        require(!group_mac_, DropReason::multicast);
    }

    void ip6() {
        const std::size_t at = out_.l3_offset;
        const std::size_t available = frame_.size() - at;
        require(available >= 40, DropReason::ip6_truncated);
        require(one(at) / 16 == 6, DropReason::ip6_version);
        const std::size_t length = 40 + two(at + 4);
        require(length <= available && length <= 65535, DropReason::ip6_payload_length);
        require(length > 40 || one(at + 6) != 0, DropReason::ip6_payload_length);
        out_.l3_length = length;
        out_.ttl = frame_[at + 7];
        out_.key.dscp = static_cast<std::uint8_t>(two(at) / 64 % 64);
        for (std::size_t i = 0; i < 16; ++i) {
            out_.key.src.bytes[i] = frame_[at + 8 + i];
            out_.key.dst.bytes[i] = frame_[at + 24 + i];
        }
        extensions(at, at + length);
    }

    void extensions(std::size_t ip, std::size_t end) {
        std::size_t at = ip + 40;
        unsigned next = one(ip + 6);
        unsigned count = 0;
        bool fragment = false, more = false;
        std::size_t offset = 0;
        while (offset == 0 && (next == 0 || next == 43 || next == 44 || next == 51 || next == 60)) {
            require(at + 8 <= end, DropReason::ip6_extension_truncated);
            require(++count <= 8 && at + 8 - ip - 40 <= 256, DropReason::ip6_extension_limit);
            std::size_t size = std::size_t{8} * (one(at + 1) + 1);
            if (next == 44) size = 8;
            if (next == 51) {
                require(one(at + 1) >= 1, DropReason::ip6_extension_truncated);
                size = one(at + 1) * 4 + 8;
            }
            require(at + size <= end, DropReason::ip6_extension_truncated);
            require(at + size - ip - 40 <= 256, DropReason::ip6_extension_limit);
            require(next != 0 || count == 1, DropReason::ip6_extension_order);
            if (next == 0 || next == 60) ip6_options(at + 2, at + size);
            require(next != 43 || one(at + 2) != 0, DropReason::ip6_routing_header);
            if (next == 44) {
                require(!fragment, DropReason::ip6_extension_order);
                fragment = true;
                offset = std::size_t{8} * (two(at + 2) / 8);
                more = two(at + 2) % 2 == 1;
                const std::size_t data = end - (at + 8);
                require(!more || data % 8 == 0, DropReason::fragment_length);
                require(at - (ip + 40) + offset + data <= 65535, DropReason::fragment_length);
            } else {
                out_.key.match_flags |= net::kHasOptions;
            }
            next = one(at);
            at += size;
        }
        addresses6();
        upper(next, at, end, offset, more);
    }

    void ip6_options(std::size_t at, std::size_t end) {
        while (at < end) {
            if (one(at) == 0) {
                ++at;
                continue;
            }
            require(one(at) != 0xc2, DropReason::ip6_payload_length);
            require(at + 2 <= end, DropReason::ip6_extension_truncated);
            at += 2 + one(at + 1);
            require(at <= end, DropReason::ip6_extension_truncated);
        }
    }

    void addresses6() {
        const auto begins = [](const net::Address& a, const std::vector<unsigned>& with) {
            for (std::size_t i = 0; i < with.size(); ++i) {
                if (a.bytes[i] != with[i]) return false;
            }
            return true;
        };
        const auto bad = [&](const net::Address& a) {
            std::vector<unsigned> zero(16, 0), one(16, 0), mapped(12, 0);
            one[15] = 1;
            mapped[10] = mapped[11] = 0xff;
            const bool link_local = a.bytes[0] == 0xfe && a.bytes[1] / 64 == 2;
            return begins(a, zero) || begins(a, one) || begins(a, mapped) || link_local;
        };
        const auto mapped = [&](const net::Address& a) {
            return begins(a, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff});
        };
        const net::Address &src = out_.key.src, &dst = out_.key.dst;
        require(!mapped(dst), DropReason::martian_destination);
        require(!mapped(src), DropReason::martian_source);
        require(dst.bytes[0] != 0xff, DropReason::multicast);
        require(!bad(dst), DropReason::martian_destination);
        require(!bad(src) && src.bytes[0] != 0xff, DropReason::martian_source);
        group_mac();
    }

    void upper(unsigned proto, std::size_t at, std::size_t end, std::size_t offset, bool more) {
        out_.key.proto = static_cast<std::uint8_t>(proto);
        if (offset != 0) {
            require(proto != 6 || offset != 8, DropReason::fragment_offset);
            out_.key.match_flags |= net::kFragment | net::kLaterFragment;
            return;
        }
        if (more) out_.key.match_flags |= net::kFragment | net::kFirstFragment;
        if (!(out_.ipv6 && proto == 59)) out_.l4_offset = at;
        const std::size_t size = end - at;
        if (proto == 6) {
            require(size >= 20, DropReason::l4_truncated);
            const std::size_t header = std::size_t{4} * (one(at + 12) / 16);
            require(header >= 20 && header <= size, DropReason::tcp_data_offset);
            out_.key.tcp_flags = frame_[at + 13];
            ports(at, at + 2);
        } else if (proto == 17) {
            require(size >= 8, DropReason::l4_truncated);
            require(two(at + 4) >= 8 && (more || two(at + 4) <= size), DropReason::udp_length);
            ports(at, at + 2);
        } else if (proto == 132) {
            require(size >= 12, DropReason::l4_truncated);
            ports(at, at + 2);
        } else if (proto == (out_.ipv6 ? 58u : 1u)) {
            icmp(at, size);
        }
    }

    void icmp(std::size_t at, std::size_t size) {
        require(size >= (out_.ipv6 ? 4 : 8), DropReason::l4_truncated);
        const unsigned type = one(at);
        const bool echo = out_.ipv6 ? type == 128 || type == 129 : type == 8 || type == 0;
        out_.key.icmp_type = frame_[at];
        out_.key.icmp_code = frame_[at + 1];
        out_.key.match_flags |= net::kL4Known;
        out_.icmp_error = out_.ipv6 ? type < 128 : type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
        if (!echo) return;
        require(size >= 8, DropReason::l4_truncated);
        ports(at + 4, at + 4);
    }

    void ports(std::size_t src, std::size_t dst) {
        out_.key.src_port_be = static_cast<std::uint16_t>(one(src + 1) << 8 | one(src));
        out_.key.dst_port_be = static_cast<std::uint16_t>(one(dst + 1) << 8 | one(dst));
        out_.key.match_flags |= net::kL4Known;
    }

    const Bytes& frame_;
    const pipeline::Port& port_;
    OracleResult& out_;
    bool group_mac_ = false, broadcast_mac_ = false;
};

}  // namespace

OracleResult parse_slowly(const Bytes& frame, const pipeline::Port& port) {
    OracleResult out;
    try {
        Slow(frame, port, out).parse();
    } catch (const Dropped& d) {
        out.drop = d.reason;
    }
    return out;
}

}  // namespace cachewire::test
