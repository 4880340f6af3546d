#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Every difference between DPDK 22.11 and 25.11 that the project meets, in one place.
#include <cstdint>

#include <rte_ether.h>
#include <rte_telemetry.h>
#include <rte_version.h>
#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
#include <rte_ip6.h>
#endif

namespace cachewire::base {

// 23.03 renamed the unsigned adders from _u64 to _uint.
inline int tel_add_dict_uint(rte_tel_data* dict, const char* name, std::uint64_t value) {
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
    return rte_tel_data_add_dict_uint(dict, name, value);
#else
    return rte_tel_data_add_dict_u64(dict, name, value);
#endif
}

inline int tel_add_array_uint(rte_tel_data* array, std::uint64_t value) {
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
    return rte_tel_data_add_array_uint(array, value);
#else
    return rte_tel_data_add_array_u64(array, value);
#endif
}

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
inline constexpr auto kTelUintArray = RTE_TEL_UINT_VAL;
#else
inline constexpr auto kTelUintArray = RTE_TEL_U64_VAL;
#endif

// 24.11 gave IPv6 addresses a type in rte_fib6 and rte_rib6; before they were arrays of 16 bytes.
#if RTE_VERSION >= RTE_VERSION_NUM(24, 11, 0, 0)
inline const rte_ipv6_addr* ip6_argument(const std::uint8_t* address) {
    return reinterpret_cast<const rte_ipv6_addr*>(address);
}
template <class Address16>
rte_ipv6_addr* ip6_array_argument(Address16* addresses) noexcept {
    static_assert(sizeof(Address16) == 16);
    return reinterpret_cast<rte_ipv6_addr*>(addresses);
}
#else
inline const std::uint8_t* ip6_argument(const std::uint8_t* address) { return address; }
template <class Address16>
std::uint8_t (*ip6_array_argument(Address16* addresses) noexcept)[16] {
    static_assert(sizeof(Address16) == 16);
    return reinterpret_cast<std::uint8_t(*)[16]>(addresses);
}
#endif

}  // namespace cachewire::base
