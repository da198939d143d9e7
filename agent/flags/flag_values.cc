// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/flag_values.h"

#include <arpa/inet.h>

#include <algorithm>
#include <csignal>
#include <limits>

#include "base/exit_codes.h"
#include "base/text.h"

namespace muster::agent {
namespace {

Status Bad(const std::string& text) { return absl::InvalidArgumentError(text); }

bool IsHostByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == ':' || c == '-';
}

// As inet_pton(3) reads it; "%eth0" after a link-local address names its interface.
bool IsIpv6(std::string_view text) {
  in6_addr parsed{};
  return inet_pton(AF_INET6, std::string(text.substr(0, text.find('%'))).c_str(), &parsed) == 1;
}

std::optional<Duration> UnitOf(std::string_view name) {
  if (name.empty() || name == "s") return std::chrono::seconds(1);
  if (name == "ms") return std::chrono::milliseconds(1);
  if (name == "m") return std::chrono::minutes(1);
  if (name == "h") return std::chrono::hours(1);
  if (name == "d") return std::chrono::hours(24);
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> ParsePythonInt(std::string_view text) {
  text = Strip(text);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  return ParseInt(text);
}

StatusOr<std::pair<int, int>> ParseNodeRange(std::string_view text) {
  const Status wanted = Bad("want a number of nodes or MIN:MAX with 0 < MIN <= MAX");
  std::vector<std::string_view> parts = Split(text, ':');
  if (parts.empty() || parts.size() > 2) return wanted;
  auto min = ParsePythonInt(parts.front());
  auto max = ParsePythonInt(parts.back());
  if (!min || !max || *min < 1 || *min > *max || *max > std::numeric_limits<int>::max()) return wanted;
  return std::pair(static_cast<int>(*min), static_cast<int>(*max));
}

StatusOr<StdStreams> ParseStdStreams(std::string_view text) {
  StdStreams streams;
  const Status wanted = Bad("want 0 (none), 1 (stdout), 2 (stderr), 3 (both), or RANK:N,RANK:N such as 0:3,1:1");
  auto stream = [](std::string_view digit) {
    return digit.size() == 1 && digit[0] >= '0' && digit[0] <= '3' ? digit[0] - '0' : -1;
  };
  if (stream(text) >= 0) {
    streams.all = stream(text);
    return streams;
  }
  std::vector<std::string_view> parts = Split(text, ',');
  if (parts.empty()) return wanted;
  for (std::string_view part : parts) {
    size_t colon = part.find(':');
    if (colon == std::string_view::npos) return wanted;
    auto rank = ParseInt(part.substr(0, colon));  // torchrun reads one digit only; more do no harm
    int value = stream(part.substr(colon + 1));
    if (!rank || *rank < 0 || *rank > 1'000'000 || value < 0) return wanted;
    streams.by_local_rank[static_cast<int>(*rank)] = value;
  }
  return streams;
}

StatusOr<bool> ParseBool(std::string_view text) {
  std::string lower = Lower(Strip(text));
  for (std::string_view yes : {"1", "true", "t", "yes", "y"}) {
    if (lower == yes) return true;
  }
  for (std::string_view no : {"0", "false", "f", "no", "n"}) {
    if (lower == no) return false;
  }
  return Bad("want true or false");
}

StatusOr<Duration> ParseDuration(std::string_view text) {
  const Status wanted = Bad("want a duration such as 30, 0.5, 500ms, 10m, 1h30m");
  std::string_view rest = Strip(text);
  if (rest.empty()) return wanted;
  double total = 0;
  while (!rest.empty()) {
    size_t digits = rest.find_first_not_of("0123456789.");
    std::string_view number = rest.substr(0, digits);
    rest = digits == std::string_view::npos ? std::string_view() : rest.substr(digits);
    size_t letters = rest.find_first_of("0123456789.");
    std::string_view name = rest.substr(0, letters);
    rest = letters == std::string_view::npos ? std::string_view() : rest.substr(letters);
    auto value = ParseDouble(number);
    auto unit = UnitOf(name);
    if (!value || !unit) return wanted;
    total += *value * static_cast<double>(unit->count());
  }
  if (total > 3e18) return Bad("is too long: want at most 10000 days");  // Duration holds 292 years
  return Duration(static_cast<int64_t>(total));
}

std::vector<std::string> ParseFilters(std::string_view text) {
  std::vector<std::string> filters;
  std::string current;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != ',') {
      current += text[at];
    } else if (at + 1 < text.size() && text[at + 1] == ',') {
      current += ',';
      ++at;
    } else {
      if (!current.empty()) filters.push_back(std::move(current));
      current.clear();
    }
  }
  if (!current.empty()) filters.push_back(std::move(current));
  return filters;
}

StatusOr<std::vector<int>> ParseRankList(std::string_view text) {
  std::vector<int> ranks;
  for (std::string_view part : Split(text, ',')) {
    auto rank = ParsePythonInt(part);
    if (!rank || *rank < 0 || *rank > std::numeric_limits<int>::max()) {
      return Bad("want local ranks separated by commas, such as 0,2");
    }
    ranks.push_back(static_cast<int>(*rank));
  }
  return ranks;
}

StatusOr<std::vector<int>> ParseSignalList(std::string_view text) {
  std::vector<int> signals;
  for (std::string_view part : Split(text, ',')) {
    if (Strip(part).empty()) continue;
    MUSTER_ASSIGN_OR_RETURN(int signal, ParseSignal(part));
    if (signal == SIGKILL || signal == SIGSTOP || signal == SIGCHLD) {
      return Bad(fmt::format("{} cannot be passed on; leave it out", SignalName(signal)));
    }
    signals.push_back(signal);
  }
  return signals;
}

StatusOr<Endpoint> ParseEndpoint(std::string_view text, int default_port) {
  text = Strip(text);
  if (text.empty()) return Endpoint{"localhost", default_port};
  Endpoint endpoint{std::string(text), default_port};
  size_t colon = text.rfind(':');
  bool only_host = (text.front() == '[' && text.back() == ']') || colon == std::string_view::npos;
  if (!only_host) {
    std::string_view port_text = text.substr(colon + 1);
    auto port = port_text.size() > 5 || port_text.starts_with('-') ? std::nullopt : ParseInt(port_text);
    if (!port || *port > 65535) return Bad("the port must be a number from 0 to 65535: want HOST:PORT or [IPV6]:PORT");
    endpoint = {std::string(text.substr(0, colon)), static_cast<int>(*port)};
  }
  if (endpoint.host.size() > 1 && endpoint.host.front() == '[' && endpoint.host.back() == ']') {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  if (endpoint.host.empty()) return Bad("the host is missing: want HOST:PORT or [IPV6]:PORT");
  for (char c : endpoint.host) {
    if (!IsHostByte(c))
      return Bad("the host must be a name, an IPv4 or an IPv6 address: want HOST:PORT or [IPV6]:PORT");
  }
  return endpoint;
}

Status CheckHost(std::string_view text) {
  constexpr size_t kLongestName = 253;
  text = Strip(text);
  bool name = text.size() <= kLongestName && text.find(':') == std::string_view::npos &&
              std::all_of(text.begin(), text.end(), IsHostByte);
  if (name || IsIpv6(text)) return absl::OkStatus();
  return Bad("want a host name, an IPv4 or an IPv6 address, without a port");
}

StatusOr<std::string> ParseListenHost(std::string_view text) {
  if (text.empty() || text == "::") return std::string();
  if (text == "localhost") return std::string("127.0.0.1");
  const std::string host(text);
  in6_addr bytes{};  // also large enough for an IPv4 address
  const std::string plain = host.substr(0, host.find('%'));
  if (inet_pton(AF_INET, plain.c_str(), &bytes) != 1 && inet_pton(AF_INET6, plain.c_str(), &bytes) != 1) {
    return Bad(
        fmt::format("'{}' is not a numeric address; give one of this machine, such as 127.0.0.1, or none for every "
                    "address",
                    text));
  }
  return host;
}

StatusOr<Endpoint> ParseListen(std::string_view text, int default_port) {
  text = Strip(text);
  if (text.empty()) return Bad("want HOST:PORT, [IPV6]:PORT or :PORT");
  if (auto bare = ParseListenHost(text); bare.ok()) return Endpoint{*bare, default_port};
  MUSTER_ASSIGN_OR_RETURN(
      Endpoint endpoint,
      ParseEndpoint(text.starts_with(':') ? fmt::format("[::]{}", text) : std::string(text), default_port));
  MUSTER_ASSIGN_OR_RETURN(endpoint.host, ParseListenHost(endpoint.host));
  return endpoint;
}

StatusOr<HttpListen> ParseHttpListen(std::string_view text) {
  HttpListen listen{.on = true, .required = true};
  text = Strip(text);
  bool only_port = text.find(':') == std::string_view::npos;
  auto endpoint = ParseEndpoint(only_port ? fmt::format("localhost:{}", text) : std::string(text), -1);
  if (!endpoint.ok() || endpoint->port < 0) return Bad("want PORT, HOST:PORT or off, with a port from 0 to 65535");
  if (!only_port) listen.host = endpoint->host;
  listen.port = endpoint->port;
  return listen;
}

bool InCluster(const Environment& environment) {
  return !environment.Get("KUBERNETES_SERVICE_HOST").value_or("").empty();
}

StatusOr<HttpListen> ChooseHttpListen(const std::optional<std::string>& given, bool in_cluster) {
  if (given) return given->empty() || *given == "off" ? HttpListen() : ParseHttpListen(*given);
  HttpListen listen;
  if (in_cluster) listen = {.on = true, .required = false, .host = "", .port = kHttpPortUnderKubernetes};
  return listen;
}

StatusOr<std::map<std::string, std::string>> ParseRdzvConf(std::string_view text) {
  std::map<std::string, std::string> conf;
  text = Strip(text);
  for (std::string_view part : Split(text, ',')) {
    size_t equals = part.find('=');
    std::string_view key = Strip(part.substr(0, equals));
    std::string_view value = equals == std::string_view::npos ? std::string_view() : Strip(part.substr(equals + 1));
    if (key.empty()) return Bad("want KEY=VALUE,KEY=VALUE");
    if (value.empty()) return Bad(fmt::format("'{}' has no value: want KEY=VALUE,KEY=VALUE", key));
    conf[std::string(key)] = value;
  }
  return conf;
}

}  // namespace muster::agent
