#include "base/status.h"

#include "absl/strings/cord.h"
#include "base/text.h"

namespace muster {

Status Annotate(const Status& status, std::string_view context) {
  if (status.ok()) return status;
  Status annotated(status.code(), fmt::format("{}: {}", context, Message(status)));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { annotated.SetPayload(url, payload); });
  return annotated;
}

std::string_view Message(const Status& status) { return {status.message().data(), status.message().size()}; }

Status ErrnoStatus(int error, std::string_view what) {
  return absl::ErrnoToStatus(error, absl::string_view(what.data(), what.size()));
}

}  // namespace muster
