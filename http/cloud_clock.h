// The wall clock, for signatures, expirations and dates that a server reads too. If it is wrong, a server's date
// corrects it. If it jumps, keys are renewed early or late.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "base/clock.h"

namespace muster::http {

// The servers' time: ours until one tells that it is off. Loop thread only.
class CloudClock {
 public:
  int64_t Now() const { return UnixSeconds() + offset_; }  // s since 1970
  // A server that has just answered says so. True: signatures made by Now() would be refused; corrected from now on.
  bool Hear(int64_t server_unix) {
    constexpr int64_t kTolerance = 240;  // s; AWS's STS takes five minutes
    if (std::abs(server_unix - Now()) < kTolerance) return false;
    offset_ = server_unix - UnixSeconds();
    return true;
  }
  int64_t offset() const { return offset_; }  // s; positive: our clock is behind

 private:
  int64_t offset_ = 0;
};

}  // namespace muster::http
