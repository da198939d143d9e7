// SPDX-License-Identifier: Apache-2.0
// An answer of http/server.h that goes on, such as server-sent events
// (html.spec.whatwg.org/multipage/server-sent-events.html).
//
// The server asks for the next piece when the last one has been written. So a client that reads slowly gets fewer
// pieces, nothing piles up, and a client that does not read one within Options::request is closed. Loop thread only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace muster::http {

class Feed {
 public:
  Feed() = default;
  virtual ~Feed() = default;  // soon after the connection has ended
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // What is to be sent now; empty: nothing yet. nullopt: the answer ends. Must not call Wake().
  virtual std::optional<std::string> Next() = 0;

  // Next() may have something now.
  void Wake() {
    if (wake_) wake_();
  }
  // For the server.
  void OnWake(std::function<void()> wake) { wake_ = std::move(wake); }

 private:
  std::function<void()> wake_;
};

}  // namespace muster::http
