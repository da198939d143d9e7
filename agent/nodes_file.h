// SPDX-License-Identifier: Apache-2.0
// --nodes-file: a file with the number of nodes that the job is meant to have now, from the program that makes nodes.
// 0: the run has succeeded, and its nodes have ended. A node that waits for others ends, too.
// The controller of Kubernetes jobs sets a pod annotation, which the kubelet copies into the file (docs/rendezvous.md).
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/folder_watch.h"
#include "base/status.h"

namespace muster::agent {

// Errors: NotFound if there is no file yet or it is empty; InvalidArgument names the file and the value.
StatusOr<int> ReadNodesFile(const std::string& path);

// Loop thread only.
class NodesFile {
 public:
  // Calls `told` on the loop, soon and whenever the number changes. Other content is logged once and changes nothing.
  static StatusOr<std::unique_ptr<NodesFile>> Watch(boost::asio::io_context& loop, std::string path,
                                                    std::function<void(int nodes)> told);

 private:
  NodesFile(std::string path, std::function<void(int)> told) : path_(std::move(path)), told_(std::move(told)) {}
  void Look();

  const std::string path_;
  const std::function<void(int)> told_;
  int last_ = -1;  // none yet
  std::string last_complaint_;
  std::unique_ptr<FolderWatch> watch_;
};

}  // namespace muster::agent
