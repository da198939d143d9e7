#include "agent/command_line.h"

#include <algorithm>

#include "base/exit_codes.h"
#include "base/text.h"

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

std::optional<HostPort> ParseHostPort(const std::string& text) {
  size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  auto port = ParseInt(std::string_view(text).substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) return std::nullopt;
  std::string host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return HostPort{host, static_cast<int>(*port)};
}

}  // namespace muster::agent
