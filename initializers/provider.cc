#include "initializers/provider.h"

#include "base/text.h"
#include "initializers/http_date.h"

namespace muster::initializers {

Refusal RefusalOf(const HttpEnd& end, std::string_view where) {
  const std::string what = fmt::format("{}: {}", where, end.what);
  switch (end.kind) {
    case HttpEnd::Kind::kUntrusted:
    case HttpEnd::Kind::kInvalid:
      return {Refusal::Kind::kFatal, absl::FailedPreconditionError(what), {}};
    default:
      return {Refusal::Kind::kTransient, absl::UnavailableError(what), {}};
  }
}

std::optional<Duration> AskedBy(const HttpHead& head, int64_t unix_now) {
  const auto asked = head.Find("retry-after");
  if (!asked) return std::nullopt;
  const auto date = head.Find("date");
  return ParseRetryAfter(*asked, (date ? ParseHttpDate(*date, unix_now) : std::nullopt).value_or(unix_now));
}

}  // namespace muster::initializers
