// SPDX-License-Identifier: Apache-2.0
// The connections of a store that have not sent a whole request yet.
//
// Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "base/clock.h"

namespace muster::store {

class Silence {
 public:
  // `is_silent`: whether the connection `tag` is open and has not spoken yet. `close`: closes it.
  Silence(boost::asio::io_context& loop, std::function<bool(uint64_t tag)> is_silent,
          std::function<void(uint64_t tag)> close);

  // Takes a new connection, which is closed after 5 min of silence. `open`: the number of connections that are open.
  void Add(uint64_t tag, uint64_t open);
  // Closes all silent connections that are older than 5 s: a crowd has taken the descriptors that other ports need,
  // too, and one descriptor does not give these back. False: there is none.
  bool CloseAll();
  void End();  // closes none from now on

 private:
  struct Entry {
    uint64_t tag;
    TimePoint since;
  };
  bool CloseOldest(Duration least);
  void Await();

  const std::function<bool(uint64_t)> is_silent_;
  const std::function<void(uint64_t)> close_;
  std::deque<Entry> entries_;  // the oldest first; also some that have spoken or gone since
  boost::asio::steady_timer timer_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // for the timer's handler
};

}  // namespace muster::store
