// SPDX-License-Identifier: Apache-2.0
// Folding by carry-less multiplication (Gopal et al., see crc.h). A block of 128 bits, moved by T bits, equals its low
// half times x^(T+64) plus its high half times x^T, both modulo the polynomial. So each block can be added to the block
// T bits later, and only the last block must be divided. Reflected factors give the product times x: exponents are one
// less.
#include <immintrin.h>

#include "initializers/facts/crc_cpu.h"
#include "initializers/facts/crc_math.h"

// Each function is compiled for its CPU; the functions that it calls must be inlined into it.
#define MUSTER_FOLD_128 __attribute__((target("pclmul,sse2")))
#define MUSTER_FOLD_256 __attribute__((target("vpclmulqdq,pclmul,avx2")))
#define MUSTER_FOLD_512 __attribute__((target("vpclmulqdq,pclmul,avx512f")))
#define MUSTER_INLINE __attribute__((always_inline))

namespace muster::initializers {
namespace {

// x^exponent as a polynomial of degree 63 or less.
template <class Crc>
constexpr int64_t Factor(uint64_t exponent) {
  return static_cast<int64_t>(uint64_t{Power<Crc>(exponent)} << (64 - 8 * sizeof(typename Crc::Word)));
}

MUSTER_FOLD_128 MUSTER_INLINE inline __m128i Load(const unsigned char* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

template <class Crc, uint64_t bits>
MUSTER_FOLD_128 MUSTER_INLINE inline __m128i Folded(__m128i block) {
  constexpr int64_t kLow = Factor<Crc>(bits + 63), kHigh = Factor<Crc>(bits - 1);
  const __m128i factors = _mm_set_epi64x(kHigh, kLow);
  return _mm_xor_si128(_mm_clmulepi64_si128(block, factors, 0x00), _mm_clmulepi64_si128(block, factors, 0x11));
}

// The state after `block`, which stands for all bytes before it, and after the rest of the data.
template <class Crc>
MUSTER_FOLD_128 MUSTER_INLINE inline typename Crc::Word Finish(__m128i block, const unsigned char* data, size_t size) {
  for (; size >= 16; data += 16, size -= 16) block = _mm_xor_si128(Folded<Crc, 128>(block), Load(data));
  alignas(16) unsigned char bytes[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(bytes), block);
  return UpdateByTable<Crc>(UpdateByTable<Crc>(0, bytes, sizeof(bytes)), data, size);
}

// Folds eight blocks at once: the multiplier accepts one every cycle or two, and each takes several cycles.
template <class Crc>
MUSTER_FOLD_128 typename Crc::Word Fold128(typename Crc::Word state, const unsigned char* data, size_t size) {
  constexpr size_t kBlocks = 8, kStep = 16 * kBlocks;
  if (size < kStep) return UpdateByTable<Crc>(state, data, size);
  __m128i blocks[kBlocks];
  for (size_t i = 0; i < kBlocks; ++i) blocks[i] = Load(data + 16 * i);
  blocks[0] = _mm_xor_si128(blocks[0], _mm_cvtsi64_si128(static_cast<int64_t>(state)));
  for (data += kStep, size -= kStep; size >= kStep; data += kStep, size -= kStep) {
    for (size_t i = 0; i < kBlocks; ++i) {
      blocks[i] = _mm_xor_si128(Folded<Crc, 8 * kStep>(blocks[i]), Load(data + 16 * i));
    }
  }
  for (size_t i = 1; i < kBlocks; ++i) blocks[i] = _mm_xor_si128(Folded<Crc, 128>(blocks[i - 1]), blocks[i]);
  return Finish<Crc>(blocks[kBlocks - 1], data, size);
}

MUSTER_FOLD_256 MUSTER_INLINE inline __m256i LoadPair(const unsigned char* data) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
}

template <class Crc, uint64_t bits>
MUSTER_FOLD_256 MUSTER_INLINE inline __m256i FoldedPair(__m256i blocks, __m256i onto) {
  constexpr int64_t kLow = Factor<Crc>(bits + 63), kHigh = Factor<Crc>(bits - 1);
  const __m256i factors = _mm256_set_epi64x(kHigh, kLow, kHigh, kLow);
  return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(blocks, factors, 0x00),
                                           _mm256_clmulepi64_epi128(blocks, factors, 0x11)),
                          onto);
}

// For CPUs with the wide multiplication but without AVX-512.
template <class Crc>
MUSTER_FOLD_256 typename Crc::Word Fold256(typename Crc::Word state, const unsigned char* data, size_t size) {
  constexpr size_t kPairs = 8, kStep = 32 * kPairs;
  if (size < kStep) return Fold128<Crc>(state, data, size);
  __m256i pairs[kPairs];
  for (size_t i = 0; i < kPairs; ++i) pairs[i] = LoadPair(data + 32 * i);
  const __m128i first = _mm_cvtsi64_si128(static_cast<int64_t>(state));
  pairs[0] = _mm256_xor_si256(pairs[0], _mm256_zextsi128_si256(first));
  for (data += kStep, size -= kStep; size >= kStep; data += kStep, size -= kStep) {
    for (size_t i = 0; i < kPairs; ++i) pairs[i] = FoldedPair<Crc, 8 * kStep>(pairs[i], LoadPair(data + 32 * i));
  }
  for (size_t i = 1; i < kPairs; ++i) pairs[i] = FoldedPair<Crc, 256>(pairs[i - 1], pairs[i]);
  const __m128i low = _mm256_castsi256_si128(pairs[kPairs - 1]);
  return Finish<Crc>(_mm_xor_si128(Folded<Crc, 128>(low), _mm256_extracti128_si256(pairs[kPairs - 1], 1)), data, size);
}

MUSTER_FOLD_512 MUSTER_INLINE inline __m512i LoadWide(const unsigned char* data) { return _mm512_loadu_si512(data); }

template <class Crc, uint64_t bits>
MUSTER_FOLD_512 MUSTER_INLINE inline __m512i FoldedOnto(__m512i blocks, __m512i onto) {
  constexpr int64_t kLow = Factor<Crc>(bits + 63), kHigh = Factor<Crc>(bits - 1);
  const __m512i factors = _mm512_set_epi64(kHigh, kLow, kHigh, kLow, kHigh, kLow, kHigh, kLow);
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(blocks, factors, 0x00),
                                   _mm512_clmulepi64_epi128(blocks, factors, 0x11), onto, kXorOfThree);
}

template <class Crc>
MUSTER_FOLD_512 typename Crc::Word Fold512(typename Crc::Word state, const unsigned char* data, size_t size) {
  constexpr size_t kVectors = 4, kStep = 64 * kVectors;
  if (size < kStep) return Fold128<Crc>(state, data, size);
  __m512i vectors[kVectors];
  for (size_t i = 0; i < kVectors; ++i) vectors[i] = LoadWide(data + 64 * i);
  const __m128i first = _mm_cvtsi64_si128(static_cast<int64_t>(state));
  vectors[0] = _mm512_xor_si512(vectors[0], _mm512_zextsi128_si512(first));
  for (data += kStep, size -= kStep; size >= kStep; data += kStep, size -= kStep) {
    for (size_t i = 0; i < kVectors; ++i) {
      vectors[i] = FoldedOnto<Crc, 8 * kStep>(vectors[i], LoadWide(data + 64 * i));
    }
  }
  for (size_t i = 1; i < kVectors; ++i) vectors[i] = FoldedOnto<Crc, 512>(vectors[i - 1], vectors[i]);
  alignas(64) unsigned char bytes[64];
  _mm512_store_si512(bytes, vectors[kVectors - 1]);
  __m128i block = Load(bytes);
  for (size_t i = 16; i < sizeof(bytes); i += 16) block = _mm_xor_si128(Folded<Crc, 128>(block), Load(bytes + i));
  return Finish<Crc>(block, data, size);
}

}  // namespace

std::vector<CrcUpdates> CpuCrcUpdates() {
  std::vector<CrcUpdates> updates;
  if (!__builtin_cpu_supports("pclmul")) return updates;
  if (__builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f")) {
    updates.push_back({"avx512 vpclmulqdq", &Fold512<IsoHdlc>, &Fold512<Castagnoli>, &Fold512<Nvme>});
  }
  if (__builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2")) {
    updates.push_back({"avx2 vpclmulqdq", &Fold256<IsoHdlc>, &Fold256<Castagnoli>, &Fold256<Nvme>});
  }
  updates.push_back({"pclmulqdq", &Fold128<IsoHdlc>, &Fold128<Castagnoli>, &Fold128<Nvme>});
  return updates;
}

}  // namespace muster::initializers
