// SPDX-License-Identifier: Apache-2.0
// Decides which archive is unpacked next, and how many are unpacked in parallel. Pure; one thread.
//
// Archives are unpacked in their order of arrival, `at_once` in parallel. At most two archives that need memory for
// zstd's window (archive_reader.h) run in parallel. Archives behind them that need none do not wait for them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "initializers/transfer/mover.h"

namespace muster::initializers {

class ArchiveQueue {
 public:
  explicit ArchiveQueue(size_t at_once) : at_once_(at_once) {}

  void Add(MovedFile archive);
  // Returns the next archive that may begin; it runs until End. Call it until it returns nullopt.
  std::optional<MovedFile> Begin();
  void End(const MovedFile& archive);
  void Clear() { zstd_.waiting.clear(), others_.waiting.clear(); }  // drops the waiting archives
  bool idle() const { return zstd_.idle() && others_.idle(); }      // no archive waits or runs

 private:
  struct Waiting {
    uint64_t number;  // order of arrival
    MovedFile archive;
  };
  struct Kind {
    std::deque<Waiting> waiting;
    size_t going = 0;
    bool idle() const { return waiting.empty() && going == 0; }
  };
  Kind& KindOf(const MovedFile& archive);

  const size_t at_once_;
  Kind zstd_, others_;
  uint64_t added_ = 0;
};

}  // namespace muster::initializers
