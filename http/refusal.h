// Why a server did not give what was asked for, and whether asking again may help. Pure.
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
    kTransient,  // trying again may help
    kThrottled,  // transient, and we are too fast
    kChanged,    // another version is there now: look again, and begin the file anew
    kFatal,      // denied, gone, archived ...
    kWholeOnly,  // all of it came where a part was asked for: begin the file anew, and ask for all of it
  };
  Kind kind = Kind::kFatal;
  Status status;                  // what, where, what to do
  std::optional<Duration> asked;  // how long the server wants to be left alone
};

// Of a request whose answer did not come whole (never kWhole), at `where`: what the network failed at may work later.
Refusal RefusalOf(const TransferEnd& end, std::string_view where);

// How long the server wants to be left alone: the longer of Retry-After (until a date by its own clock, the answer's
// Date; `unix_now` is ours, for an answer without one) and of a RateLimit that is used up.
std::optional<Duration> AskedBy(const ResponseHead& head, int64_t unix_now);

}  // namespace muster::http
