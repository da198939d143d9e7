// SPDX-License-Identifier: Apache-2.0
// One request with a small answer, which is returned as a whole. Loop thread only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "http/client.h"

namespace muster::http {

// Status, headers, and a body of at most `limit` bytes; a longer body ends as kInvalid.
struct Answer {
  ResponseHead head;
  std::string body;
  TransferEnd end;
};
using Answered = std::function<void(Answer)>;
// Sends the request. Destroying the last copy of the returned handle cancels it. The handle may outlive the client.
std::shared_ptr<void> Ask(Client& client, const Request& request, const Limits& limits, size_t limit,
                          Answered answered);

}  // namespace muster::http
