// SPDX-License-Identifier: Apache-2.0
// The controller's /healthz and /readyz, and /metrics unless MetricsServer serves it. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "controller/kube/client/api_client.h"
#include "controller/kube/jobs/pytorch_jobs.h"
#include "controller/kube/jobs/train_jobs.h"
#include "http/server.h"

namespace muster::controller {

struct HealthSources {
  std::function<bool()> leads;
  std::function<bool()> synced;  // everything is listed; asked only while leading
  std::function<bool()> serves;  // all servers that have the webhooks' certificate
  std::function<JobCounts()> jobs;
  std::function<JobCounts()> pytorch_jobs;  // empty counts if the controller serves none
  const ApiClient& client;
};

struct ListenAddress {
  std::string host;  // empty: every address
  uint16_t port = 0;
};
// HOST:PORT, [HOST]:PORT or :PORT. InvalidArgument names the flag.
StatusOr<ListenAddress> ReadListenAddress(std::string_view flag, const std::string& text);

// Port 0: the kernel chooses one. `metrics`: whether it serves /metrics, too.
StatusOr<std::unique_ptr<http::Server>> ServeHealth(boost::asio::io_context& loop, const ListenAddress& listen,
                                                    HealthSources sources, bool metrics);

// The answer of /metrics, in Prometheus' text format.
http::Server::Response MetricsPage(const HealthSources& sources);

}  // namespace muster::controller
