// SPDX-License-Identifier: Apache-2.0
// Access to the machine's files (/proc, /sys, /dev, /etc). Tests replace the machine by a folder.
//
// Thread-safe; holds no open file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

class HostFs {
 public:
  // `root` is put before every path; empty: the real machine.
  explicit HostFs(std::string root = "") : root_(std::move(root)) {}

  // The file's content; of a file above 1 MiB, about the first MiB. nullopt when it cannot be read.
  std::optional<std::string> Read(std::string_view path) const;
  // The file's text without white space at both ends; nullopt when it cannot be read or is blank.
  std::optional<std::string> ReadLine(std::string_view path) const;
  bool Exists(std::string_view path) const;
  // Names in a folder, sorted, without "." and ".."; none when it cannot be read.
  std::vector<std::string> List(std::string_view folder) const;
  // Whether it is a regular file that this process may execute.
  bool IsExecutable(std::string_view path) const;
  // The absolute path without symbolic links; nullopt when a part of the path does not exist.
  std::optional<std::string> RealPath(std::string_view path) const;
  // Device and inode, links followed. Equal pairs mean the same file.
  std::optional<std::pair<uint64_t, uint64_t>> Identity(std::string_view path) const;

 private:
  std::string Rooted(std::string_view path) const { return root_ + std::string(path); }
  std::string root_;
};

// Parses the kernel's "cpulist": "0-3,8" as numbers in the order given. Parts that are no numbers are left out.
std::vector<int> ParseCpuList(std::string_view text);
// {0,1,2,5} as "0-2,5".
std::string FormatCpuList(const std::vector<int>& sorted);

}  // namespace muster
