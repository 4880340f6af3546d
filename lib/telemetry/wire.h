#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// What DPDK's telemetry socket can carry, as a function from JSON to JSON. 22.11 is the narrowest: keys of
// [A-Za-z0-9_/], dictionaries of scalars, scalar arrays and dictionaries, no bool, null or fraction, signed values of
// 32 bits, strings under 128 bytes, 256 entries, 16 KiB an answer. Anything over it leaves the library as a cut or
// broken answer, so nothing over it goes in: what to_wire() returns reaches the client as it stands, on every DPDK.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace cachewire::telemetry {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t kMaxEntries = 256;  // of a dictionary
inline constexpr std::size_t kMaxArrayEntries = 512;
inline constexpr std::size_t kMaxStringBytes = 127;  // without the NUL
inline constexpr std::size_t kMaxKeyBytes = 127;
inline constexpr std::size_t kMaxCommandBytes = 55;
inline constexpr std::size_t kMaxHelpBytes = 63;
// Of the answer's value. 16 KiB less {"COMMAND":...} and what the library keeps back at each level.
inline constexpr std::size_t kMaxAnswerBytes = 16384 - 128;

// Whether the socket takes this key as it is. A handler's key that isn't is a programming error; to_wire() puts '_' for
// what is wrong.
bool is_wire_key(std::string_view key);

// Every key in a value that to_wire() would have to change: what a handler's test asserts to be empty.
std::vector<std::string> unfit_keys(const Json& value);

// Printable ASCII only: other characters as \uXXXX, control characters too (22.11 indexes a table with a signed char
// and answers with what it finds there), cut with "..." at the limit, never inside an escape.
std::string wire_string(std::string_view text);

// The nearest thing that the socket can carry. Unsigned 64-bit values stay exact; signed ones below 32 bits and
// fractions become strings; true and false become 1 and 0, null "none"; arrays of anything but scalars become
// dictionaries "0", "1", ...; mixed arrays become arrays of strings. An answer that is too large becomes {"error":
// ...}: never a part that looks like the whole.
Json to_wire(const Json& value);

// Bytes of a value as the library will write it.
std::size_t wire_bytes(const Json& wire_value);

}  // namespace cachewire::telemetry
