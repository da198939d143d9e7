// Entries that wait for their turn, packed: a list of hundreds of thousands comes faster than its files, and each would
// take ten times its names in memory. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "initializers/provider.h"

namespace muster::initializers {

class EntryQueue {
 public:
  void Push(const Entry& entry);
  bool empty() const { return pieces_.empty(); }
  // Of one that is not empty.
  uint64_t FrontSize() const;  // the entry's bytes
  Entry Pop();
  void Clear();

 private:
  std::deque<std::string> pieces_;  // of whole entries, none empty
  size_t read_ = 0;                 // of the first
};

}  // namespace muster::initializers
