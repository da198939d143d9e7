// SPDX-License-Identifier: Apache-2.0
// Watches the folder of a file: the file appears, or another one replaces it.
//
// By inotify, without polling. Linux gives a user few instances of it (fs.inotify.max_user_instances, often 128, for
// all pods of a machine that run as one user), and a sandbox may have none. Then the folder is looked at once a second.
//
// Loop thread only. Symbolic links count like files. So it notices when Kubernetes updates a volume by swapping a link.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster {

// A status for a failed call of inotify: as ErrnoStatus, with the limit to raise.
Status InotifyStatus(int error, std::string_view what);

class FolderWatch {
 public:
  // Calls `changed` on the loop: once soon after Begin, then after each change in the folder of `path`. The folder must
  // exist. An error names `what` (a flag with its value) and the folder.
  static StatusOr<std::unique_ptr<FolderWatch>> Begin(boost::asio::io_context& loop, const std::string& path,
                                                      const std::string& what, std::function<void()> changed);
  ~FolderWatch();  // ends the watch; allowed inside `changed`
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

 private:
  class Impl;
  explicit FolderWatch(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster
