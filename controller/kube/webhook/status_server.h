// SPDX-License-Identifier: Apache-2.0
// The status server of Kubeflow Trainer over HTTPS: pods post the progress of their training, and the server writes it
// to the TrainJob's status.trainerStatus. Every replica serves it, whether it leads or not.
//
//   POST /apis/trainer.kubeflow.org/v1alpha1/namespaces/NS/trainjobs/NAME/status
//   Authorization: Bearer TOKEN     a token of the pod's service account; its audience is the path without "/apis/"
//   {"trainerStatus": {"progressPercentage": 40, "metrics": [...], "lastUpdatedTime": "..."}}
//
//   200  applied; the answer repeats the body. Also for a body without trainerStatus, which changes nothing
//   403  the token is not valid, or its pod does not belong to this TrainJob
//   404  no such path, or no such TrainJob
//   413  a body of more than 64 KiB; 422 a body that is not such an object, or that the API server rejects
//   500  the API server could not be asked
//
// The server has its own client of the API server, with a low rate limit. So pods that post too often do not slow the
// controller down. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "controller/kube/client/api_client.h"
#include "http/server.h"

namespace muster::controller {

class StatusServer {
 public:
  // `host`, `port` and errors: as for http::Server::Listen.
  static StatusOr<std::unique_ptr<StatusServer>> Listen(boost::asio::io_context& loop, ClusterAccess access,
                                                        const std::string& host, uint16_t port,
                                                        std::shared_ptr<http::ServerStreams> tls);
  ~StatusServer();
  uint16_t port() const { return server_->port(); }

 private:
  class Posts;
  StatusServer() = default;
  std::unique_ptr<Posts> posts_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace muster::controller
