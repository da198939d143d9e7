// SPDX-License-Identifier: Apache-2.0
// The content of a store: keys, queues and waiters. Pure: no sockets, no clock.
//
// Every change returns the waiters that it wakes; the caller answers them. A waiter is the number of a connection. A
// newer wait replaces its older one. Cost: one step per key named and per waiter woken; to remove a waiter, one step
// per key of its own, however many others wait.
//
// Where PyTorch's two servers differ, this follows the libuv one, except that COMPARE_SET wakes waiters only if the key
// exists afterwards. Not thread-safe.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rendezvous/store/value.h"

namespace muster::store {

using WaiterId = uint64_t;
using Woken = std::vector<WaiterId>;

class KeySpace {
 public:
  KeySpace();
  ~KeySpace();
  KeySpace(const KeySpace&) = delete;
  KeySpace& operator=(const KeySpace&) = delete;

  // `from`: the memory that holds `value`; the key space may take it (Value::Assign). nullptr: `value` is copied.
  void Set(std::string_view key, std::string_view value, Woken* woken, Buffer* from = nullptr);
  // Returns the answer: the value afterwards, or `expected` if the key is missing and `expected` is not empty. The view
  // is valid until the next change (or as long as `expected`).
  std::string_view CompareSet(std::string_view key, std::string_view expected, std::string_view desired, Woken* woken);
  // Nullopt if the key is missing. The view is valid until the next change.
  std::optional<std::string_view> Get(std::string_view key) const;
  // Returns the new sum, which is stored as decimal text and wraps at 64 bits. Nullopt: the value is not a number.
  std::optional<int64_t> Add(std::string_view key, int64_t delta, Woken* woken);
  // False if the value would grow beyond kMaxRequest; then nothing is changed.
  bool Append(std::string_view key, std::string_view value, Woken* woken);
  bool Delete(std::string_view key);
  // True if each key has a value or a queue that is not empty.
  bool Check(std::span<const std::string_view> keys) const;
  int64_t size() const { return values_; }  // keys with a value; queues are not counted
  template <typename Visit>
  void ForEachKey(Visit visit) const {
    for (const auto& [key, entry] : entries_) {
      if (entry.present) visit(std::string_view(key));
    }
  }

  // Wakes the first waiter that waits for no other key. Waiters before it count this key as set.
  void QueuePush(std::string_view key, std::string_view value, Woken* woken);
  int64_t QueueLength(std::string_view key) const;
  std::optional<std::string> QueuePop(std::string_view key);

  // True: all keys exist, answer now. Else `id` waits until each key that is missing now has been set once. A key that
  // is deleted again meanwhile counts as set.
  bool Wait(WaiterId id, std::span<const std::string_view> keys);
  enum class Arrival { kPass, kWait, kGarbage };
  // Counts an arrival in the key's value. The arrival that reaches `world` wakes all waiters; later ones pass at once.
  Arrival Barrier(WaiterId id, std::string_view key, int64_t world, Woken* woken);
  // Drops the wait of `id`, if there is one.
  void Forget(WaiterId id);

  // Until Leave every change of `key` is an Event for `id` (commands.h). False: it watches kMaxKeys keys already.
  bool Watch(WaiterId id, std::string_view key);
  bool HasWatchers() const { return !watchers_.empty(); }
  // nullptr: the key has no watcher. Valid until the next Watch or Leave.
  const std::set<WaiterId>* Watchers(std::string_view key) const;
  // The connection has ended: drops its wait and its watches.
  void Leave(WaiterId id);
  size_t waiters() const { return waiters_.size(); }

 private:
  struct Waiter;
  struct Entry;
  using Slot = std::pair<const std::string, Entry>;
  // A key that a waiter waits for.
  struct Link : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
    Slot* slot = nullptr;
    Waiter* waiter = nullptr;
  };
  struct Entry {
    bool present = false;
    Value value;
    boost::intrusive::list<Link, boost::intrusive::constant_time_size<false>> links;
    std::unique_ptr<std::deque<std::string>> queue;
  };
  struct Waiter {
    WaiterId id = 0;
    size_t missing = 0;
    Link first;
    std::unique_ptr<Link[]> more;
    size_t more_count = 0;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  Slot* Find(std::string_view key);
  const Slot* Find(std::string_view key) const;
  Slot& FindOrMake(std::string_view key);
  static bool Available(const Slot* slot);
  Entry& MakePresent(Slot& slot);
  void Attach(Waiter& waiter, Link& link, Slot& slot);
  // Removes waiters from the entry until one of them misses no other key, and wakes that one. False: there was none.
  bool WakeOne(Entry& entry, Woken* woken);
  void WakeAll(Entry& entry, Woken* woken);
  void EraseIfUnused(Slot* slot);

  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
  std::unordered_map<WaiterId, Waiter> waiters_;
  std::map<std::string, std::set<WaiterId>, std::less<>> watchers_;
  std::unordered_map<WaiterId, std::vector<std::string>> watched_;  // by watcher
  int64_t values_ = 0;
};

// As C's strtoll: white space, a sign, digits, then anything. Nullopt: no digits, or more than 64 bits. Also nullopt:
// the number does not end within 256 bytes, beyond which nothing is read.
std::optional<int64_t> ReadCounter(std::string_view text);

}  // namespace muster::store
