// Which core/v1 Events are written about which objects: what repeats an earlier one raises its count, and no object has
// more than its share of writes. Pure.
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
#include "controller/kube/token_bucket.h"

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
    Duration each = std::chrono::seconds(300);  // then one in this time
    size_t objects = 4096;                      // that are remembered: those that something was said of last
  };
  EventLedger(std::string component, Rules rules) : component_(std::move(component)), rules_(rules) {}

  // What identifies an Event: its object and what is said.
  struct Key {
    std::string object;
    EventSaying saying;
    auto operator<=>(const Key&) const = default;
  };
  // Notes it. Something to write: Body has it. Nothing: too much was said of that object; a repetition is counted, and
  // the next write tells it.
  std::optional<Key> Note(std::string_view api_version, std::string_view kind, const Meta& about, EventSaying saying,
                          TimePoint now, WallTime wall);

  struct Body {
    std::string ns, name;
    bool create = true;  // else a merge patch
    Json json;
    int count = 0;
  };
  std::optional<Body> BodyOf(const Key& key) const;  // nothing: it is not remembered any more
  void Written(const Key& key, int count);           // it is there, with that count
  void Vanished(const Key& key);                     // it is not there any more: to be created
  bool IsBehind(const Key& key) const;               // there are repetitions that were not written

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

  Event* Find(const Key& key) const;  // null: it is not remembered

  const std::string component_;
  const Rules rules_;
  std::list<Object> objects_;  // the last first
  std::unordered_map<std::string, std::list<Object>::iterator> by_key_;
  uint64_t last_ = 0;
};

}  // namespace muster::controller
