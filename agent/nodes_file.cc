// SPDX-License-Identifier: Apache-2.0
#include "agent/nodes_file.h"

#include "base/log.h"
#include "base/quoted.h"
#include "base/settings_file.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr int64_t kMostNodes = 1'000'000;

}  // namespace

StatusOr<int> ReadNodesFile(const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const std::string content, ReadSettingsFile(path));
  const std::string_view text = Strip(content);
  if (text.empty()) return absl::NotFoundError(fmt::format("{} is empty", path));
  const auto nodes = ParseInt(text);
  if (nodes && *nodes >= 0 && *nodes <= kMostNodes) return static_cast<int>(*nodes);
  return absl::InvalidArgumentError(
      fmt::format("--nodes-file={}: {} is not a whole number", path, Quoted(text.substr(0, 100))));
}

StatusOr<std::unique_ptr<NodesFile>> NodesFile::Watch(boost::asio::io_context& loop, std::string path,
                                                      std::function<void(int nodes)> told) {
  std::unique_ptr<NodesFile> file(new NodesFile(std::move(path), std::move(told)));
  MUSTER_ASSIGN_OR_RETURN(file->watch_,
                          FolderWatch::Begin(loop, file->path_, fmt::format("--nodes-file={}", file->path_),
                                             [raw = file.get()] { raw->Look(); }));
  return file;
}

void NodesFile::Look() {
  const auto nodes = ReadNodesFile(path_);
  if (nodes.ok() && *nodes != last_) {
    last_ = *nodes;
    return told_(last_);
  }
  if (nodes.ok() || absl::IsNotFound(nodes.status()) || Message(nodes.status()) == last_complaint_) return;
  last_complaint_ = Message(nodes.status());
  log::Warning(last_complaint_);
}

}  // namespace muster::agent
