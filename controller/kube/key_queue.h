// Which keys are worked on, and when: the decisions of WorkQueue. Pure. No key is worked on twice at a time; ready keys
// go in the order in which they became so, the urgent ones before all others.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "controller/reconcile/back_off.h"

namespace muster::controller {

class KeyQueue {
 public:
  KeyQueue(int workers, BackOffRules rules) : workers_(workers), rules_(rules) {}

  void Add(const std::string& key, bool urgent = false);
  void AddAt(const std::string& key, TimePoint time);  // the earliest of several counts
  void Forget(const std::string& key);

  void Advance(TimePoint now);        // keys whose time has come are ready
  std::optional<std::string> Take();  // a ready key to work on; none: no key, or all workers are busy
  // The work on it is over. `again`: after its back-off; else its back-off is forgotten. `rest`: it is not ready before
  // that is over, whoever adds it.
  void Done(const std::string& key, bool again, TimePoint now, Duration rest = {});
  std::optional<TimePoint> next() const;  // when Advance has something to do

  size_t ready() const { return queued_.size(); }
  size_t working() const { return working_.size(); }
  size_t later() const { return times_.size(); }

 private:
  struct Working {
    bool again = false;      // it was added meanwhile
    bool forgotten = false;  // and not added since
  };

  void RemoveTime(const std::string& key);

  const int workers_;
  const BackOffRules rules_;
  std::deque<std::string> urgent_, ready_;
  std::set<std::string> queued_;  // what is in one of both
  std::map<std::string, Working> working_;
  std::map<std::string, TimePoint> times_;
  std::set<std::pair<TimePoint, std::string>> by_time_;
  std::map<std::string, TimePoint> rests_;  // until when
  std::map<std::string, int> failures_;
};

}  // namespace muster::controller
