// SPDX-License-Identifier: BSD-3-Clause
#include "base/json.h"

template class nlohmann::basic_json<nlohmann::ordered_map>;
