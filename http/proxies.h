// Which proxy a request goes through, by the variables that curl, Go and Python's requests read.
//
//   http_proxy, HTTP_PROXY (not where REQUEST_METHOD is set: a CGI program gets that one from strangers)
//   https_proxy, HTTPS_PROXY;   for both: all_proxy, ALL_PROXY;   exceptions: no_proxy, NO_PROXY
//
// The first that is set counts; one of white space alone means none. White space around a value is dropped, and one
// without a scheme is of http. NO_PROXY is a list with commas or blanks between, in the sense that is widest among
// those programs: "*"; a name, with or without a dot or "*." in front, which stands for itself and all below it; an
// address of IPv4 or IPv6, with brackets or without; a network ("10.0.0.0/8", "fd00::/8"); each but a network with
// ":PORT" where only that port is meant (of IPv6 in brackets). No name is resolved for it. An entry that is none of
// these matches nothing. Pure.
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
  // InvalidArgument: a variable's value is no proxy; says which, what is wrong and how it looks, without its password.
  static StatusOr<Proxies> Read(const Environment& environment);

  // The proxy's URL for a request to `url`; empty: none.
  std::string For(std::string_view url) const;
  // One of them is spoken to over TLS.
  bool by_tls() const { return http_.starts_with("https://") || https_.starts_with("https://"); }

 private:
  std::string http_, https_;          // URLs
  std::vector<std::string> without_;  // NO_PROXY's entries, in lower case
};

}  // namespace muster::http
