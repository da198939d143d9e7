// The URL of a service, taken apart. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::initializers {

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

}  // namespace muster::initializers
