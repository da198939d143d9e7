// Paths of a container and where they are on this machine, for a container that has no root of its own. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace muster::controller {

class PodPaths {
 public:
  // `path` and what is below it is at `source`. Both absolute, without a slash at the end.
  void Add(const std::string& path, const std::string& source) { sources_[path] = source; }
  bool empty() const { return sources_.empty(); }

  // `text` with each known path replaced that begins a word, as a whole path component: with /data known, "/data/x",
  // "--in=/data" and "cat '/data'" change; "/database", "a/data" and "file:///data" do not. Words stand between white
  // space, quotes, = : , and the shell's operators ; & | < > ( ). The longest path counts, and what has been put in is
  // not looked at again.
  std::string In(std::string_view text) const;

 private:
  std::map<std::string, std::string, std::less<>> sources_;
};

}  // namespace muster::controller
