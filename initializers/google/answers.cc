// SPDX-License-Identifier: Apache-2.0
#include "initializers/google/answers.h"

#include <algorithm>
#include <optional>

#include "base/iso_time.h"
#include "base/json_fields.h"
#include "base/quoted.h"
#include "base/text.h"

namespace muster::initializers {
namespace {

// The token in field `name`; refuses one that does not fit into a header.
StatusOr<std::string> TokenOf(const Json& json, const char* name) {
  std::string token = TextField(json, name);
  if (token.empty()) return absl::InvalidArgumentError(fmt::format("the answer has no {}", name));
  if (token.size() > kLongestToken) {
    return absl::InvalidArgumentError(fmt::format("the {} of the answer has more than {} bytes", name, kLongestToken));
  }
  if (IsVisible(token)) return token;
  return absl::InvalidArgumentError(
      fmt::format("the {} of the answer has a blank or a character that is not printable ASCII", name));
}

}  // namespace

StatusOr<BearerToken> ParseOauthToken(std::string_view text) {
  const Json json = ReadJsonTop(text, kFieldLevels);
  BearerToken token;
  MUSTER_ASSIGN_OR_RETURN(token.text, TokenOf(json, "access_token"));
  const Json* expires = FindField(json, "expires_in");
  std::optional<int64_t> seconds;
  if (expires != nullptr && expires->is_number_integer()) seconds = expires->get<int64_t>();
  if (expires != nullptr && expires->is_string()) seconds = ParseInt(expires->get<std::string>());
  token.life = std::clamp<int64_t>(seconds.value_or(kUsualTokenLife), 0, kLongestTokenLife);
  return token;
}

StatusOr<BearerToken> ParseIamToken(std::string_view text, int64_t unix_now) {
  const Json json = ReadJsonTop(text, kFieldLevels);
  BearerToken token;
  MUSTER_ASSIGN_OR_RETURN(token.text, TokenOf(json, "accessToken"));
  MUSTER_ASSIGN_OR_RETURN(const int64_t expires, ParseIsoTime(TextField(json, "expireTime")));
  token.life = std::clamp<int64_t>(expires - unix_now, 0, kLongestTokenLife);
  return token;
}

std::string SubjectTokenIn(std::string_view text, const std::string& field) {
  return field.empty() ? std::string(Strip(text)) : TextField(ReadJsonTop(text, kFieldLevels), field.c_str());
}

std::string ToldByGoogle(int status, std::string_view body) {
  const Json json = ReadJsonTop(body, kFieldLevels);
  std::string code = TextField(json, "error");
  std::string message = TextField(json, "error_description");
  if (const Json* error = FindField(json, "error"); error != nullptr && error->is_object()) {
    code = TextField(*error, "status");
    message = TextField(*error, "message");
  }
  if (json.is_discarded()) message = Strip(body);
  std::string told = std::to_string(status);
  if (!code.empty()) told += fmt::format(" {}", Quoted(code));
  if (!message.empty()) told += fmt::format(": {}", Quoted(message));
  return told;
}

}  // namespace muster::initializers
