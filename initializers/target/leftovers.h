// SPDX-License-Identifier: Apache-2.0
// What earlier starts left in the staging folder (staging.h): which NAMEs are whole, and how much disk space each NAME
// takes. This start claims the NAMEs that it needs. The others are leftovers: they may be removed to make room.
//
// Thread-safe after Read.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/status.h"

namespace muster::initializers {

// An amount of disk space: what is free, or what a removal frees.
struct DiskRoom {
  uint64_t bytes = 0;
  std::optional<uint64_t> files = 0;  // nullopt: the file system does not count files
};
inline DiskRoom operator+(const DiskRoom& a, const DiskRoom& b) {
  return {a.bytes + b.bytes, a.files && b.files ? std::optional(*a.files + *b.files) : std::nullopt};
}

class Leftovers {
 public:
  // Call it once, before anything else. `folder`: open, outlives this object; `shown`: its path, for messages.
  Status Read(int folder, std::string_view shown);

  void Claim(const std::string& name);
  // IsWhole and Held claim nothing.
  bool IsWhole(const std::string& name) const;
  uint64_t Held(const std::string& name) const;  // bytes on the disk, whole or not
  void AddWhole(const std::string& name);        // NAME was made whole by this start

  DiskRoom room() const;                 // what Drop would free
  DiskRoom Drop();                       // removes all NAMEs that were not claimed
  void Remove(const std::string& name);  // removes all files of NAME, whole or not

 private:
  struct Found {
    uint64_t held = 0;
    DiskRoom frees;
    bool wanted = false;
  };
  void Count(const std::string& name);        // takes a file of the folder into account
  void RemoveFiles(const std::string& name);  // call with guard_ held

  int folder_ = -1;
  mutable std::mutex guard_;  // guards the members below
  std::unordered_set<std::string> whole_;
  std::unordered_map<std::string, Found> found_;
  DiskRoom room_;
};

}  // namespace muster::initializers
