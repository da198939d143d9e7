// SPDX-License-Identifier: Apache-2.0
// Why a request failed, and whether a retry may help. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "http/client.h"

namespace muster::http {

struct Refusal {
  enum class Kind {
    kTransient,  // a retry may help
    kThrottled,  // a retry may help, at a lower rate
    kChanged,    // the object has another version now: look it up again and restart the file
    kFatal,      // denied, gone, archived ...
    kWholeOnly,  // the server sent all of the object instead of a range: restart the file and request all of it
  };
  Kind kind = Kind::kFatal;
  Status status;                  // what failed, where, what to do
  std::optional<Duration> asked;  // the pause that the server asks for
};

// For an answer from `where` that is not kWhole: kFatal if kUntrusted or kInvalid, else kTransient.
Refusal RefusalOf(const TransferEnd& end, std::string_view where);

// The pause that a server asks for: the longer of Retry-After and of a used-up RateLimit. A date in Retry-After is
// compared with the answer's Date, or with `unix_now` if there is none. nullopt: the server asks for no pause.
std::optional<Duration> AskedBy(const ResponseHead& head, int64_t unix_now);

}  // namespace muster::http
