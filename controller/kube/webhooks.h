// Admission webhooks over HTTPS, at the paths of Kubeflow Trainer and training-operator. Every replica serves them,
// whether it leads or not.
//
//   /mutate-trainer-kubeflow-org-v1alpha1-trainjob
//   /validate-trainer-kubeflow-org-v1alpha1-{trainjob,trainingruntime,clustertrainingruntime}
//   /validate-kubeflow-org-v1-pytorchjob
//
// controller/admission decides. Runtimes are looked up among those that are watched; before one that is not there, or
// not as it should be, leads to a refusal, the API server is asked: it may be newer. A snapshot is read where an UPDATE
// changes what is planned; the job itself for /scale. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "controller/kube/api_client.h"
#include "controller/kube/runtime_cache.h"
#include "controller/plan/pytorch_plan.h"
#include "http/server.h"

namespace muster::controller {

class Webhooks {
 public:
  struct Means {
    boost::asio::io_context& loop;
    ApiClient& client;
    const RuntimeCache& runtimes;
  };

  // `options`: of PyTorchJobs, and with them of TrainJobs. `host`, `port`: as http::Server::Listen takes them, and its
  // errors. What `means` refers to outlives it.
  static StatusOr<std::unique_ptr<Webhooks>> Listen(Means means, PyTorchOptions options, const std::string& host,
                                                    uint16_t port, std::shared_ptr<http::ServerStreams> tls);
  ~Webhooks();
  uint16_t port() const { return server_->port(); }

 private:
  class Reviews;
  Webhooks() = default;
  std::unique_ptr<Reviews> reviews_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace muster::controller
