// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/store/key_space.h"

#include <charconv>

#include "rendezvous/store/protocol.h"

namespace muster::store {

std::optional<int64_t> ReadCounter(std::string_view text) {
  constexpr size_t kLongest = 256;
  const std::string_view head = text.substr(0, kLongest);
  size_t at = 0;
  while (at < head.size() && (head[at] == ' ' || (head[at] >= '\t' && head[at] <= '\r'))) ++at;
  if (at + 1 < head.size() && head[at] == '+' && head[at + 1] != '-') ++at;
  int64_t number = 0;
  auto [end, error] = std::from_chars(head.data() + at, head.data() + head.size(), number);
  const bool goes_on = end == head.data() + head.size() && head.size() < text.size();
  if (error != std::errc() || goes_on) return std::nullopt;
  return number;
}

namespace {

void WriteCounter(int64_t number, Value* value) {
  char digits[24];
  auto [end, error] = std::to_chars(digits, digits + sizeof(digits), number);
  value->Assign({digits, end});
}

int64_t Sum(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }

}  // namespace

KeySpace::KeySpace() = default;
KeySpace::~KeySpace() { waiters_.clear(); }

KeySpace::Slot* KeySpace::Find(std::string_view key) {
  auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &*found;
}

const KeySpace::Slot* KeySpace::Find(std::string_view key) const {
  auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &*found;
}

KeySpace::Slot& KeySpace::FindOrMake(std::string_view key) {
  if (Slot* slot = Find(key)) return *slot;
  return *entries_.try_emplace(std::string(key)).first;
}

KeySpace::Entry& KeySpace::MakePresent(Slot& slot) {
  if (!slot.second.present) {
    slot.second.present = true;
    ++values_;
  }
  return slot.second;
}

bool KeySpace::Available(const Slot* slot) {
  return slot != nullptr && (slot->second.present || (slot->second.queue != nullptr && !slot->second.queue->empty()));
}

void KeySpace::EraseIfUnused(Slot* slot) {
  const Entry& entry = slot->second;
  if (!entry.present && entry.links.empty() && entry.queue == nullptr) entries_.erase(entries_.find(slot->first));
}

bool KeySpace::WakeOne(Entry& entry, Woken* woken) {
  while (!entry.links.empty()) {
    Link& link = entry.links.front();
    Waiter* waiter = link.waiter;
    link.unlink();
    link.slot = nullptr;
    if (--waiter->missing > 0) continue;
    woken->push_back(waiter->id);
    waiters_.erase(waiter->id);
    return true;
  }
  return false;
}

void KeySpace::WakeAll(Entry& entry, Woken* woken) {
  while (WakeOne(entry, woken)) {
  }
}

void KeySpace::Set(std::string_view key, std::string_view value, Woken* woken, Buffer* from) {
  Entry& entry = MakePresent(FindOrMake(key));
  entry.value.Assign(value, from);
  WakeAll(entry, woken);
}

std::string_view KeySpace::CompareSet(std::string_view key, std::string_view expected, std::string_view desired,
                                      Woken* woken) {
  Slot* slot = Find(key);
  if (slot == nullptr || !slot->second.present) {
    if (!expected.empty()) return expected;
    slot = slot == nullptr ? &FindOrMake(key) : slot;
    MakePresent(*slot).value.Assign(desired);
  } else if (slot->second.value.view() == expected) {
    slot->second.value.Assign(desired);
  }
  WakeAll(slot->second, woken);
  return slot->second.value.view();
}

std::optional<std::string_view> KeySpace::Get(std::string_view key) const {
  const Slot* slot = Find(key);
  if (slot == nullptr || !slot->second.present) return std::nullopt;
  return slot->second.value.view();
}

std::optional<int64_t> KeySpace::Add(std::string_view key, int64_t delta, Woken* woken) {
  Slot& slot = FindOrMake(key);
  int64_t sum = delta;
  if (slot.second.present) {
    std::optional<int64_t> old = ReadCounter(slot.second.value.view());
    if (!old) return std::nullopt;
    sum = Sum(*old, delta);
  }
  Entry& entry = MakePresent(slot);
  WriteCounter(sum, &entry.value);
  WakeAll(entry, woken);
  return sum;
}

bool KeySpace::Append(std::string_view key, std::string_view value, Woken* woken) {
  Slot& slot = FindOrMake(key);
  if (slot.second.value.size() + value.size() > kMaxRequest) return false;
  Entry& entry = MakePresent(slot);
  entry.value.Append(value);
  WakeAll(entry, woken);
  return true;
}

bool KeySpace::Delete(std::string_view key) {
  Slot* slot = Find(key);
  if (slot == nullptr || !slot->second.present) return false;
  slot->second.present = false;
  slot->second.value.Clear();
  --values_;
  EraseIfUnused(slot);
  return true;
}

bool KeySpace::Check(std::span<const std::string_view> keys) const {
  for (std::string_view key : keys) {
    if (!Available(Find(key))) return false;
  }
  return true;
}

void KeySpace::QueuePush(std::string_view key, std::string_view value, Woken* woken) {
  Entry& entry = FindOrMake(key).second;
  if (entry.queue == nullptr) entry.queue = std::make_unique<std::deque<std::string>>();
  entry.queue->emplace_back(value);
  WakeOne(entry, woken);
}

int64_t KeySpace::QueueLength(std::string_view key) const {
  const Slot* slot = Find(key);
  return slot == nullptr || slot->second.queue == nullptr ? 0 : static_cast<int64_t>(slot->second.queue->size());
}

std::optional<std::string> KeySpace::QueuePop(std::string_view key) {
  Slot* slot = Find(key);
  if (slot == nullptr || slot->second.queue == nullptr) return std::nullopt;
  std::deque<std::string>& queue = *slot->second.queue;
  std::string value = std::move(queue.front());
  queue.pop_front();
  if (queue.empty()) {  // an entry never has an empty queue
    slot->second.queue = nullptr;
    EraseIfUnused(slot);
  }
  return value;
}

void KeySpace::Attach(Waiter& waiter, Link& link, Slot& slot) {
  link.slot = &slot;
  link.waiter = &waiter;
  slot.second.links.push_back(link);
}

bool KeySpace::Wait(WaiterId id, std::span<const std::string_view> keys) {
  Forget(id);
  size_t missing = 0;
  for (std::string_view key : keys) missing += !Available(Find(key));
  if (missing == 0) return true;
  Waiter& waiter = waiters_[id];
  waiter.id = id;
  if (missing > 1) waiter.more = std::make_unique<Link[]>(missing - 1);
  waiter.more_count = missing - 1;
  for (std::string_view key : keys) {
    Slot& slot = FindOrMake(key);
    if (Available(&slot)) continue;
    Attach(waiter, waiter.missing == 0 ? waiter.first : waiter.more[waiter.missing - 1], slot);
    ++waiter.missing;
  }
  return false;
}

KeySpace::Arrival KeySpace::Barrier(WaiterId id, std::string_view key, int64_t world, Woken* woken) {
  Forget(id);
  Slot& slot = FindOrMake(key);
  int64_t count = 1;
  if (slot.second.present) {
    std::optional<int64_t> old = ReadCounter(slot.second.value.view());
    if (!old) return Arrival::kGarbage;
    count = Sum(*old, 1);
  }
  WriteCounter(count, &MakePresent(slot).value);
  if (count >= world) {
    WakeAll(slot.second, woken);
    return Arrival::kPass;
  }
  Waiter& waiter = waiters_[id];
  waiter.id = id;
  waiter.missing = 1;
  Attach(waiter, waiter.first, slot);
  return Arrival::kWait;
}

void KeySpace::Forget(WaiterId id) {
  auto found = waiters_.find(id);
  if (found == waiters_.end()) return;
  Waiter& waiter = found->second;
  auto drop = [this](Link& link) {
    Slot* slot = link.slot;
    if (slot == nullptr) return;
    link.unlink();
    link.slot = nullptr;
    EraseIfUnused(slot);
  };
  drop(waiter.first);
  for (size_t i = 0; i < waiter.more_count; ++i) drop(waiter.more[i]);  // links of keys that were set have no slot
  waiters_.erase(found);
}

bool KeySpace::Watch(WaiterId id, std::string_view key) {
  std::vector<std::string>& keys = watched_[id];
  if (keys.size() >= kMaxKeys) return false;
  if (watchers_[std::string(key)].insert(id).second) keys.emplace_back(key);
  return true;
}

const std::set<WaiterId>* KeySpace::Watchers(std::string_view key) const {
  auto found = watchers_.find(key);
  return found == watchers_.end() ? nullptr : &found->second;
}

void KeySpace::Leave(WaiterId id) {
  Forget(id);
  auto found = watched_.find(id);
  if (found == watched_.end()) return;
  for (const std::string& key : found->second) {
    auto watchers = watchers_.find(key);
    watchers->second.erase(id);
    if (watchers->second.empty()) watchers_.erase(watchers);
  }
  watched_.erase(found);
}

}  // namespace muster::store
