// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the CRCs: polynomials over GF(2) modulo the CRC's; and the update by tables, for every CPU.
//
// A Word of n bits is a remainder in reflected form: its bit i is the coefficient of x^(n-1-i), because the lowest bit
// of each byte comes first. "State" is the register between updates: the CRC before its final xor. Internal to crc*.cc.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace muster::initializers {

static_assert(std::endian::native == std::endian::little, "the updates read words as the bytes stand");

struct IsoHdlc {  // zlib's, gzip's
  using Word = uint32_t;
  static constexpr Word kPolynomial = 0xEDB88320;
};
struct Castagnoli {
  using Word = uint32_t;
  static constexpr Word kPolynomial = 0x82F63B78;
};
struct Nvme {
  using Word = uint64_t;
  static constexpr Word kPolynomial = 0x9A6C9329AC4BC9B5;
};

template <class Crc>
constexpr typename Crc::Word TimesX(typename Crc::Word a) {
  return (a >> 1) ^ (a & 1 ? Crc::kPolynomial : 0);
}

template <class Crc>
constexpr typename Crc::Word Times(typename Crc::Word a, typename Crc::Word b) {
  constexpr int kTop = sizeof(a) * 8 - 1;
  typename Crc::Word product = 0;
  for (; a != 0; a <<= 1) {
    if (a >> kTop) product ^= b;
    b = TimesX<Crc>(b);
  }
  return product;
}

// x^exponent.
template <class Crc>
constexpr typename Crc::Word Power(uint64_t exponent) {
  typename Crc::Word power = ~(~typename Crc::Word{0} >> 1);  // x^0
  typename Crc::Word base = TimesX<Crc>(power);
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) power = Times<Crc>(power, base);
    base = Times<Crc>(base, base);
  }
  return power;
}

// kBytePowers<Crc>[k]: what 2^k bytes that follow do to the state.
template <class Crc>
inline constexpr auto kBytePowers = [] {
  std::array<typename Crc::Word, 64> powers{};
  powers[0] = Power<Crc>(8);
  for (size_t k = 1; k < powers.size(); ++k) powers[k] = Times<Crc>(powers[k - 1], powers[k - 1]);
  return powers;
}();

// kCrcTable<Crc>[k][b]: what byte b does to the state when k more bytes follow it.
template <class Crc>
inline constexpr auto kCrcTable = [] {
  std::array<std::array<typename Crc::Word, 256>, 8> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    typename Crc::Word state = byte;
    for (int bit = 0; bit < 8; ++bit) state = TimesX<Crc>(state);
    table[0][byte] = state;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      typename Crc::Word state = table[k - 1][byte];
      table[k][byte] = (state >> 8) ^ table[0][state & 0xff];
    }
  }
  return table;
}();

// Eight bytes a step.
template <class Crc>
typename Crc::Word UpdateByTable(typename Crc::Word state, const unsigned char* data, size_t size) {
  constexpr auto& table = kCrcTable<Crc>;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    word ^= state;
    state = table[7][word & 0xff] ^ table[6][word >> 8 & 0xff] ^ table[5][word >> 16 & 0xff] ^
            table[4][word >> 24 & 0xff] ^ table[3][word >> 32 & 0xff] ^ table[2][word >> 40 & 0xff] ^
            table[1][word >> 48 & 0xff] ^ table[0][word >> 56];
  }
  for (; size > 0; ++data, --size)
    state = table[0][(state ^ *data) & 0xff] ^ static_cast<typename Crc::Word>(state >> 8);
  return state;
}

}  // namespace muster::initializers
