// SPDX-License-Identifier: BSD-3-Clause
#include "telemetry/tel_data.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/dpdk_compat.h"
#include "base/error.h"

namespace cachewire::telemetry {

namespace {

struct Free {
    void operator()(rte_tel_data* data) const { rte_tel_data_free(data); }
};
using Container = std::unique_ptr<rte_tel_data, Free>;

// Positive is E2BIG: cut. to_wire() keeps every text under the limit, so that is a fault as well.
void require(int rc, const char* what) { base::check(rc > 0 ? -rc : rc, what); }

void fill_array(rte_tel_data* data, const Json& array) {
    const Json first = array.empty() ? Json("") : array[0];
    bool all_unsigned = true;
    for (const Json& e : array) all_unsigned = all_unsigned && e.is_number_unsigned();
    const auto type = first.is_string() ? RTE_TEL_STRING_VAL : all_unsigned ? base::kTelUintArray : RTE_TEL_INT_VAL;
    require(rte_tel_data_start_array(data, type), "rte_tel_data_start_array");
    for (const Json& e : array) {
        int rc;
        if (type == RTE_TEL_STRING_VAL) {
            rc = rte_tel_data_add_array_string(data, e.get_ref<const std::string&>().c_str());
        } else if (type == RTE_TEL_INT_VAL) {
            rc = rte_tel_data_add_array_int(data, e.get<int>());
        } else {
            rc = base::tel_add_array_uint(data, e.get<std::uint64_t>());
        }
        require(rc, "rte_tel_data_add_array");
    }
}

// The library frees a container after it wrote the answer. Should an entry fail, the answer is replaced and the library
// forgets its containers, so they stay ours until the last entry is in.
void fill_dictionary(rte_tel_data* data, const Json& object) {
    std::vector<Container> containers;
    for (const auto& [key, value] : object.items()) {
        if (!value.is_structured()) continue;
        containers.emplace_back(rte_tel_data_alloc());
        if (containers.back() == nullptr) throw base::MachineError("rte_tel_data_alloc: out of memory");
        fill(containers.back().get(), value);
    }
    require(rte_tel_data_start_dict(data), "rte_tel_data_start_dict");
    std::size_t next = 0;
    for (const auto& [key, value] : object.items()) {
        int rc;
        if (value.is_structured()) {
            rc = rte_tel_data_add_dict_container(data, key.c_str(), containers[next++].get(), 0);
        } else if (value.is_string()) {
            rc = rte_tel_data_add_dict_string(data, key.c_str(), value.get_ref<const std::string&>().c_str());
        } else if (value.is_number_unsigned()) {
            rc = base::tel_add_dict_uint(data, key.c_str(), value.get<std::uint64_t>());
        } else {
            rc = rte_tel_data_add_dict_int(data, key.c_str(), value.get<int>());
        }
        require(rc, "rte_tel_data_add_dict");
    }
    for (Container& container : containers) static_cast<void>(container.release());
}

}  // namespace

void fill(rte_tel_data* data, const Json& wire_value) {
    try {
        if (wire_value.is_array()) {
            fill_array(data, wire_value);
        } else {
            fill_dictionary(data, wire_value);
        }
    } catch (...) {
        rte_tel_data_start_dict(data);
        throw;
    }
}

}  // namespace cachewire::telemetry
