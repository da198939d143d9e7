// SPDX-License-Identifier: Apache-2.0
// A queue of entries, packed. A listing of hundreds of thousands of entries arrives faster than its files, and unpacked
// an entry takes ten times the memory of its names. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "initializers/facts/provider.h"

namespace muster::initializers {

class EntryQueue {
 public:
  void Push(const Entry& entry);
  bool empty() const { return pieces_.empty(); }
  // The next two: the queue must not be empty.
  uint64_t FrontSize() const;  // size of the first entry, in bytes
  Entry Pop();
  void Clear();

 private:
  std::deque<std::string> pieces_;  // each holds whole entries; none is empty
  size_t read_ = 0;                 // bytes of the first piece that were popped
};

}  // namespace muster::initializers
