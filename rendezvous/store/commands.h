// SPDX-License-Identifier: Apache-2.0
// Executes one request on a key space. The result is the answer's bytes and the waiters to wake. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/key_space.h"
#include "rendezvous/store/protocol.h"

namespace muster::store {

// The message to a watcher that a key has changed.
struct Event {
  WaiterId to = 0;
  std::string bytes;
};

struct Output {
  std::string bytes;      // answers, appended
  std::string_view tail;  // a large value after `bytes`, still in the key space: send it before the next request
  Woken woken;            // each gets the byte kStopWaiting, after the bytes that are still to be sent to it
  std::vector<Event> events;
};

// Returns "", or why the connection must be closed; then the answer is not sent. `id` is the asking connection. The key
// space may take the memory of `request` (KeySpace::Set).
const char* Execute(Request* request, WaiterId id, KeySpace* keys, Output* output);

}  // namespace muster::store
