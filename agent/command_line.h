// CLI11 for the small subcommands, with Muster's exit codes: 64 for a wrong flag, 0 for --help.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace muster::agent {

// Parses; an exit code means "end now" (help or an error was printed).
std::optional<int> ParseCommandLine(CLI::App& app, const std::vector<std::string>& arguments);

// "host:port", "[v6]:port", ":port"; InvalidArgument-like nullopt when the port is no number in 0..65535.
struct HostPort {
  std::string host;
  int port = 0;
};
std::optional<HostPort> ParseHostPort(const std::string& text);

}  // namespace muster::agent
