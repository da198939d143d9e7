// The URL of a service, taken apart; where a redirect leads. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::http {

struct EndpointUrl {
  bool tls = true;
  std::string host;  // lower case; an IPv6 address in its brackets
  int port = 0;      // 0: the scheme's own, also where it was written
  std::string path;  // as given, without slashes at its end: "" or "/base"
  bool operator==(const EndpointUrl&) const = default;
};

// "http(s)://HOST[:PORT][/PATH]". InvalidArgument says what is wrong: no scheme, another scheme, user and password, a
// query or fragment, a host or port that cannot be.
StatusOr<EndpointUrl> ParseEndpointUrl(std::string_view text);

// 127.0.0.0/8, [::1], localhost: what is sent there by http, no network sees.
bool IsThisMachine(const EndpointUrl& url);

// "host" or "host:port", as the Host header says it.
std::string HostHeader(const EndpointUrl& url);
// "https://host:port/base"
std::string UrlText(const EndpointUrl& url);

// For people: what stands in a query may be a signature.
inline std::string_view WithoutQuery(std::string_view url) { return url.substr(0, url.find('?')); }

// Scheme, host and port of any URL: "https://host:port", in one way of writing. Who gets a token is decided by it.
// Nothing: it is no http(s) URL, or has a user in it.
std::optional<std::string> OriginOf(std::string_view url);
// A Location or a Link, as the answer from `base` has it, made absolute: RFC 3986 5.2 in so far as servers need it.
std::string ResolveUrl(std::string_view base, std::string_view reference);

}  // namespace muster::http
