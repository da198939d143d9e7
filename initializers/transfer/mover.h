// SPDX-License-Identifier: Apache-2.0
// Brings a list of files into the staging folder: Transfer over the network, LocalCopy from a folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/facts/provider.h"

namespace muster::initializers {

struct MovedFile {
  Entry entry;            // with the version and hash that were found last
  std::string name;       // in the staging folder
  std::string hash;       // text of Describe: the computed hash; empty with verify off
  bool verified = false;  // the source published that hash
};

struct MoveCounts {
  uint64_t files = 0, files_done = 0;
  uint64_t bytes = 0, bytes_done = 0;  // of the files; bytes read back from an earlier start count as done
  uint64_t bytes_received = 0;         // over the network or from the folder; bytes that came twice count twice
  uint64_t bytes_kept = 0;             // reused from an earlier start
  uint64_t requests = 0, retries = 0, changed = 0, refetched = 0;
};

struct MoveEvents {
  std::function<void(MovedFile)> file;               // called for each file when it is whole
  std::function<void(const std::string& text)> say;  // a sentence about a retry or similar
  std::function<void(Status)> end;                   // posted once, as the last call
};

// Loop thread only. `end` comes after the last file, or with the first final error; not after the destructor.
class Mover {
 public:
  virtual ~Mover() = default;
  virtual void Add(const std::vector<Entry>& entries) = 0;
  virtual void EndOfList() = 0;  // no Add follows
  virtual const MoveCounts& counts() const = 0;
};

}  // namespace muster::initializers
