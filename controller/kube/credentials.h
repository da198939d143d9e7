// Who asks: what each request to the API server carries. Tokens of files are read anew, plugins are run anew, before
// what they gave is too old. Loop thread only; nothing blocks but the read of a small file.
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
#include "controller/kube/cluster_access.h"

namespace muster::controller {

struct Credential {
  std::string authorization;                   // the header's value; empty: none
  std::string client_certificate, client_key;  // PEM, both or neither
  bool operator==(const Credential&) const = default;
};

class Credentials {
 public:
  using Given = std::function<void(StatusOr<Credential>)>;

  // `access` must outlive it.
  Credentials(boost::asio::io_context& loop, const ClusterAccess& access);
  ~Credentials();  // who waits hears nothing
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  // Once, maybe before it returns. FailedPrecondition: the plugin fails or the file cannot be read, and why.
  void Get(Given given);

  // The server has refused `used` (401). True: Get may give another one now.
  bool Refused(const Credential& used);

 private:
  StatusOr<Credential> OfFile();
  boost::asio::awaitable<void> RunPlugin();
  StatusOr<Credential> OfPlugin(std::string_view printed);
  void Answer(const StatusOr<Credential>& credential);

  boost::asio::io_context& loop_;
  const ClusterAccess& access_;
  std::optional<Credential> held_;  // of the file or the plugin
  std::optional<TimePoint> stale_;  // from then on `held_` is not given any more; none: never
  std::shared_ptr<void> running_;   // the plugin
  std::vector<Given> waiting_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::controller
