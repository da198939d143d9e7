// SPDX-License-Identifier: Apache-2.0
#include "agent/preempt_notice.h"

#include <unistd.h>

#include <utility>

#include "agent/preempt_url.h"
#include "base/folder_watch.h"
#include "base/text.h"

namespace muster::agent {
namespace {

class FileNotice final : public PreemptNotice {
 public:
  FileNotice(std::string path, Noticed noticed) : path_(std::move(path)), noticed_(std::move(noticed)) {}

  Status Begin(boost::asio::io_context& loop) {
    MUSTER_ASSIGN_OR_RETURN(
        watch_, FolderWatch::Begin(loop, path_, fmt::format("--preempt-file={}", path_), [this] { Look(); }));
    return absl::OkStatus();
  }

 private:
  void Look() {
    if (access(path_.c_str(), F_OK) != 0) return;
    watch_.reset();
    const auto noticed = std::exchange(noticed_, nullptr);  // `noticed` may destroy this object
    noticed(path_ + " appeared");
  }

  const std::string path_;
  Noticed noticed_;
  std::unique_ptr<FolderWatch> watch_;
};

}  // namespace

StatusOr<std::unique_ptr<PreemptNotice>> PreemptNotice::Await(boost::asio::io_context& loop, const std::string& path,
                                                              Duration interval, Noticed noticed) {
  if (path.find("://") != std::string::npos) return AwaitUrl(loop, path, interval, std::move(noticed));
  auto notice = std::make_unique<FileNotice>(path, std::move(noticed));
  MUSTER_RETURN_IF_ERROR(notice->Begin(loop));
  return std::unique_ptr<PreemptNotice>(std::move(notice));
}

}  // namespace muster::agent
