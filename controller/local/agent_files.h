// One installed Muster for all pods on this machine, so that `muster install` finds its work done in each. Blocking.
#pragma once

#include <string>

#include "base/status.h"

namespace muster::controller {

class AgentFiles {
 public:
  // Copies `binary`, the path of `muster`, into <state>/agent, unless it is there already, as its size and time say. A
  // process killed meanwhile leaves one temporary name, which the next copy writes over. Where it cannot be copied, the
  // binary itself is used, and each pod gets a copy.
  AgentFiles(const std::string& state, const std::string& binary);

  // What to start for `muster`: the copy, else the binary.
  const std::string& binary() const { return binary_; }
  // Puts what `muster install` would into `folder`, which is there: hard links, where the file system has them. What
  // cannot be put there is left to `muster install`.
  void PutInto(const std::string& folder) const;

 private:
  std::string binary_;
  bool copied_ = false;
};

}  // namespace muster::controller
