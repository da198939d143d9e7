// SPDX-License-Identifier: Apache-2.0
// Decides which core/v1 Events are written. An event that repeats an earlier one raises its count. The writes about
// each object are limited. Pure.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/json_fields.h"
#include "controller/api/meta.h"
#include "controller/kube/client/token_bucket.h"

namespace muster::controller {

struct EventSaying {
  bool warning = false;
  std::string reason, message;
  auto operator<=>(const EventSaying&) const = default;
};

class EventLedger {
 public:
  struct Rules {
    int burst = 25;                             // writes about one object at once
    Duration each = std::chrono::seconds(300);  // then one write in this time
    size_t objects = 4096;                      // how many objects are remembered: those with the latest events
  };
  EventLedger(std::string component, Rules rules) : component_(std::move(component)), rules_(rules) {}

  // What identifies an Event: its object, type, reason and message.
  struct Key {
    std::string object;
    EventSaying saying;
    auto operator<=>(const Key&) const = default;
  };
  // Counts an event. Returns its key if BodyOf(key) is to be written now. nullopt: the object's limit is reached; a new
  // event is dropped, a repetition is counted for the next write.
  std::optional<Key> Note(std::string_view api_version, std::string_view kind, const Meta& about, EventSaying saying,
                          TimePoint now, WallTime wall);

  struct Body {
    std::string ns, name;
    bool create = true;  // else a merge patch
    Json json;
    int count = 0;
  };
  std::optional<Body> BodyOf(const Key& key) const;  // nullopt: not remembered any more
  void Written(const Key& key, int count);           // the Event exists on the server, with that count
  void Vanished(const Key& key);                     // it does not any more: the next write creates it
  bool IsBehind(const Key& key) const;               // true: some repetitions are not written yet
  void Forget(std::string_view api_version, std::string_view kind, const Meta& about);  // the object is gone

 private:
  struct Event {
    std::string name;
    int count = 0, written = 0;
    WallTime first, last;
  };
  struct Object {
    Object(std::string its_key, const Rules& rules)
        : key(std::move(its_key)), bucket(1 / std::chrono::duration<double>(rules.each).count(), rules.burst) {}
    std::string key;
    Json reference;  // involvedObject
    std::string ns;
    TokenBucket bucket;
    std::map<EventSaying, Event> events;
  };

  Event* Find(const Key& key) const;  // null: not remembered

  const std::string component_;
  const Rules rules_;
  std::list<Object> objects_;  // the most recently used first
  std::unordered_map<std::string, std::list<Object>::iterator> by_key_;
  uint64_t last_ = 0;
};

}  // namespace muster::controller
