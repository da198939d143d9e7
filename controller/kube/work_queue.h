// Keys that wait to be worked on: each at most once, one at a time for a key, with a back-off of its own. Loop thread
// only.
#pragma once

#include <boost/asio/io_context.hpp>
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
  enum class Outcome { kDone, kAgain };  // kAgain: after its back-off, which doubles
  // `spent`: how long the loop could do nothing else. From 0.2 ms on the key rests for 100 times as long, a
  // second at most: one key, whatever happens to it, does not take more than a hundredth of the loop's time.
  using Done = std::function<void(Outcome, Duration spent)>;
  // Begins the work on `key`; `done` is called once, at any time, also before it returns. The key does not begin anew
  // before that.
  using Work = std::function<void(const std::string& key, Done done)>;

  WorkQueue(boost::asio::io_context& loop, Options options, Work work);
  ~WorkQueue();  // no work begins any more; `done` may be called later, and does nothing
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Now, the urgent ones first; while it is worked on: once more after that.
  void Add(const std::string& key, bool urgent = false);
  void AddAfter(const std::string& key, Duration pause);  // the earliest of several counts
  void Forget(const std::string& key);                    // it is gone: it waits no longer, and has no back-off
  size_t size() const;                                    // keys that are ready, and wait for a worker

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
