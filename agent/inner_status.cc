// SPDX-License-Identifier: Apache-2.0
#include "agent/inner_status.h"

#include <unistd.h>

#include <boost/asio/post.hpp>
#include <fstream>

#include "base/environment.h"
#include "base/replace_file.h"
#include "base/temporary_folder.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr size_t kLongestStatus = 4 << 20;  // bytes; some 20,000 nodes

// The port in the file. nullopt: there is no file, or no port in it.
std::optional<int> PortIn(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const auto port = ParseInt(text);
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  return static_cast<int>(*port);
}

}  // namespace

const std::string& InnerStatusFile() {
  static const std::string path = [] {
    const auto folder = MakeTemporaryFolder("muster-status-", TemporaryFolders(Environment::OfProcess().Get("TMPDIR")));
    return folder.ok() ? folder->path + "/port" : std::string();
  }();
  return path;
}

StatusOr<std::unique_ptr<StatusFile>> StatusFile::Write(const std::string& path, uint16_t port) {
  MUSTER_RETURN_IF_ERROR(ReplaceFile(path, fmt::format("{}\n", port), {.mode = 0600}));
  return std::unique_ptr<StatusFile>(new StatusFile(path));
}

StatusFile::~StatusFile() { unlink(path_.c_str()); }

InnerStatus::~InnerStatus() {
  if (!begun_) return;
  const std::string& path = InnerStatusFile();
  unlink(path.c_str());
  rmdir(path.substr(0, path.rfind('/')).c_str());
}

void InnerStatus::Begin(std::function<void()> changed) {
  begun_ = true;
  const std::string& path = InnerStatusFile();
  if (path.empty()) return;
  auto watch = FolderWatch::Begin(loop_, path, std::string(kStatusFileVariable), std::move(changed));
  if (watch.ok()) watch_ = *std::move(watch);
}

bool InnerStatus::Ask(const std::string& target, Duration limit, Done done) {
  if (!begun_) return false;
  const auto port = PortIn(InnerStatusFile());
  if (!port) return false;
  const auto place = asked_.emplace(asked_.end());
  *place = HttpFetch::Start(loop_, resolver_,
                            {.host = "127.0.0.1", .port = *port, .target = target, .longest_body = kLongestStatus},
                            limit, [this, place, done = std::move(done)](StatusOr<FetchAnswer> answer) {
                              const std::shared_ptr<HttpFetch> ended = std::move(*place);
                              asked_.erase(place);
                              boost::asio::post(loop_, [ended] {});  // this runs within its callback
                              done(std::move(answer));
                            });
  return true;
}

}  // namespace muster::agent
