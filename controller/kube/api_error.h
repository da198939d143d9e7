// Answers of an API server that are no success, as types. Pure; outside bytes.
#pragma once

#include <string_view>

#include "base/status.h"

namespace muster::controller {

// The Status object of an answer that is no success. As absl codes:
//
//   400, 422            InvalidArgument
//   401                 Unauthenticated
//   403                 PermissionDenied (also a refusal by admission)
//   404                 NotFound
//   409                 AlreadyExists (reason AlreadyExists), or Aborted (a conflict: read it anew)
//   410                 OutOfRange (expired: list anew)
//   413                 ResourceExhausted
//   405, 406, 415, 501  Unimplemented
//   408, 429, 5xx       Unavailable
//   all else            FailedPrecondition: it may be no API server
//
// The message is `what` (method and path), code and reason, and the server's own words; where the body is no Status,
// its beginning.
Status ErrorOf(int http_status, std::string_view body, std::string_view what);

}  // namespace muster::controller
