// SPDX-License-Identifier: Apache-2.0
// CRC-32 (ISO-HDLC, as in zlib), CRC-32C (Castagnoli) and CRC-64/NVME, by the fastest instructions of the CPU; and the
// CRC of two neighbouring texts from their two CRCs.
//
// `crc` is the value of the bytes so far, 0 at first, so that a text may be given in pieces. The value of `a` followed
// by `b` is Combine(value of a, value of b, bytes in b). Thread-safe.
//
// Sources: RFC 3720 B.4; NVM Express NVM Command Set 1.0 section 5.2.1.3.4; Gopal et al., "Fast CRC Computation for
// Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster::initializers {

uint32_t Crc32(uint32_t crc, std::string_view bytes);
uint32_t Crc32c(uint32_t crc, std::string_view bytes);
uint64_t Crc64Nvme(uint64_t crc, std::string_view bytes);

uint32_t CombineCrc32(uint32_t a, uint32_t b, uint64_t length_b);
uint32_t CombineCrc32c(uint32_t a, uint32_t b, uint64_t length_b);
uint64_t CombineCrc64Nvme(uint64_t a, uint64_t b, uint64_t length_b);

// One implementation of the updates. They take and return states (crc_math.h), which are the complements of the values.
struct CrcUpdates {
  std::string_view name;  // of the implementation: "tables"
  uint32_t (*crc32)(uint32_t state, const unsigned char* data, size_t size) = nullptr;
  uint32_t (*crc32c)(uint32_t state, const unsigned char* data, size_t size) = nullptr;
  uint64_t (*crc64_nvme)(uint64_t state, const unsigned char* data, size_t size) = nullptr;
};

CrcUpdates TableCrcUpdates();

}  // namespace muster::initializers
