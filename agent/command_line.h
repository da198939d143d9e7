// CLI11 for the small subcommands, with Muster's exit codes: 64 for a wrong flag, 0 for --help.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

// Parses; an exit code means "end now" (help or an error was printed).
std::optional<int> ParseCommandLine(CLI::App& app, const std::vector<std::string>& arguments);

// --log-format and --log-level, or their variables, of a subcommand that serves.
struct LogFlags {
  std::string format = "text";
  std::string level;
};
void AddLogFlags(CLI::App& app, LogFlags* flags);
// Sets the process' log up; an exit code means "end now" (an error was printed).
std::optional<int> ConfigureLog(const LogFlags& flags);

// For an option's check(): CLI11's own names a range of 300 digits.
std::string WantPositive(const std::string& text);

// Says "listening on HOST:PORT" on stdout ("" is every address) and runs the loop until SIGTERM or SIGINT; gives 128 +
// signal.
int ServeUntilSignal(boost::asio::io_context& loop, const std::string& host, int port);

}  // namespace muster::agent
