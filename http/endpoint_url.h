// SPDX-License-Identifier: Apache-2.0
// Parses the URL of a service, and resolves redirects. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::http {

struct EndpointUrl {
  bool tls = true;
  std::string host;  // lower case; an IPv6 address with its brackets
  int port = 0;      // 0: the scheme's default port, even if the URL contains it
  std::string path;  // as given, without trailing slashes: "" or "/base"
  bool operator==(const EndpointUrl&) const = default;
};

// Parses "http(s)://HOST[:PORT][/PATH]". InvalidArgument says what is wrong: no scheme, another scheme, user and
// password, a query or fragment, an invalid host or port. It does not show a password.
StatusOr<EndpointUrl> ParseEndpointUrl(std::string_view text);

// 127.0.0.0/8, [::1] or localhost: plain http to them does not go over a network.
bool IsThisMachine(const EndpointUrl& url);

// "host" or "host:port", the value of the Host header.
std::string HostHeader(const EndpointUrl& url);
// "https://host:port/base"
std::string UrlText(const EndpointUrl& url);

// For texts that people read: a query may contain a signature.
inline std::string_view WithoutQuery(std::string_view url) { return url.substr(0, url.find('?')); }

// Scheme, host and port of any URL as "https://host:port", in one canonical form: it decides which server gets a token.
// nullopt: no http(s) URL, or it contains a user.
std::optional<std::string> OriginOf(std::string_view url);
// Makes a Location or Link of an answer from `base` absolute: those parts of RFC 3986 5.2 that servers use.
std::string ResolveUrl(std::string_view base, std::string_view reference);

}  // namespace muster::http
