// SPDX-License-Identifier: Apache-2.0
#include "http/proxies.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <optional>

#include "base/quoted.h"
#include "base/text.h"
#include "http/endpoint_url.h"

namespace muster::http {
namespace {

namespace ip = boost::asio::ip;

constexpr int kHttpPort = 80;
constexpr int kHttpsPort = 443;
constexpr std::string_view kSchemes[] = {"http", "https", "socks4", "socks4a", "socks5", "socks5h"};

// The first variable that is set, even to an empty value.
std::optional<Environment::Variable> FirstSet(const Environment& environment, std::string_view names) {
  for (std::string_view name : Split(names, ' ')) {
    if (auto value = environment.Get(name)) return Environment::Variable{std::string(name), *std::move(value)};
  }
  return std::nullopt;
}

// "SCHEME://[USER[:PASSWORD]@]HOST[:PORT]"; empty: no proxy.
StatusOr<std::string> ReadProxy(const std::optional<Environment::Variable>& variable) {
  const std::string value(variable ? Strip(variable->value) : "");
  if (value.empty()) return value;
  const auto bad = [&](std::string_view what) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a proxy: {}; set it to http://HOST:PORT, or unset it", variable->name, what));
  };
  if (value.find_first_of("\"'") != std::string::npos) return bad("there are quotes in its value");
  const bool odd = std::any_of(value.begin(), value.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; });
  if (odd) return bad("there is white space or a control character in its value");
  const size_t slashes = value.find("://");
  const std::string scheme = slashes == std::string::npos ? "http" : Lower(value.substr(0, slashes));
  if (std::find(std::begin(kSchemes), std::end(kSchemes), scheme) == std::end(kSchemes)) {
    return bad(
        fmt::format("its scheme {} is none of http, https, socks4, socks4a, socks5 and socks5h", Quoted(scheme, 20)));
  }
  const std::string rest = slashes == std::string::npos ? value : value.substr(slashes + 3);
  const size_t at = rest.rfind('@');
  const std::string place = at == std::string::npos ? rest : rest.substr(at + 1);
  // Host and port have the same form for all schemes.
  const auto url = ParseEndpointUrl("http://" + place.substr(0, place.find_first_of("/?#")));
  if (!url.ok()) return bad(Message(url.status()));
  return fmt::format("{}://{}", scheme, rest);
}

std::optional<ip::address> AddressOf(std::string_view text) {
  if (text.size() > 2 && text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  boost::system::error_code error;
  const ip::address address = ip::make_address(std::string(text), error);
  return error ? std::nullopt : std::optional(address);
}

bool IsInNetwork(const ip::address& address, std::string_view network) {
  const size_t slash = network.find('/');
  const auto base = AddressOf(network.substr(0, slash));
  const auto bits = ParseInt(network.substr(slash + 1));
  if (!base || !bits || *bits < 0 || base->is_v4() != address.is_v4() || *bits > (base->is_v4() ? 32 : 128))
    return false;
  const auto length = static_cast<unsigned short>(*bits);
  if (base->is_v4()) {
    return ip::network_v4(base->to_v4(), length).canonical() == ip::network_v4(address.to_v4(), length).canonical();
  }
  return ip::network_v6(base->to_v6(), length).canonical() == ip::network_v6(address.to_v6(), length).canonical();
}

std::string_view WithoutLastDot(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  return name;
}

bool Names(std::string_view entry, std::string_view host) {
  if (entry.starts_with('*')) entry.remove_prefix(1);
  if (entry.starts_with('.')) entry.remove_prefix(1);
  entry = WithoutLastDot(entry);
  host = WithoutLastDot(host);
  if (entry.empty() || !host.ends_with(entry)) return false;
  return host.size() == entry.size() || host[host.size() - entry.size() - 1] == '.';
}

bool Matches(std::string_view entry, const EndpointUrl& url) {
  if (entry == "*") return true;
  const auto address = AddressOf(url.host);
  if (entry.find('/') != std::string_view::npos) return address && IsInNetwork(*address, entry);
  if (!AddressOf(entry)) {  // an IPv6 address has colons itself
    const size_t colon = entry.rfind(':');
    if (colon != std::string_view::npos) {
      const int port = url.port != 0 ? url.port : url.tls ? kHttpsPort : kHttpPort;
      if (ParseInt(entry.substr(colon + 1)) != port) return false;
      entry = entry.substr(0, colon);
    }
  }
  if (const auto other = AddressOf(entry)) return address == other;
  return !address && Names(entry, url.host);
}

}  // namespace

StatusOr<Proxies> Proxies::Read(const Environment& environment) {
  Proxies proxies;
  const bool is_cgi = environment.Get("REQUEST_METHOD").has_value();
  const auto http =
      FirstSet(environment, is_cgi ? "http_proxy all_proxy ALL_PROXY" : "http_proxy HTTP_PROXY all_proxy ALL_PROXY");
  MUSTER_ASSIGN_OR_RETURN(proxies.http_, ReadProxy(http));
  const auto https = FirstSet(environment, "https_proxy HTTPS_PROXY all_proxy ALL_PROXY");
  MUSTER_ASSIGN_OR_RETURN(proxies.https_, ReadProxy(https));
  const auto without = FirstSet(environment, "no_proxy NO_PROXY");
  std::string list = Lower(without ? without->value : "");
  std::replace_if(
      list.begin(), list.end(), [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }, ',');
  for (std::string_view entry : Split(list, ',')) {
    if (!entry.empty()) proxies.without_.emplace_back(entry);
  }
  return proxies;
}

std::string Proxies::For(std::string_view url) const {
  const size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) return "";
  const auto place = ParseEndpointUrl(url.substr(0, url.find_first_of("/?#", scheme_end + 3)));
  if (!place.ok()) return "";  // the request itself reports what is wrong
  const bool without =
      std::any_of(without_.begin(), without_.end(), [&](std::string_view entry) { return Matches(entry, *place); });
  return without ? "" : place->tls ? https_ : http_;
}

}  // namespace muster::http
