// SPDX-License-Identifier: Apache-2.0
// The credentials that each request to the API server carries. Reads token files again, and runs credential plugins
// again, before their tokens expire. Loop thread only; nothing blocks except the read of a small file.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "controller/kube/client/cluster_access.h"

namespace muster::controller {

struct Credential {
  std::string authorization;                   // the header's value; empty: none
  std::string client_certificate, client_key;  // PEM, both or neither
  bool operator==(const Credential&) const = default;
};

class Credentials {
 public:
  using Given = std::function<void(StatusOr<Credential>)>;

  // `access` must outlive this object.
  Credentials(boost::asio::io_context& loop, const ClusterAccess& access);
  ~Credentials();  // waiting callbacks are dropped
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  // Calls `given` once, possibly before Get returns. FailedPrecondition says why the plugin or the file failed.
  void Get(Given given);

  // Reports that the server refused `used` (401). True: Get may give another credential now.
  bool Refused(const Credential& used);

 private:
  StatusOr<Credential> OfFile();
  boost::asio::awaitable<void> RunPlugin();
  StatusOr<Credential> OfPlugin(std::string_view printed);
  void Answer(const StatusOr<Credential>& credential);

  boost::asio::io_context& loop_;
  const ClusterAccess& access_;
  std::optional<Credential> held_;  // from the file or the plugin
  std::optional<TimePoint> stale_;  // when `held_` has to be renewed; nullopt: never
  std::shared_ptr<void> running_;   // the plugin
  std::vector<Given> waiting_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::controller
