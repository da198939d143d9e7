// SPDX-License-Identifier: Apache-2.0
// The /status of a torchrun inside a plain command, as in `muster exec -- bash -c "torchrun ..."`. The agent around it
// has the pod's HTTP port and knows one node only. The agent inside knows the job. It serves its /status on loopback,
// and writes the port into a file that kStatusFileVariable names; the one around it passes requests on.
//
// Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/http_fetch.h"
#include "base/folder_watch.h"
#include "base/status.h"
#include "net/resolver.h"

namespace muster::agent {

inline constexpr std::string_view kStatusFileVariable = "MUSTER_STATUS_FILE";

// The path that this process gives its command; the same at each call. The file is in a folder of its own, which the
// first call makes, and need not exist. Empty: no folder could be made.
const std::string& InnerStatusFile();

// The file of an agent inside, for as long as this object exists.
class StatusFile {
 public:
  // An error names the file and the reason.
  static StatusOr<std::unique_ptr<StatusFile>> Write(const std::string& path, uint16_t port);
  ~StatusFile();

 private:
  explicit StatusFile(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

// In the agent around it.
class InnerStatus {
 public:
  using Done = std::function<void(StatusOr<FetchAnswer>)>;

  explicit InnerStatus(boost::asio::io_context& loop) : loop_(loop), resolver_(loop) {}
  ~InnerStatus();  // removes the folder, if Begin() was called

  // From now on calls `changed` when an agent inside has come or gone.
  void Begin(std::function<void()> changed);

  // Asks the agent inside for `target`, as "/status?after=1". False: there is none, or Begin() was not called; then
  // `done` is not called. Else it is called once, later, after `limit` at the latest.
  bool Ask(const std::string& target, Duration limit, Done done);

 private:
  boost::asio::io_context& loop_;
  net::Resolver resolver_;
  bool begun_ = false;
  std::list<std::unique_ptr<HttpFetch>> asked_;
  std::unique_ptr<FolderWatch> watch_;
};

}  // namespace muster::agent
