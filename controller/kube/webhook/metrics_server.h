// SPDX-License-Identifier: Apache-2.0
// /metrics over HTTPS, for clients with a right: as controller-runtime's metrics server with its filter
// WithAuthenticationAndAuthorization. Every replica serves it, whether it leads or not.
//
//   GET /metrics
//   Authorization: Bearer TOKEN     a token for the API server, of a user who may `get` the path /metrics
//
//   200  the metrics
//   401  there is no token, or it is not valid
//   403  the user may not read the metrics
//   500  the API server could not be asked; the log says why
//   503  too many clients ask at a time; Retry-After says when to come again
//
// An answer holds for 60 s if it allows, else for 10 s; metrics_access.h has the bounds. So a right that is taken away
// ends within a minute. The server has its own client of the API server, with a low rate limit. So clients with random
// tokens do not slow the controller down. It keeps the SHA-256 of a token and not the token. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "controller/kube/client/api_client.h"
#include "http/server.h"

namespace muster::controller {

class MetricsServer {
 public:
  using Page = std::function<http::Server::Response()>;

  // `page` makes the answer of 200. `host`, `port` and errors: as for http::Server::Listen.
  static StatusOr<std::unique_ptr<MetricsServer>> Listen(boost::asio::io_context& loop, ClusterAccess access,
                                                         const std::string& host, uint16_t port,
                                                         std::shared_ptr<http::ServerStreams> tls, Page page);
  ~MetricsServer();
  uint16_t port() const { return server_->port(); }

 private:
  class Guard;
  MetricsServer() = default;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace muster::controller
