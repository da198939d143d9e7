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

std::optional<int> ParseCommandLine(CLI::App& app, const std::vector<std::string>& arguments) {
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 takes them from the back
    app.parse(reversed);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // prints the help
    PrintTo(stderr, "{}: {}; see {} --help\n", app.get_name(), error.what(), app.get_name());
    return kExitUsage;
  }
}

void AddLogFlags(CLI::App& app, LogFlags* flags) {
  app.add_option("--log-format", flags->format, "text or json")->envname("MUSTER_LOG_FORMAT")->capture_default_str();
  app.add_option("--log-level", flags->level, "debug, info, warning or error; else LOGLEVEL, else info")
      ->envname("MUSTER_LOG_LEVEL");
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

void AddCredentialFlags(CLI::App& app, net::CredentialFiles* files) {
  app.add_option("--token-file", files->token, "file with the bearer token")->envname("MUSTER_TOKEN_FILE");
  app.add_option("--tls-cert", files->tls_cert, "PEM certificate")->envname("MUSTER_TLS_CERT");
  app.add_option("--tls-key", files->tls_key, "PEM key")->envname("MUSTER_TLS_KEY");
  app.add_option("--tls-ca", files->tls_ca, "PEM of the authority both sides trust")->envname("MUSTER_TLS_CA");
}

std::string WantPositive(const std::string& text) {
  auto number = ParseDouble(text);
  return number && *number > 0 ? "" : fmt::format("'{}': want a number, more than 0", text);
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
