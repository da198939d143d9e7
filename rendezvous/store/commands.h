// One request against a key space: the answer's bytes and the waiters to wake. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/store/key_space.h"
#include "rendezvous/store/protocol.h"

namespace muster::store {

// What a watcher of a key is told of its change.
struct Event {
  WaiterId to = 0;
  std::string bytes;
};

struct Output {
  std::string bytes;      // answers, appended
  std::string_view tail;  // a large value that follows `bytes`, still in the key space: send it before the next request
  Woken woken;            // each gets the byte kStopWaiting, after what it is owed already
  std::vector<Event> events;
};

// Returns "" or why the connection must be closed; its answer is not sent then. `id` is the asking connection. Of
// `request` its memory may be kept (key_space.h, Set).
const char* Execute(Request* request, WaiterId id, KeySpace* keys, Output* output);

}  // namespace muster::store
