// The status server of Kubeflow Trainer over HTTPS: pods post how far their training is, and it is in the TrainJob's
// status.trainerStatus. Every replica serves it, whether it leads or not.
//
//   POST /apis/trainer.kubeflow.org/v1alpha1/namespaces/NS/trainjobs/NAME/status
//   Authorization: Bearer TOKEN     a token of the pod's service account, with this path as its audience
//   {"trainerStatus": {"progressPercentage": 40, "metrics": [...], "lastUpdatedTime": "..."}}
//
//   200  applied; the answer repeats the body. Also of a body without trainerStatus, which changes nothing
//   403  no such token, or its pod is none of this TrainJob
//   404  no such path, or no such TrainJob
//   413  a body of more than 64 KiB; 422 a body that is no such object, or what the API server says against it
//   500  the API server could not be asked
//
// The API server is asked with a client of its own and few requests a second, as pods that post too often must not keep
// the controller from its work. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "controller/kube/api_client.h"
#include "http/server.h"

namespace muster::controller {

class StatusServer {
 public:
  // `host`, `port`: as http::Server::Listen takes them, and its errors.
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
