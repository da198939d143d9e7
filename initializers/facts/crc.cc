// SPDX-License-Identifier: Apache-2.0
#include "initializers/facts/crc.h"

#include "initializers/facts/crc_cpu.h"
#include "initializers/facts/crc_math.h"

namespace muster::initializers {
namespace {

const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

// The state after b is linear in the state before it: it is the state before it, advanced by the length of b, plus the
// state that b gives from zero. The complements at both ends cancel out.
template <class Crc>
typename Crc::Word CombineValues(typename Crc::Word a, typename Crc::Word b, uint64_t length_b) {
  for (size_t k = 0; length_b != 0; ++k, length_b >>= 1) {
    if (length_b & 1) a = Times<Crc>(a, kBytePowers<Crc>[k]);
  }
  return a ^ b;
}

const CrcUpdates& Best() {
  static const CrcUpdates best = [] {
    const std::vector<CrcUpdates> cpus = CpuCrcUpdates();
    return cpus.empty() ? TableCrcUpdates() : cpus.front();
  }();
  return best;
}

}  // namespace

CrcUpdates TableCrcUpdates() {
  return {"tables", &UpdateByTable<IsoHdlc>, &UpdateByTable<Castagnoli>, &UpdateByTable<Nvme>};
}

uint32_t Crc32(uint32_t crc, std::string_view bytes) { return ~Best().crc32(~crc, Bytes(bytes), bytes.size()); }
uint32_t Crc32c(uint32_t crc, std::string_view bytes) { return ~Best().crc32c(~crc, Bytes(bytes), bytes.size()); }
uint64_t Crc64Nvme(uint64_t crc, std::string_view bytes) {
  return ~Best().crc64_nvme(~crc, Bytes(bytes), bytes.size());
}

uint32_t CombineCrc32(uint32_t a, uint32_t b, uint64_t length_b) { return CombineValues<IsoHdlc>(a, b, length_b); }
uint32_t CombineCrc32c(uint32_t a, uint32_t b, uint64_t length_b) { return CombineValues<Castagnoli>(a, b, length_b); }
uint64_t CombineCrc64Nvme(uint64_t a, uint64_t b, uint64_t length_b) { return CombineValues<Nvme>(a, b, length_b); }

}  // namespace muster::initializers
