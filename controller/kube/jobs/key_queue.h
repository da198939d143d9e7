// SPDX-License-Identifier: Apache-2.0
// The decisions of WorkQueue: which keys are worked on, and when. Pure. No key is worked on twice at the same time.
//
// Fair to namespaces: ready keys are taken from each namespace in turn, urgent keys before all others. A namespace gets
// a worker only while it has fewer than are free. So one tenant alone has half of the workers, and the next one finds
// one free at once. Keys of one namespace are taken in the order in which they became ready.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "controller/kube/jobs/fair_line.h"
#include "controller/reconcile/back_off.h"

namespace muster::controller {

class KeyQueue {
 public:
  KeyQueue(int workers, BackOffRules rules) : workers_(workers), rules_(rules) {}

  void Add(const std::string& key, bool urgent = false);
  void AddAt(const std::string& key, TimePoint time);  // the earliest of several counts
  void Forget(const std::string& key);

  void Advance(TimePoint now);        // makes keys ready whose time has come
  std::optional<std::string> Take();  // a ready key; nullopt: there is none, or no worker for it
  // The work on `key` is over. `again`: adds it after its back-off; otherwise resets that. `rest`: how long the key is
  // not ready, even if it is added.
  void Done(const std::string& key, bool again, TimePoint now, Duration rest = {});
  std::optional<TimePoint> next() const;  // when to call Advance; nullopt: not needed

  size_t ready() const { return queued_.size(); }
  uint64_t added() const { return added_; }  // how often a key became ready
  size_t working() const { return working_.size(); }
  size_t later() const { return times_.size(); }

 private:
  struct Working {
    bool again = false;      // the key was added meanwhile
    bool forgotten = false;  // it was forgotten, and not added since
  };

  void RemoveTime(const std::string& key);

  const int workers_;
  const BackOffRules rules_;
  FairLine urgent_, ready_;
  std::set<std::string> queued_;  // all keys of urgent_ and ready_
  uint64_t added_ = 0;
  std::map<std::string, Working> working_;
  std::map<std::string, int, std::less<>> busy_;  // workers by namespace; none is 0
  std::map<std::string, TimePoint> times_;
  std::set<std::pair<TimePoint, std::string>> by_time_;
  std::map<std::string, TimePoint> rests_;  // until when a key rests
  std::map<std::string, int> failures_;
};

}  // namespace muster::controller
