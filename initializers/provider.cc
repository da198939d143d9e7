#include "initializers/provider.h"

#include "base/text.h"

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

}  // namespace muster::initializers
