// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/wait_targets.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>
#include <vector>

#include "agent/flags/flag_values.h"
#include "base/host_names.h"
#include "base/text.h"

namespace muster::agent {
namespace {

constexpr size_t kMaxName = 253;
constexpr size_t kMaxLabel = 63;
constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::seconds(2);

bool IsV6(std::string_view text) {
  boost::system::error_code error;
  boost::asio::ip::make_address_v6(std::string(text), error);
  return !error;
}

bool IsHostName(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > kMaxName) return false;
  for (std::string_view label : Split(name, '.')) {
    if (label.empty() || label.size() > kMaxLabel) return false;
    bool plain = std::all_of(label.begin(), label.end(),
                             [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
    if (!plain) return false;
  }
  return true;
}

}  // namespace

std::string WaitTarget::Address() const { return port == 0 ? host : JoinHostPort(host, port); }

std::string WaitTarget::Name() const {
  switch (kind) {
    case WaitKind::kDns:
      return fmt::format("name {}", Address());
    case WaitKind::kTcp:
      return fmt::format("tcp {}", Address());
    case WaitKind::kRendezvous:
      return fmt::format("rendezvous {}", Address());
  }
  return Address();
}

StatusOr<WaitTarget> ParseWaitTarget(std::string_view text, std::optional<WaitKind> kind) {
  auto bad = [&](std::string_view what) {
    return absl::InvalidArgumentError(
        fmt::format("'{}': {}; give HOST or HOST:PORT, an IPv6 address with a port as [ADDRESS]:PORT", text, what));
  };
  std::string_view host = text;
  std::optional<std::string_view> port_text;
  bool bracketed = text.starts_with('[');
  if (bracketed) {
    size_t close = text.find(']');
    if (close == std::string_view::npos) return bad("the bracket is not closed");
    host = text.substr(1, close - 1);
    std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && !rest.starts_with(':')) return bad("after the bracket comes :PORT");
    if (!rest.empty()) port_text = rest.substr(1);
    if (!IsV6(host)) return bad("the text in brackets is not an IPv6 address");
  } else if (!IsV6(text)) {
    size_t colon = text.rfind(':');
    if (colon != std::string_view::npos) {
      host = text.substr(0, colon);
      port_text = text.substr(colon + 1);
    }
    if (!IsHostName(host)) return bad("this is not a host name or address");
  }

  WaitTarget target;
  target.host = host;
  if (port_text) {
    auto port = ParseInt(*port_text);
    if (!port || *port < 1 || *port > 65535) return bad("the port is a number from 1 to 65535");
    target.port = static_cast<int>(*port);
  }
  target.kind = kind.value_or(port_text ? WaitKind::kTcp : WaitKind::kDns);
  if (target.kind == WaitKind::kDns) target.port = 0;
  if (target.kind == WaitKind::kRendezvous && !port_text) target.port = kC10dPort;
  if (target.kind == WaitKind::kTcp && !port_text) return bad("--tcp needs a port");
  return target;
}

Duration WaitPause(int failures, double share) {
  Duration pause = kFirstPause;
  for (int i = 1; i < failures && pause < kLongestPause; ++i) pause *= 2;
  pause = std::min(pause, kLongestPause);
  return pause / 2 + Duration(static_cast<int64_t>(static_cast<double>(pause.count()) / 2 * share));
}

std::string StableReason(std::string_view reason) {
  std::vector<std::string> parts;
  for (size_t at = 0; at != std::string_view::npos;) {
    size_t end = reason.find("; ", at);
    parts.emplace_back(reason.substr(at, end == std::string_view::npos ? end : end - at));
    at = end == std::string_view::npos ? end : end + 2;
  }
  std::sort(parts.begin(), parts.end());
  return Join(parts, "; ");
}

std::string ForPeople(Duration duration) {
  double seconds = std::chrono::duration<double>(duration).count();
  return seconds < 1 ? fmt::format("{:.0f} ms", seconds * 1000) : fmt::format("{:.4g} s", seconds);
}

}  // namespace muster::agent
