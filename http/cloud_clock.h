// SPDX-License-Identifier: Apache-2.0
// The wall clock for signatures, expirations and dates that a server also reads. A server's date corrects it if it is
// wrong. If the machine's clock jumps, keys are renewed early or late.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "base/clock.h"

namespace muster::http {

// Estimates the servers' time: this machine's clock plus a correction from a server's date. Loop thread only.
class CloudClock {
 public:
  int64_t Now() const { return UnixSeconds() + offset_; }  // s since 1970
  // `server_unix`: the date of a fresh answer. True: signatures by Now() would be refused, so Now() is corrected.
  bool Hear(int64_t server_unix) {
    constexpr int64_t kTolerance = 240;  // s; AWS's STS takes five minutes
    if (std::abs(server_unix - Now()) < kTolerance) return false;
    offset_ = server_unix - UnixSeconds();
    return true;
  }
  int64_t offset() const { return offset_; }  // s; positive: this machine's clock is behind

 private:
  int64_t offset_ = 0;
};

}  // namespace muster::http
