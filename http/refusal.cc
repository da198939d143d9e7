// SPDX-License-Identifier: Apache-2.0
#include "http/refusal.h"

#include <algorithm>

#include "base/text.h"
#include "http/date.h"

namespace muster::http {

Refusal RefusalOf(const TransferEnd& end, std::string_view where) {
  const std::string what = fmt::format("{}: {}", where, end.what);
  switch (end.kind) {
    case TransferEnd::Kind::kUntrusted:
    case TransferEnd::Kind::kInvalid:
      return {Refusal::Kind::kFatal, absl::FailedPreconditionError(what), {}};
    case TransferEnd::Kind::kWhole:
    case TransferEnd::Kind::kCut:
    case TransferEnd::Kind::kUnreachable:
    case TransferEnd::Kind::kStalled:
    case TransferEnd::Kind::kRefused:
      break;
  }
  return {Refusal::Kind::kTransient, absl::UnavailableError(what), {}};
}

std::optional<Duration> AskedBy(const ResponseHead& head, int64_t unix_now) {
  const auto after = head.Find("retry-after");
  const auto date = head.Find("date");
  const int64_t now = (date ? ParseDate(*date, unix_now) : std::nullopt).value_or(unix_now);
  const auto limit = head.Find("ratelimit");
  const auto asked = after ? ParseRetryAfter(*after, now) : std::nullopt;
  const auto window = limit ? ParseRateLimit(*limit) : std::nullopt;
  return std::max(asked, window);  // nullopt is less than any duration
}

}  // namespace muster::http
