// Which archive is unpacked next, and how many are side by side. Pure; one thread.
//
// As they came, so many at a time. One that takes zstd's window of memory (archive_reader.h) goes only beside one
// other such; those behind it that take none do not wait for it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "initializers/mover.h"

namespace muster::initializers {

class ArchiveQueue {
 public:
  explicit ArchiveQueue(size_t at_once) : at_once_(at_once) {}

  void Add(MovedFile archive);
  // The next that may begin; it goes on until End. To be asked until there is none.
  std::optional<MovedFile> Begin();
  void End(const MovedFile& archive);
  void Clear() { zstd_.waiting.clear(), others_.waiting.clear(); }  // of those that wait
  bool idle() const { return zstd_.idle() && others_.idle(); }      // none waits, and none goes on

 private:
  struct Waiting {
    uint64_t number;  // in which they came
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
