// SPDX-License-Identifier: Apache-2.0
// Who may see the live page, if a token is set (--http-token-file): the page shows what workers write. Pure.
//
// A request has the token in one of three ways: as "Authorization: Bearer TOKEN", as ?token=TOKEN, or, after such a
// request of a browser, as a cookie. The cookie is for the events, and for pages without a token in their address.
#pragma once

#include <string>
#include <string_view>

#include "http/server.h"

namespace muster::agent {

// "X" of "a=b&id=X", for the separator '&' and the name "id="; the first one, as it was sent. Empty: there is none.
std::string_view ValueOf(std::string_view text, char separator, std::string_view name);

struct PageAccess {
  bool allowed = false;
  std::string cookie;  // the value of Set-Cookie; empty: none
};
// `token`: empty: everybody may see it. `request.query` is not percent-decoded, so the token is compared in both forms.
PageAccess JudgeAccess(const http::Server::Request& request, const std::string& token);

// The answer to who may not: 401, and what to do.
http::Server::Response NeedsToken();

}  // namespace muster::agent
