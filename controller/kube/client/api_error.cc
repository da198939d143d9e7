// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/api_error.h"

#include "base/json_fields.h"
#include "base/quoted.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::controller {
namespace {

constexpr size_t kMostShown = 2000;  // bytes of the server's message

absl::StatusCode CodeOf(int http_status, std::string_view reason) {
  switch (http_status) {
    case 400:
    case 422:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 405:
    case 406:
    case 415:
    case 501:
      return absl::StatusCode::kUnimplemented;
    case 409:
      return reason == "AlreadyExists" ? absl::StatusCode::kAlreadyExists : absl::StatusCode::kAborted;
    case 410:
      return absl::StatusCode::kOutOfRange;
    case 413:
      return absl::StatusCode::kResourceExhausted;
    case 408:
    case 429:
      return absl::StatusCode::kUnavailable;
    default:
      return http_status >= 500 ? absl::StatusCode::kUnavailable : absl::StatusCode::kFailedPrecondition;
  }
}

std::string_view RemedyOf(int http_status) {
  if (http_status == 401) return "; the credentials are refused: log in again, or renew the token";
  if (http_status >= 300 && http_status < 400) return "; an API server does not redirect: check its address";
  return "";
}

}  // namespace

Status ErrorOf(int http_status, std::string_view body, std::string_view what) {
  const Json status = ReadJsonTop(body, 2);
  const bool told = status.is_object() && TextField(status, "kind") == "Status";
  const std::string reason = told ? TextField(status, "reason") : "";
  const std::string words = told ? TextField(status, "message") : std::string(Strip(Beginning(body, kMostShown)));
  std::string message = fmt::format("{}: {}", what, http_status);
  if (!reason.empty()) message += fmt::format(" {}", Quoted(reason, 60));
  if (!words.empty()) message += fmt::format(": {}", Quoted(words, told ? kMostShown : kMostQuoted));
  message += RemedyOf(http_status);
  return Status(CodeOf(http_status, reason), message);
}

}  // namespace muster::controller
