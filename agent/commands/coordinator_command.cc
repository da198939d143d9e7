// SPDX-License-Identifier: Apache-2.0
// `muster coordinator --listen HOST:PORT`: the rendezvous alone, for many run ids at once.
#include <boost/asio/io_context.hpp>

#include "agent/commands/arguments.h"
#include "agent/commands/command_line.h"
#include "agent/commands/commands.h"
#include "agent/flags/flag_values.h"
#include "agent/flags/service_links.h"
#include "agent/rendezvous_place.h"
#include "agent/watch_port.h"
#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/log.h"
#include "base/text.h"
#include "net/credentials.h"
#include "rendezvous/coordinator.h"
#include "rendezvous/coordinator_service.h"

namespace muster::agent {

int CoordinatorCommand(const Call& call) {
  Arguments arguments("Serve the rendezvous alone, for any number of runs", "muster coordinator");
  std::string listen = fmt::format(":{}", kC10dPort);
  net::CredentialFiles files;
  LogFlags log_flags;
  std::string http_text;
  arguments.Text("--listen", &listen, "HOST:PORT; an empty host is every address, port 0 lets the kernel choose",
                 {.shows_default = true});
  AddCredentialFlags(arguments, &files);
  arguments.Text("--http-port", &http_text,
                 "[HOST:]PORT of /healthz, /readyz, /status and /metrics, or off; else MUSTER_HTTP_PORT");
  AddLogFlags(arguments, &log_flags);
  if (auto end = arguments.Parse(call)) return *end;
  if (auto end = ConfigureLog(log_flags)) return *end;
  auto address = ParseListen(listen, kC10dPort);
  if (!address.ok()) {
    log::Error(fmt::format("--listen '{}': {}", listen, Message(address.status())));
    return kExitUsage;
  }
  const Environment environment = Environment::OfProcess();
  for (const ServiceLink& link : LinksAmongSettings(environment)) log::Warning(Describe(link));
  const bool flag = arguments.Given("--http-port");
  const std::optional<std::string> http_given = flag ? std::optional(http_text) : environment.Get("MUSTER_HTTP_PORT");
  const std::string http_origin = flag ? "--http-port" : "MUSTER_HTTP_PORT";
  const bool in_cluster = InCluster(environment);
  auto http = ChooseHttpListen(http_given, in_cluster);
  if (!http.ok()) {
    log::Error(fmt::format("{} '{}': {}", http_origin, http_given.value_or(""), Message(http.status())));
    return kExitUsage;
  }
  http->origin = http_origin;
  auto credentials = net::ReadCredentials(files);
  if (!credentials.ok()) {
    log::Error(Message(credentials.status()));
    return kExitBadConfiguration;
  }

  boost::asio::io_context loop(1);
  rendezvous::Coordinator coordinator(
      loop, {.self_node = "", .self_address = listen, .only_run_id = "", .in_pods = in_cluster});
  coordinator.OnReason([](const std::string& run_id, const std::string& reason) {
    log::Info(reason, {{"run_id", run_id}});
  });
  rendezvous::CoordinatorService::Options options;
  options.host = address->host;
  options.port = address->port;
  options.credentials = *credentials;
  auto service = rendezvous::CoordinatorService::Serve(loop, coordinator, options);
  if (!service.ok()) {
    log::Error(fmt::format("--listen {}: {}", listen, Message(service.status())));
    return kExitBadConfiguration;
  }
  auto watched = WatchServer(loop, *http, &coordinator);
  if (!watched.ok()) {
    log::Error(Message(watched.status()));
    return kExitBadConfiguration;
  }
  SayIfOpen(*credentials, address->host, (*service)->port(),
            "--token-file, --tls-cert, --tls-key and --tls-ca protect it");
  return ServeUntilSignal(loop, address->host, (*service)->port());
}

}  // namespace muster::agent
