#include "controller/kube/key_queue.h"

namespace muster::controller {

void KeyQueue::Add(const std::string& key, bool urgent) {
  if (auto working = working_.find(key); working != working_.end()) {
    working->second = {.again = true};
    return;
  }
  if (const auto rest = rests_.find(key); rest != rests_.end()) return AddAt(key, rest->second);
  if (queued_.insert(key).second) (urgent ? urgent_ : ready_).push_back(key);
}

void KeyQueue::AddAt(const std::string& key, TimePoint time) {
  if (auto working = working_.find(key); working != working_.end()) working->second.forgotten = false;
  auto [entry, added] = times_.try_emplace(key, time);
  if (!added) {
    if (entry->second <= time) return;
    by_time_.erase({entry->second, key});
    entry->second = time;
  }
  by_time_.emplace(time, key);
}

void KeyQueue::RemoveTime(const std::string& key) {
  auto entry = times_.find(key);
  if (entry == times_.end()) return;
  by_time_.erase({entry->second, key});
  times_.erase(entry);
}

void KeyQueue::Forget(const std::string& key) {
  RemoveTime(key);
  rests_.erase(key);
  failures_.erase(key);
  if (queued_.erase(key) > 0) {
    std::erase(urgent_, key);
    std::erase(ready_, key);
  }
  if (auto working = working_.find(key); working != working_.end()) working->second = {.forgotten = true};
}

void KeyQueue::Advance(TimePoint now) {
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const std::string key = by_time_.begin()->second;
    RemoveTime(key);
    if (const auto rest = rests_.find(key); rest != rests_.end() && rest->second <= now) rests_.erase(rest);
    Add(key);
  }
}

std::optional<std::string> KeyQueue::Take() {
  std::deque<std::string>& lane = urgent_.empty() ? ready_ : urgent_;
  if (lane.empty() || static_cast<int>(working_.size()) >= workers_) return std::nullopt;
  std::string key = std::move(lane.front());
  lane.pop_front();
  queued_.erase(key);
  working_.try_emplace(key);
  return key;
}

void KeyQueue::Done(const std::string& key, bool again, TimePoint now, Duration rest) {
  auto found = working_.find(key);
  if (found == working_.end()) return;
  const Working working = found->second;
  working_.erase(found);
  if (rest > Duration::zero() && !working.forgotten) rests_[key] = now + rest;
  if (again && !working.forgotten) {
    AddAt(key, now + BackOff(rules_, ++failures_[key]));
  } else {
    failures_.erase(key);
  }
  if (working.again) Add(key);
}

std::optional<TimePoint> KeyQueue::next() const {
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first;
}

}  // namespace muster::controller
