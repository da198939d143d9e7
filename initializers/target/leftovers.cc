// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/leftovers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/folder_names.h"
#include "base/text.h"
#include "initializers/target/staging_lines.h"

namespace muster::initializers {

Status Leftovers::Read(int folder, std::string_view shown) {
  folder_ = folder;
  MUSTER_ASSIGN_OR_RETURN(const auto names, NamesIn(folder, ".", shown));
  for (const std::string& name : names) {
    if (name[0] != '.') Count(name);
  }
  return absl::OkStatus();
}

void Leftovers::Count(const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) whole_.insert(name);
  struct stat facts {};
  if (fstatat(folder_, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(facts.st_mode)) return;
  constexpr uint64_t kSector = 512;  // unit of st_blocks
  const uint64_t bytes = static_cast<uint64_t>(facts.st_blocks) * kSector;
  Found& found = found_[name.substr(0, dot)];
  found.held += bytes;
  if (facts.st_nlink > 1) return;  // a second hard link keeps the bytes
  for (DiskRoom* room : {&found.frees, &room_}) {
    room->bytes += bytes;
    ++*room->files;
  }
}

void Leftovers::Claim(const std::string& name) {
  std::lock_guard lock(guard_);
  auto found = found_.find(name);
  if (found == found_.end() || std::exchange(found->second.wanted, true)) return;
  room_.bytes -= found->second.frees.bytes;
  *room_.files -= *found->second.frees.files;
}

bool Leftovers::IsWhole(const std::string& name) const {
  std::lock_guard lock(guard_);
  return whole_.contains(name);
}

uint64_t Leftovers::Held(const std::string& name) const {
  std::lock_guard lock(guard_);
  auto found = found_.find(name);
  return found == found_.end() ? 0 : found->second.held;
}

void Leftovers::AddWhole(const std::string& name) {
  std::lock_guard lock(guard_);
  whole_.insert(name);
}

DiskRoom Leftovers::room() const {
  std::lock_guard lock(guard_);
  return room_;
}

DiskRoom Leftovers::Drop() {
  std::lock_guard lock(guard_);
  std::erase_if(found_, [this](const auto& found) {
    if (!found.second.wanted) RemoveFiles(found.first);
    return !found.second.wanted;
  });
  return std::exchange(room_, {});
}

void Leftovers::Remove(const std::string& name) {
  std::lock_guard lock(guard_);
  RemoveFiles(name);
}

void Leftovers::RemoveFiles(const std::string& name) {
  for (std::string_view kind : {std::string_view(), kPart, kRanges}) {
    unlinkat(folder_, fmt::format("{}{}", name, kind).c_str(), 0);
  }
  whole_.erase(name);
}

}  // namespace muster::initializers
