// What earlier starts left in the staging folder (staging.h): which NAMEs are whole, and what each of them holds of the
// disk. Whoever claims a NAME wants it; the others are leftovers, whose room is needed for what this start does.
//
// Any thread, once it was read.
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

// Bytes and files: that fit, or that a removal gives.
struct DiskRoom {
  uint64_t bytes = 0;
  std::optional<uint64_t> files = 0;  // nothing: the file system does not count them
};
inline DiskRoom operator+(const DiskRoom& a, const DiskRoom& b) {
  return {a.bytes + b.bytes, a.files && b.files ? std::optional(*a.files + *b.files) : std::nullopt};
}

class Leftovers {
 public:
  // `folder` is open, and stays so; `shown` is for messages. Once, before anything else.
  Status Read(int folder, std::string_view shown);

  void Claim(const std::string& name);
  // These two claim nothing.
  bool IsWhole(const std::string& name) const;
  uint64_t Held(const std::string& name) const;  // bytes on the disk, whole or not
  void AddWhole(const std::string& name);        // by this start

  DiskRoom room() const;                 // what the removal of all that nobody has claimed gives
  DiskRoom Drop();                       // removes them
  void Remove(const std::string& name);  // all of NAME, whole or not

 private:
  struct Found {
    uint64_t held = 0;
    DiskRoom frees;
    bool wanted = false;
  };
  void Count(const std::string& name);        // a file of the folder
  void RemoveFiles(const std::string& name);  // with guard_

  int folder_ = -1;
  mutable std::mutex guard_;  // of what follows
  std::unordered_set<std::string> whole_;
  std::unordered_map<std::string, Found> found_;
  DiskRoom room_;
};

}  // namespace muster::initializers
