// One request whose small answer is wanted as a whole. Loop thread only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "http/client.h"

namespace muster::http {

// Status, headers, and a body of at most `limit` bytes (a longer one is kInvalid).
struct Answer {
  ResponseHead head;
  std::string body;
  TransferEnd end;
};
using Answered = std::function<void(Answer)>;
// Cancelled when the last copy of the handle goes, which may outlive the client.
std::shared_ptr<void> Ask(Client& client, const Request& request, const Limits& limits, size_t limit,
                          Answered answered);

}  // namespace muster::http
