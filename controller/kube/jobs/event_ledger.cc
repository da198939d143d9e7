// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/event_ledger.h"

#include <utility>

#include "base/iso_time.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::controller {
namespace {

constexpr size_t kLongestMessage = 1024;  // bytes; the limit of the Events API
constexpr size_t kLongestReason = 128;
constexpr size_t kLongestName = 253;
constexpr char kCut[] = "...";

// Cuts UTF-8 to `most` bytes, "..." included, between characters.
std::string Cut(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  return fmt::format("{}{}", Beginning(text, most - (sizeof kCut - 1)), kCut);
}

std::string IdOf(std::string_view api_version, std::string_view kind, const Meta& about) {
  return fmt::format("{} {} {} {} {}", api_version, kind, about.ns, about.name, about.uid);
}

}  // namespace

std::optional<EventLedger::Key> EventLedger::Note(std::string_view api_version, std::string_view kind,
                                                  const Meta& about, EventSaying saying, TimePoint now, WallTime wall) {
  const std::string id = IdOf(api_version, kind, about);
  if (auto found = by_key_.find(id); found != by_key_.end()) {
    objects_.splice(objects_.begin(), objects_, found->second);
  } else {
    objects_.emplace_front(id, rules_);
    by_key_[id] = objects_.begin();
    if (objects_.size() > rules_.objects) {
      by_key_.erase(objects_.back().key);
      objects_.pop_back();
    }
  }
  Object& object = objects_.front();
  object.ns = about.ns.empty() ? "default" : about.ns;  // the namespace for Events about cluster-wide objects
  object.reference = {
      {"apiVersion", api_version}, {"kind", kind}, {"name", about.name}, {"uid", about.uid}, {"namespace", about.ns}};
  if (!about.resource_version.empty()) object.reference["resourceVersion"] = about.resource_version;
  saying.message = Cut(saying.message, kLongestMessage);
  saying.reason = Cut(saying.reason, kLongestReason);

  const bool may_write = object.bucket.TryTake(now);
  auto event = object.events.find(saying);
  if (event == object.events.end()) {
    if (!may_write) return std::nullopt;
    event = object.events.try_emplace(saying).first;
    const std::string end = fmt::format(".{:x}{:x}", wall.time_since_epoch().count(), ++last_);
    event->second.name = about.name.substr(0, kLongestName - end.size()) + end;
    event->second.first = wall;
  }
  ++event->second.count;
  event->second.last = wall;
  if (!may_write) return std::nullopt;
  return Key{id, std::move(saying)};
}

EventLedger::Event* EventLedger::Find(const Key& key) const {
  auto object = by_key_.find(key.object);
  if (object == by_key_.end()) return nullptr;
  auto event = object->second->events.find(key.saying);
  return event == object->second->events.end() ? nullptr : &event->second;
}

std::optional<EventLedger::Body> EventLedger::BodyOf(const Key& key) const {
  const Event* event = Find(key);
  if (event == nullptr) return std::nullopt;
  const Object& object = *by_key_.at(key.object);
  Body body{.ns = object.ns, .name = event->name, .create = event->written == 0, .count = event->count};
  body.json = {{"count", event->count}, {"lastTimestamp", IsoTime(event->last)}};
  if (!body.create) return body;
  body.json["apiVersion"] = "v1";
  body.json["kind"] = "Event";
  body.json["metadata"] = {{"name", event->name}, {"namespace", object.ns}};
  body.json["involvedObject"] = object.reference;
  body.json["type"] = key.saying.warning ? "Warning" : "Normal";
  body.json["reason"] = key.saying.reason;
  body.json["message"] = key.saying.message;
  body.json["firstTimestamp"] = IsoTime(event->first);
  body.json["source"] = {{"component", component_}};
  body.json["reportingComponent"] = component_;
  body.json["reportingInstance"] = "";
  return body;
}

void EventLedger::Written(const Key& key, int count) {
  if (Event* event = Find(key)) event->written = count;
}

void EventLedger::Forget(std::string_view api_version, std::string_view kind, const Meta& about) {
  const auto found = by_key_.find(IdOf(api_version, kind, about));
  if (found == by_key_.end()) return;
  objects_.erase(found->second);
  by_key_.erase(found);
}

void EventLedger::Vanished(const Key& key) { Written(key, 0); }

bool EventLedger::IsBehind(const Key& key) const {
  const Event* event = Find(key);
  return event != nullptr && event->written < event->count;
}

}  // namespace muster::controller
