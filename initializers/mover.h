// Whoever brings a list of files into the staging folder: Transfer over the network, LocalCopy from a folder.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "initializers/provider.h"

namespace muster::initializers {

struct MovedFile {
  Entry entry;            // as it is now
  std::string name;       // in the staging folder
  std::string hash;       // Describe()d: what was computed; empty with verify off
  bool verified = false;  // the source published it
};

struct MoveCounts {
  uint64_t files = 0, files_done = 0;
  uint64_t bytes = 0, bytes_done = 0;  // of the files; read back ones are done
  uint64_t bytes_received = 0;         // over the network or from the folder, again where it had to be
  uint64_t bytes_kept = 0;             // left by an earlier start
  uint64_t requests = 0, retries = 0, changed = 0, refetched = 0;
};

struct MoveEvents {
  std::function<void(MovedFile)> file;               // each, as it is whole
  std::function<void(const std::string& text)> say;  // retries and the like, a sentence
  std::function<void(Status)> end;                   // once, the last; posted
};

// Loop thread only. Ends once, with the first error that cannot be helped; destroyed, without a word.
class Mover {
 public:
  virtual ~Mover() = default;
  virtual void Add(const std::vector<Entry>& entries) = 0;
  virtual void EndOfList() = 0;  // nothing more is added
  virtual const MoveCounts& counts() const = 0;
};

}  // namespace muster::initializers
