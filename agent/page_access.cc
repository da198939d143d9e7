// SPDX-License-Identifier: Apache-2.0
#include "agent/page_access.h"

#include <cctype>

#include "base/text.h"
#include "net/credentials.h"

namespace muster::agent {
namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kCookie = "muster-token=";

// Letters, digits and "-._~" as they are, all else as %XX (RFC 3986, 2.3). A cookie may hold that, too.
std::string Encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) != 0 || std::string_view("-._~").find(c) != std::string_view::npos;
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return encoded;
}

}  // namespace

std::string_view ValueOf(std::string_view text, char separator, std::string_view name) {
  for (const std::string_view part : Split(text, separator)) {
    const std::string_view word = Strip(part);
    if (word.starts_with(name)) return word.substr(name.size());
  }
  return "";
}

PageAccess JudgeAccess(const http::Server::Request& request, const std::string& token) {
  if (token.empty()) return {true, ""};
  const std::string_view header = request.Find("authorization").value_or("");
  if (header.starts_with(kBearer) && net::SameToken(token, header.substr(kBearer.size()))) return {true, ""};
  const std::string encoded = Encoded(token);
  const std::string_view cookie = ValueOf(request.Find("cookie").value_or(""), ';', kCookie);
  if (net::SameToken(encoded, cookie)) return {true, ""};
  const std::string_view asked = ValueOf(request.query, '&', "token=");
  if (!net::SameToken(encoded, asked) && !net::SameToken(token, asked)) return {};
  return {true, fmt::format("{}{}; HttpOnly; SameSite=Strict; Path=/", kCookie, encoded)};
}

http::Server::Response NeedsToken() {
  return {.status = 401,
          .body =
              "this needs the job's HTTP token: open the page with ?token=TOKEN, or send it as \"Authorization: "
              "Bearer TOKEN\"\n",
          .headers = {{"WWW-Authenticate", "Bearer"}}};
}

}  // namespace muster::agent
