#include "agent/command_line.h"

#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "base/exit_codes.h"
#include "base/text.h"
#include "launcher/log_files.h"

namespace muster::agent {

std::optional<int> ParseCommandLine(CLI::App& app, const std::vector<std::string>& arguments) {
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 takes them from the back
    app.parse(reversed);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    int code = app.exit(error);  // prints help or the error
    return code == 0 ? 0 : kExitUsage;
  }
}

int ServeUntilSignal(boost::asio::io_context& loop, const std::string& host, int port) {
  launcher::Console console(loop);
  console.CarryLog();
  fmt::print("listening on {}:{}\n", host, port);
  std::fflush(stdout);
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
