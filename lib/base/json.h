#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// JSON, compiled once: the template's members stand in json.cc, so that each of some forty files that use it does not
// generate them again (a fifth of their compile time).
#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<nlohmann::ordered_map>;
