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

// The lowest slot that holds the tag; kBucketSlots: none.
inline unsigned first_match_generic(const Tags& tags, std::uint16_t tag) noexcept {
    unsigned slot = 0;
    while (slot < kBucketSlots && tags[slot] != tag) ++slot;
    return slot;
}

#if defined(__SSE2__)
inline unsigned match_tags_sse2(const Tags& tags, std::uint16_t tag) noexcept {
    const __m128i stored = _mm_load_si128(reinterpret_cast<const __m128i*>(tags.data()));
    const __m128i equal = _mm_cmpeq_epi16(stored, _mm_set1_epi16(static_cast<short>(tag)));
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())));
}
// Two bits of the byte mask are a slot, and the bit after the last slot's says that none fits.
inline unsigned first_match_sse2(const Tags& tags, std::uint16_t tag) noexcept {
    const __m128i stored = _mm_load_si128(reinterpret_cast<const __m128i*>(tags.data()));
    const __m128i equal = _mm_cmpeq_epi16(stored, _mm_set1_epi16(static_cast<short>(tag)));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(equal)) | 1u << 2 * kBucketSlots;
    return static_cast<unsigned>(__builtin_ctz(mask)) / 2;
}
inline unsigned match_tags(const Tags& tags, std::uint16_t tag) noexcept { return match_tags_sse2(tags, tag); }
inline unsigned first_match(const Tags& tags, std::uint16_t tag) noexcept { return first_match_sse2(tags, tag); }
#else
inline unsigned first_match(const Tags& tags, std::uint16_t tag) noexcept { return first_match_generic(tags, tag); }
inline unsigned match_tags(const Tags& tags, std::uint16_t tag) noexcept { return match_tags_generic(tags, tag); }
#endif

}  // namespace cachewire::session
