// SPDX-License-Identifier: Apache-2.0
// Translates a container's paths into paths on this machine, for a container without a root of its own. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace muster::local {

class PodPaths {
 public:
  // `path` of the container, with all below it, is `source` on this machine. Both absolute, without a slash at the end.
  void Add(const std::string& path, const std::string& source) { sources_[path] = source; }
  bool empty() const { return sources_.empty(); }

  // Replaces each known path in `text` that begins a word and ends with a path component. With /data known, "/data/x",
  // "--in=/data" and "cat '/data'" change; "/database", "a/data" and "file:///data" do not. Words stand between white
  // space, quotes, = : , and the shell's operators ; & | < > ( ). If several paths match, the longest is replaced. Text
  // that has been inserted is not searched again.
  std::string In(std::string_view text) const;

 private:
  std::map<std::string, std::string, std::less<>> sources_;
};

}  // namespace muster::local
