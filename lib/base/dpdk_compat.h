#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Every difference between DPDK 22.11 and 25.11 that the project meets, in one place.
#include <cstdint>

#include <rte_ether.h>
#include <rte_telemetry.h>
#include <rte_version.h>

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

}  // namespace cachewire::base
