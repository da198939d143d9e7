// SPDX-License-Identifier: Apache-2.0
#include "agent/commands/command_line.h"

#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "base/environment.h"
#include "base/exit_codes.h"
#include "base/host_names.h"
#include "base/log.h"
#include "base/print.h"
#include "base/startup_pages.h"
#include "base/text.h"
#include "launcher/console.h"

namespace muster::agent {

void AddLogFlags(Arguments& arguments, LogFlags* flags) {
  arguments.Text("--log-format", &flags->format, "format of the log",
                 {.metavar = "text|json", .variable = "MUSTER_LOG_FORMAT", .shows_default = true});
  arguments.Text("--log-level", &flags->level, "level of the log; else LOGLEVEL, else info",
                 {.metavar = "debug|info|warning|error", .variable = "MUSTER_LOG_LEVEL"});
}

std::optional<int> ConfigureLog(const LogFlags& flags) {
  log::Options options;
  auto format = log::ParseFormat(flags.format);
  if (!format.ok()) {
    log::Error(fmt::format("--log-format: {}", Message(format.status())));
    return kExitUsage;
  }
  options.format = *format;
  if (!flags.level.empty()) {
    auto level = log::ParseLevel(flags.level);
    if (!level.ok()) {
      log::Error(fmt::format("--log-level: {}", Message(level.status())));
      return kExitUsage;
    }
    options.level = *level;
  } else if (auto level = log::ParseLevel(Environment::OfProcess().Get("LOGLEVEL").value_or("")); level.ok()) {
    options.level = *level;
  }
  log::Configure(options);
  return std::nullopt;
}

void AddCredentialFlags(Arguments& arguments, net::CredentialFiles* files) {
  const auto file = [&arguments](const char* name, std::string* value, const char* help, const char* variable) {
    arguments.Text(name, value, help, {.metavar = "FILE", .variable = variable});
  };
  file("--token-file", &files->token, "file with the bearer token", "MUSTER_TOKEN_FILE");
  file("--tls-cert", &files->tls_cert, "PEM certificate", "MUSTER_TLS_CERT");
  file("--tls-key", &files->tls_key, "PEM key", "MUSTER_TLS_KEY");
  file("--tls-ca", &files->tls_ca, "PEM of the authority both sides trust", "MUSTER_TLS_CA");
}

int ExitCodeOfInquiry(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kFailedPrecondition:
      return kExitBadConfiguration;
    case absl::StatusCode::kAborted:
      return kExitCoordinatorLost;
    default:
      return kExitRendezvousTimeout;
  }
}

int ServeUntilSignal(boost::asio::io_context& loop, const std::string& host, int port) {
  launcher::Console console(loop);
  console.RouteLog();
  PrintTo(stdout, "listening on {}\n", JoinHostPort(host.empty() ? "::" : host, port));
  std::fflush(stdout);
  DropStartupPages();
  int code = 0;
  boost::asio::signal_set signals(loop, SIGTERM, SIGINT);
  signals.async_wait([&](boost::system::error_code error, int signal) {
    if (error) return;
    code = 128 + signal;
    loop.stop();
  });
  loop.run();
  return code;
}

}  // namespace muster::agent
