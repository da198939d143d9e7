// SPDX-License-Identifier: Apache-2.0
#include "controller/health.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "base/host_names.h"
#include "base/text.h"

namespace muster::controller {
namespace {

http::Server::Route Says(std::function<http::Server::Response()> what) {
  return {
      [what = std::move(what)](const http::Server::Request&, const http::Server::Answer& answer) { answer(what()); }};
}

}  // namespace

http::Server::Response MetricsPage(const HealthSources& sources) {
  prometheus::Registry registry;
  auto gauge = [&registry](const std::string& name, const std::string& help) -> prometheus::Family<prometheus::Gauge>& {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  };
  auto counter = [&registry](const std::string& name,
                             const std::string& help) -> prometheus::Family<prometheus::Counter>& {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  };
  gauge("muster_controller_leads", "1 while this replica leads").Add({}).Set(sources.leads() ? 1 : 0);
  const JobCounts jobs = sources.jobs();
  auto& states = gauge("muster_trainjobs", "TrainJobs by state");
  for (const auto& [state, number] : jobs.jobs_by_state) states.Add({{"state", state}}).Set(number);
  const JobCounts pytorch_jobs = sources.pytorch_jobs();
  auto& conditions = gauge("muster_pytorchjobs", "PyTorchJobs by state");
  for (const auto& [state, number] : pytorch_jobs.jobs_by_state) conditions.Add({{"state", state}}).Set(number);
  auto& passes = counter("muster_reconcile_total", "Passes over a job");
  for (const auto& [kind, counts] :
       {std::pair("TrainJob", jobs.passes), std::pair("PyTorchJob", pytorch_jobs.passes)}) {
    passes.Add({{"kind", kind}, {"result", "success"}}).Increment(static_cast<double>(counts.all - counts.failed));
    passes.Add({{"kind", kind}, {"result", "error"}}).Increment(static_cast<double>(counts.failed));
  }
  // The names of controller-runtime, for the dashboards that exist.
  auto& depth = gauge("workqueue_depth", "Jobs that wait for a pass");
  auto& added = counter("workqueue_adds_total", "How often a job began to wait for a pass");
  for (const auto& [name, counts] :
       {std::pair("trainjob", jobs.passes), std::pair("pytorchjob", pytorch_jobs.passes)}) {
    depth.Add({{"name", name}}).Set(static_cast<double>(counts.waiting));
    added.Add({{"name", name}}).Increment(static_cast<double>(counts.added));
  }
  const ApiClient::Counts& calls = sources.client.counts();
  auto& requests = counter("muster_api_requests_total", "Calls of the API server");
  requests.Add({{"kind", "read"}}).Increment(static_cast<double>(calls.reads));
  requests.Add({{"kind", "watch"}}).Increment(static_cast<double>(calls.watches));
  auto& writes = counter("muster_api_writes_total", "Writes to the API server");
  for (const auto& [what, number] : calls.writes_by_kind) {
    writes.Add({{"what", what}}).Increment(static_cast<double>(number));
  }
  counter("muster_api_throttled_total", "Answers that told a call to come back later")
      .Add({})
      .Increment(static_cast<double>(calls.throttled));
  counter("muster_api_errors_total", "Calls that ended with an error")
      .Add({})
      .Increment(static_cast<double>(calls.failed));
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = prometheus::TextSerializer().Serialize(registry.Collect())};
}

StatusOr<ListenAddress> ReadListenAddress(std::string_view flag, const std::string& text) {
  const size_t colon = text.rfind(':');
  const auto port = colon == std::string::npos ? std::nullopt : ParseInt(std::string_view(text).substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) {
    return absl::InvalidArgumentError(fmt::format("{} '{}': want HOST:PORT or :PORT, such as :8081", flag, text));
  }
  std::string host = text.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return ListenAddress{std::move(host), static_cast<uint16_t>(*port)};
}

StatusOr<std::unique_ptr<http::Server>> ServeHealth(boost::asio::io_context& loop, const ListenAddress& listen,
                                                    HealthSources sources, bool metrics) {
  auto shared = std::make_shared<const HealthSources>(std::move(sources));
  http::Server::Routes routes;
  routes["/healthz"] = Says([] { return http::Server::Response{.body = "ok\n"}; });
  // A replica that does not lead is ready, too. Otherwise a rollout would wait for ever for the old leader to end.
  routes["/readyz"] = Says([shared] {
    if (!shared->serves()) return http::Server::Response{.status = 503, .body = "the webhooks are not served yet\n"};
    if (!shared->leads() || shared->synced()) return http::Server::Response{.body = "ok\n"};
    return http::Server::Response{.status = 503, .body = "the objects of the cluster are being listed\n"};
  });
  if (metrics) routes["/metrics"] = Says([shared] { return MetricsPage(*shared); });
  return http::Server::Listen(loop, listen.host, listen.port, std::move(routes), {});
}

}  // namespace muster::controller
