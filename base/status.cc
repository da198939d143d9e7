// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <cerrno>

#include "absl/strings/cord.h"
#include "base/text.h"

namespace muster {

namespace {

Status WithMessage(const Status& status, const std::string& message) {
  Status said(status.code(), message);
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) { said.SetPayload(url, payload); });
  return said;
}

}  // namespace

Status Annotate(const Status& status, std::string_view context) {
  return status.ok() ? status : WithMessage(status, fmt::format("{}: {}", context, Message(status)));
}

Status WithRemedy(const Status& status, std::string_view remedy) {
  return status.ok() ? status : WithMessage(status, fmt::format("{}; {}", Message(status), remedy));
}

std::string_view Message(const Status& status) { return {status.message().data(), status.message().size()}; }

Status ErrnoStatus(int error, std::string_view what) {
  Status status = absl::ErrnoToStatus(error, absl::string_view(what.data(), what.size()));
  if (error == EMFILE) return WithRemedy(status, "raise the limit of open files (ulimit -n)");
  if (error == ENFILE) return WithRemedy(status, "raise the machine's limit of open files (sysctl fs.file-max)");
  return status;
}

}  // namespace muster
