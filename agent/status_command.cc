// `muster status ENDPOINT`: roster, round, restarts and the reason of the last change, once or at every change.
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>

#include "agent/command_line.h"
#include "agent/commands.h"
#include "agent/status_text.h"
#include "base/exit_codes.h"
#include "base/text.h"
#include "rendezvous/credentials.h"
#include "rendezvous/grpc_channel.h"
#include "rendezvous/grpc_link.h"

namespace muster::agent {

using rendezvous::StatusReport;

int StatusCommand(const std::vector<std::string>& arguments) {
  CLI::App app{"Show roster, round, restarts and the reason of the last change", "muster status"};
  std::string endpoint;
  std::string run_id;
  rendezvous::CredentialFiles files;
  bool json = false;
  bool follow = false;
  double timeout = 10;
  app.add_option("endpoint", endpoint, "HOST:PORT of the rendezvous")->required();
  app.add_option("--run-id", run_id, "which run, where the coordinator has several");
  app.add_option("--token-file", files.token, "file with the bearer token")->envname("MUSTER_TOKEN_FILE");
  app.add_option("--tls-cert", files.tls_cert, "PEM certificate")->envname("MUSTER_TLS_CERT");
  app.add_option("--tls-key", files.tls_key, "PEM key")->envname("MUSTER_TLS_KEY");
  app.add_option("--tls-ca", files.tls_ca, "PEM of the authority both sides trust")->envname("MUSTER_TLS_CA");
  app.add_option("--timeout", timeout, "seconds to wait for the first answer")->check(CLI::PositiveNumber);
  app.add_flag("--json", json, "one JSON object a line");
  app.add_flag("--follow,-f", follow, "print at every change until the run ends");
  if (auto end = ParseCommandLine(app, arguments)) return *end;

  auto credentials = rendezvous::ReadCredentials(files);
  if (!credentials.ok()) {
    fmt::print(stderr, "muster status: {}\n", Message(credentials.status()));
    return kExitBadConfiguration;
  }
  if (endpoint.find(':') == std::string::npos) endpoint += ":29400";

  boost::asio::io_context loop(1);
  rendezvous::Resolver resolver(loop);
  auto queue = rendezvous::MakeCallQueue(loop);
  auto limit = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(timeout));
  int code = 0;
  bool answered = false;
  std::unique_ptr<rendezvous::Link> link;
  boost::asio::steady_timer deadline(loop, limit);
  deadline.async_wait([&](boost::system::error_code error) {
    if (error || answered) return;
    fmt::print(stderr, "muster status: {} did not answer within {} s\n", endpoint, timeout);
    code = kExitRendezvousTimeout;
    loop.stop();
  });
  rendezvous::Link::Events events;
  events.connected = [&] { link->Send(rendezvous::Inspect{.run_id = run_id, .follow = follow}); };
  events.message = [&](const rendezvous::CoordinatorMessage& message) {
    answered = true;
    deadline.cancel();
    if (auto* refuse = std::get_if<rendezvous::Refuse>(&message)) {
      fmt::print(stderr, "muster status: {}\n", refuse->reason);
      code = refuse->exit_code;
      return loop.stop();
    }
    auto* report = std::get_if<StatusReport>(&message);
    if (report == nullptr) return;
    fmt::print("{}", json ? StatusJson(*report) + "\n" : StatusTable(*report));
    std::fflush(stdout);
    if (!follow || report->phase == "finished") loop.stop();
  };
  events.closed = [&](rendezvous::attendance::Loss, const std::string& detail) {
    if (!answered) {
      fmt::print(stderr, "muster status: {}\n", detail);
      code = kExitRendezvousTimeout;
    }
    loop.stop();
  };
  link = rendezvous::DialGrpc(loop, *queue, resolver, endpoint, *credentials, limit, std::move(events));
  loop.run();
  link.reset();
  return code;
}

}  // namespace muster::agent
