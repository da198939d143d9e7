// SPDX-License-Identifier: Apache-2.0
// A queue of keys to work on. A key waits at most once, is worked on once at a time, and has its own back-off. Loop
// thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"

namespace muster::controller {

class WorkQueue {
 public:
  struct Options {
    int workers = 16;  // keys that are worked on at a time
    Duration first = std::chrono::milliseconds(5);
    Duration longest = std::chrono::seconds(60);
  };
  enum class Outcome { kDone, kAgain };  // kAgain: again after the back-off, which doubles
  // `spent`: how long the work blocked the loop. From 0.2 ms on, the key rests for 300 times as long, at most 1 s. So,
  // up to 3 ms, one key takes at most a three-hundredth of the loop's time, however often it is added.
  using Done = std::function<void(Outcome, Duration spent)>;
  // Begins the work on `key`. It must call `done` once, at any time, also before it returns. The key is not worked on
  // again before that.
  using Work = std::function<void(const std::string& key, Done done)>;

  WorkQueue(boost::asio::io_context& loop, Options options, Work work);
  ~WorkQueue();  // no work begins any more; a later call of `done` does nothing
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Makes the key ready; urgent ones go first. A key that is worked on is worked on once more after that.
  void Add(const std::string& key, bool urgent = false);
  void AddAfter(const std::string& key, Duration pause);  // the earliest of several counts
  void Forget(const std::string& key);                    // removes the key and its back-off
  size_t size() const;                                    // keys that are ready and wait for a worker
  uint64_t added() const;                                 // how often a key became ready

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
