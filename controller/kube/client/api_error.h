// SPDX-License-Identifier: Apache-2.0
// Error answers of an API server as absl codes. Pure; untrusted input.
#pragma once

#include <string_view>

#include "base/status.h"

namespace muster::controller {

// Converts an answer other than 2xx, whose body should be a Kubernetes Status object:
//
//   400, 422            InvalidArgument
//   401                 Unauthenticated
//   403                 PermissionDenied (also a refusal by admission)
//   404                 NotFound
//   409                 AlreadyExists (reason AlreadyExists), or Aborted (a conflict: read the object again)
//   410                 OutOfRange (the version has expired: list again)
//   413                 ResourceExhausted
//   405, 406, 415, 501  Unimplemented
//   408, 429, 5xx       Unavailable
//   other               FailedPrecondition: the server may be no API server
//
// The message has `what` (method and path), the HTTP status, the reason and the server's message, or, if the body is
// not a Status object, its beginning.
Status ErrorOf(int http_status, std::string_view body, std::string_view what);

}  // namespace muster::controller
