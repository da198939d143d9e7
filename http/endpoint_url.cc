// SPDX-License-Identifier: Apache-2.0
#include "http/endpoint_url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

#include "base/quoted.h"
#include "base/text.h"

namespace muster::http {
namespace {

constexpr size_t kLongestUrl = 2048;
constexpr size_t kLongestHost = 253;
constexpr int kHttpPort = 80;
constexpr int kHttpsPort = 443;
constexpr int kMostPort = 65535;

Status Bad(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

bool IsHost(std::string_view host) {
  auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; };
  return !host.empty() && host.size() <= kLongestHost && host[0] != '-' && host[0] != '.' &&
         std::all_of(host.begin(), host.end(), plain);
}

bool IsV6(std::string_view host) {
  auto plain = [](unsigned char c) { return std::isxdigit(c) != 0 || c == ':' || c == '.'; };
  return host.size() > 3 && host.starts_with('[') && host.ends_with(']') && host.find(':') != std::string_view::npos &&
         std::all_of(host.begin() + 1, host.end() - 1, plain);
}

Status ReadAuthority(std::string_view authority, EndpointUrl* url) {
  if (authority.find('@') != std::string_view::npos) return Bad("a user or password does not belong in it");
  std::string_view host = authority;
  const size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos) {
    host = authority.substr(0, colon);
    auto port = ParseInt(authority.substr(colon + 1));
    if (!port || *port < 1 || *port > kMostPort) return Bad("its port is not a number from 1 to 65535");
    url->port = *port == (url->tls ? kHttpsPort : kHttpPort) ? 0 : static_cast<int>(*port);
  }
  if (!IsHost(host) && !IsV6(host)) return Bad("its host is not a host name or IP address");
  url->host = Lower(host);
  return absl::OkStatus();
}

StatusOr<EndpointUrl> Read(std::string_view text) {
  if (text.size() > kLongestUrl) return Bad(fmt::format("it is longer than {} bytes", kLongestUrl));
  const size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) return Bad("it lacks the scheme");
  const std::string scheme = Lower(text.substr(0, scheme_end));
  if (scheme != "http" && scheme != "https") return Bad("its scheme is neither http nor https");
  EndpointUrl url;
  url.tls = scheme == "https";
  std::string_view rest = text.substr(scheme_end + 3);
  const size_t path = std::min(rest.find_first_of("/?#"), rest.size());
  MUSTER_RETURN_IF_ERROR(ReadAuthority(rest.substr(0, path), &url));
  rest.remove_prefix(path);
  if (rest.find_first_of("?#") != std::string_view::npos) return Bad("a query or fragment does not belong in it");
  if (std::any_of(rest.begin(), rest.end(), [](char c) { return c <= ' ' || c >= 0x7f; })) {
    return Bad("its path has characters that must be percent-encoded");
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  url.path = rest;
  return url;
}

}  // namespace

StatusOr<EndpointUrl> ParseEndpointUrl(std::string_view text) {
  auto url = Read(text);
  if (url.ok()) return url;
  // The text before an '@' may be a password.
  const size_t at = text.rfind('@');
  const std::string shown =
      at == std::string_view::npos ? Quoted(text) : "'...@" + Quoted(text.substr(at + 1)).substr(1);
  return absl::InvalidArgumentError(
      fmt::format("{} is not an endpoint: {}; write it as https://HOST:PORT", shown, Message(url.status())));
}

bool IsThisMachine(const EndpointUrl& url) {
  constexpr uint32_t kLoopback = 127;
  in_addr v4;
  in6_addr v6;
  if (inet_pton(AF_INET, url.host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == kLoopback;
  if (!url.host.starts_with('[')) return url.host == "localhost";
  return inet_pton(AF_INET6, url.host.substr(1, url.host.size() - 2).c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string HostHeader(const EndpointUrl& url) {
  return url.port == 0 ? url.host : fmt::format("{}:{}", url.host, url.port);
}

std::string UrlText(const EndpointUrl& url) {
  return fmt::format("{}://{}{}", url.tls ? "https" : "http", HostHeader(url), url.path);
}

std::optional<std::string> OriginOf(std::string_view url) {
  const size_t scheme_end = url.find("://");
  if (scheme_end == std::string_view::npos) return std::nullopt;
  const auto origin = ParseEndpointUrl(url.substr(0, url.find_first_of("/?#", scheme_end + 3)));
  if (!origin.ok()) return std::nullopt;
  return UrlText(*origin);
}

std::string ResolveUrl(std::string_view base, std::string_view reference) {
  const size_t colon = reference.find("://");
  if (colon != std::string_view::npos && reference.find_first_of("/?#") > colon) return std::string(reference);
  const size_t host = base.find("://") + 3;
  if (reference.starts_with("//")) return fmt::format("{}{}", base.substr(0, host - 2), reference);
  const size_t host_end = std::min(base.find_first_of("/?#", host), base.size());
  if (reference.starts_with('/')) return fmt::format("{}{}", base.substr(0, host_end), reference);
  const std::string_view path = base.substr(0, std::min(base.find_first_of("?#"), base.size()));
  if (reference.starts_with('?')) return fmt::format("{}{}", path, reference);
  if (path.size() == host_end) return fmt::format("{}/{}", path, reference);
  return fmt::format("{}{}", path.substr(0, path.rfind('/') + 1), reference);
}

}  // namespace muster::http
