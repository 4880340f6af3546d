#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Which of a bucket's eight tags equal a given one: bit i of the answer is slot i. The SSE2 form and its generic twin
// give the same answer; tests hold them against each other.
#include <array>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace cachewire::session {

inline constexpr unsigned kBucketSlots = 8;
using Tags = std::array<std::uint16_t, kBucketSlots>;

inline unsigned match_tags_generic(const Tags& tags, std::uint16_t tag) noexcept {
    unsigned mask = 0;
    for (unsigned i = 0; i < kBucketSlots; ++i) mask |= static_cast<unsigned>(tags[i] == tag) << i;
    return mask;
}

#if defined(__SSE2__)
inline unsigned match_tags_sse2(const Tags& tags, std::uint16_t tag) noexcept {
    const __m128i stored = _mm_load_si128(reinterpret_cast<const __m128i*>(tags.data()));
    const __m128i equal = _mm_cmpeq_epi16(stored, _mm_set1_epi16(static_cast<short>(tag)));
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())));
}
inline unsigned match_tags(const Tags& tags, std::uint16_t tag) noexcept { return match_tags_sse2(tags, tag); }
#else
inline unsigned match_tags(const Tags& tags, std::uint16_t tag) noexcept { return match_tags_generic(tags, tag); }
#endif

}  // namespace cachewire::session
