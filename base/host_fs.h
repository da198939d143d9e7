// The seam to the machine's files (/proc, /sys, /dev, /etc): tests give a folder that looks like a machine.
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

  // The whole file, at most 1 MiB; nullopt when it cannot be read.
  std::optional<std::string> Read(std::string_view path) const;
  // Its text without white space at both ends, as /sys files are read; nullopt when it cannot be read or is empty.
  std::optional<std::string> ReadLine(std::string_view path) const;
  bool Exists(std::string_view path) const;
  // Names in a folder, sorted; none when it cannot be read.
  std::vector<std::string> List(std::string_view folder) const;
  // A regular file that this process may execute.
  bool IsExecutable(std::string_view path) const;
  // Absolute and without symbolic links; nullopt when something on the way is not there.
  std::optional<std::string> RealPath(std::string_view path) const;
  // Device and inode, links followed: the same pair is the same file.
  std::optional<std::pair<uint64_t, uint64_t>> Identity(std::string_view path) const;

 private:
  std::string Rooted(std::string_view path) const { return root_ + std::string(path); }
  std::string root_;
};

// "0-3,8" as numbers in the order given; parts that are no numbers are left out. The kernel's "cpulist".
std::vector<int> ParseCpuList(std::string_view text);
// {0,1,2,5} as "0-2,5".
std::string FormatCpuList(const std::vector<int>& sorted);

}  // namespace muster
