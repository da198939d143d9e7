// SPDX-License-Identifier: Apache-2.0
// Errors: absl::Status everywhere, with context added at each level on the way up.
//
// A message says what failed, where, and what to do. No exception crosses a room's border.
#pragma once

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

using absl::Status;
using absl::StatusOr;

// Puts `context` in front of the message: "reading hosts: no such file". OK stays OK; code and payloads are kept.
Status Annotate(const Status& status, std::string_view context);

// Appends advice to the message: "cannot write x: No space left on device; give the volume more room". OK stays OK;
// code and payloads are kept.
Status WithRemedy(const Status& status, std::string_view remedy);

// The message of a status, as the standard's string_view.
std::string_view Message(const Status& status);

// A status for a failed system call: "<what>: <strerror(error)>", with the nearest canonical code. For EMFILE and
// ENFILE it adds what to do.
Status ErrnoStatus(int error, std::string_view what);

}  // namespace muster

#define MUSTER_RETURN_IF_ERROR(expression)           \
  do {                                               \
    ::absl::Status muster_status_ = (expression);    \
    if (!muster_status_.ok()) return muster_status_; \
  } while (false)

#define MUSTER_CONCAT_INNER_(a, b) a##b
#define MUSTER_CONCAT_(a, b) MUSTER_CONCAT_INNER_(a, b)
#define MUSTER_ASSIGN_OR_RETURN_INNER_(var, lhs, expression) \
  auto var = (expression);                                   \
  if (!var.ok()) return std::move(var).status();             \
  lhs = *std::move(var)
// MUSTER_ASSIGN_OR_RETURN(auto port, ParsePort(text));
#define MUSTER_ASSIGN_OR_RETURN(lhs, expression) \
  MUSTER_ASSIGN_OR_RETURN_INNER_(MUSTER_CONCAT_(muster_or_, __LINE__), lhs, expression)
