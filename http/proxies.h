// SPDX-License-Identifier: Apache-2.0
// Chooses the proxy of a request by the variables that curl, Go and Python's requests read.
//
//   http_proxy, HTTP_PROXY (not if REQUEST_METHOD is set: a CGI program gets HTTP_PROXY from its clients)
//   https_proxy, HTTPS_PROXY;   for both: all_proxy, ALL_PROXY;   exceptions: no_proxy, NO_PROXY
//
// The first variable that is set counts; a blank one means no proxy. White space around a value is dropped; a value
// without a scheme has the scheme http. NO_PROXY is a list separated by commas or blanks. An entry has the widest
// meaning that those programs give it: "*"; a name, also with "." or "*." in front, which matches itself and all names
// below it; an IPv4 or IPv6 address, also in brackets; a network ("10.0.0.0/8", "fd00::/8"). ":PORT" after a name or an
// address limits it to that port (IPv6 needs brackets). No name is resolved. Any other entry matches nothing. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/environment.h"
#include "base/status.h"

namespace muster::http {

class Proxies {
 public:
  Proxies() = default;  // none
  // InvalidArgument names the variable whose value is not a proxy, and says what is wrong and what a proxy looks like,
  // without showing the password.
  static StatusOr<Proxies> Read(const Environment& environment);

  // The proxy's URL for a request to `url`; empty: no proxy.
  std::string For(std::string_view url) const;
  // Whether a proxy is reached over TLS.
  bool by_tls() const { return http_.starts_with("https://") || https_.starts_with("https://"); }

 private:
  std::string http_, https_;          // URLs
  std::vector<std::string> without_;  // NO_PROXY's entries, in lower case
};

}  // namespace muster::http
