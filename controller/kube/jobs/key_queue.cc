// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/key_queue.h"

namespace muster::controller {

void KeyQueue::Add(const std::string& key, bool urgent) {
  if (auto working = working_.find(key); working != working_.end()) {
    working->second = {.again = true};
    return;
  }
  if (const auto rest = rests_.find(key); rest != rests_.end()) return AddAt(key, rest->second);
  if (!queued_.insert(key).second) return;
  ++added_;
  (urgent ? urgent_ : ready_).Push(key);
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
    urgent_.Erase(key);
    ready_.Erase(key);
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
  const int free = workers_ - static_cast<int>(working_.size());
  const auto may = [&](std::string_view ns) {
    const auto busy = busy_.find(ns);
    return (busy == busy_.end() ? 0 : busy->second) < free;
  };
  auto key = urgent_.Pop(may);
  if (!key) key = ready_.Pop(may);
  if (!key) return std::nullopt;
  queued_.erase(*key);
  working_.try_emplace(*key);
  ++busy_[std::string(NamespaceOf(*key))];
  return key;
}

void KeyQueue::Done(const std::string& key, bool again, TimePoint now, Duration rest) {
  auto found = working_.find(key);
  if (found == working_.end()) return;
  const Working working = found->second;
  working_.erase(found);
  if (const auto busy = busy_.find(NamespaceOf(key)); --busy->second == 0) busy_.erase(busy);
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
