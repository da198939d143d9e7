// SPDX-License-Identifier: Apache-2.0
// One copy of `muster` for all pods on this machine, so that `muster install` has nothing left to do. Blocking.
#pragma once

#include <string>

#include "base/status.h"

namespace muster::local {

class AgentFiles {
 public:
  // Copies `binary`, the path of `muster`, to <state>/agent/muster, unless a copy of the same size and modification
  // time is there. If the copy fails, binary() is `binary` itself, and `muster install` copies it for each pod. A
  // killed process may leave one of at most 64 temporary files, which later copies overwrite.
  AgentFiles(const std::string& state, const std::string& binary);

  // The program to start for the command `muster`: the copy, or `binary` if there is no copy.
  const std::string& binary() const { return binary_; }
  // Puts the files of `muster install` into `folder`, which must exist: a hard link to the copy, and symbolic links to
  // that. If the file system refuses a link, the rest is left to `muster install`.
  void PutInto(const std::string& folder) const;

 private:
  std::string binary_;
  bool copied_ = false;
};

}  // namespace muster::local
