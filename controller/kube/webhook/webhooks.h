// SPDX-License-Identifier: Apache-2.0
// Admission webhooks over HTTPS, at the paths of Kubeflow Trainer and training-operator. Every replica serves them,
// whether it leads or not.
//
//   /mutate-trainer-kubeflow-org-v1alpha1-trainjob
//   /validate-trainer-kubeflow-org-v1alpha1-{trainjob,trainingruntime,clustertrainingruntime}
//   /validate-kubeflow-org-v1-pytorchjob
//
// controller/admission decides. Runtimes come from RuntimeCache. Before a missing or wrong runtime leads to a refusal,
// it is read from the API server, which may have a newer one. For an UPDATE that changes the plan, the runtime's
// snapshot is read; for /scale, the job itself. Of a job in a gang of Kubernetes (plan/native_gang.h) the API server is
// asked, without storing it, whether it accepts the Workload.
//
// If anybody may reach the port, a review says nothing about objects of a namespace to a client that could not read
// them. A ClusterTrainingRuntime can be read by any user. A review of an existing object has to name its uid, as the
// API server's does: else it is judged by its own text. A CREATE has no such proof, so a missing or wrong
// TrainingRuntime is not refused then; the TrainJob's status says it. Look-ups for such reviews are limited; beyond the
// limit a review is judged without. Loop thread only; a thread of its own judges large reviews (large_reviews.h).
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "controller/kube/client/api_client.h"
#include "controller/kube/jobs/runtime_cache.h"
#include "controller/plan/pytorch_plan.h"
#include "http/server.h"

namespace muster::controller {

class Webhooks {
 public:
  struct Context {
    boost::asio::io_context& loop;
    ApiClient& client;
    const RuntimeCache& runtimes;
    enum class Clients { kApiServers, kAnybody } clients;
  };

  // `options`: for PyTorchJobs; they include those for TrainJobs. `host`, `port` and errors: as for
  // http::Server::Listen. The objects in `context` must outlive this one.
  static StatusOr<std::unique_ptr<Webhooks>> Listen(Context context, PyTorchOptions options, const std::string& host,
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
