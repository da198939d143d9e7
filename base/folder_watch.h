// What happens in the folder of a file: it appears, or another one takes its place. By inotify; nothing is polled.
//
// Loop thread only. A link counts, also one that is swapped as Kubernetes swaps those of its volumes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace muster {

class FolderWatch {
 public:
  // Calls `changed` on the loop: once soon, then after each change in the folder of `path`. An error names `what`, a
  // flag with its value, and the folder that cannot be watched.
  static StatusOr<std::unique_ptr<FolderWatch>> Begin(boost::asio::io_context& loop, const std::string& path,
                                                      const std::string& what, std::function<void()> changed);
  ~FolderWatch();  // ends it, also inside `changed`
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

 private:
  class Impl;
  explicit FolderWatch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster
