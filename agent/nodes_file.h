// --nodes-file: how many nodes there are meant to be now, as whoever makes them has written it. The controller of
// Kubernetes jobs writes it as a pod annotation, which the kubelet brings into the file (docs/rendezvous.md).
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/folder_watch.h"
#include "base/status.h"

namespace muster::agent {

// NotFound: there is no file yet, or nothing in it. InvalidArgument names the file and the value.
StatusOr<int> ReadNodesFile(const std::string& path);

// Loop thread only.
class NodesFile {
 public:
  // Calls `told` on the loop, once soon and whenever the number changes. What is no number is said once, and changes
  // nothing.
  static StatusOr<std::unique_ptr<NodesFile>> Watch(boost::asio::io_context& loop, std::string path,
                                                    std::function<void(int nodes)> told);

 private:
  NodesFile(std::string path, std::function<void(int)> told) : path_(std::move(path)), told_(std::move(told)) {}
  void Look();

  const std::string path_;
  const std::function<void(int)> told_;
  int last_ = 0;
  std::string last_complaint_;
  std::unique_ptr<FolderWatch> watch_;
};

}  // namespace muster::agent
