// SPDX-License-Identifier: Apache-2.0
#include "initializers/aws/answers.h"

#include <algorithm>

#include "base/iso_time.h"
#include "base/json_fields.h"
#include "base/quoted.h"
#include "base/text.h"
#include "base/utf8.h"

namespace muster::initializers {
namespace {

constexpr size_t kLongestText = 1024;  // bytes of a shown text

StatusOr<std::string> Token(const Json& json, const char* name, bool needed) {
  std::string text = TextField(json, name);
  if (text.empty() && needed) return absl::InvalidArgumentError(fmt::format("the answer has no {}", name));
  if (IsVisible(text)) return text;
  return absl::InvalidArgumentError(
      fmt::format("the {} of the answer has a blank or a character that is not printable ASCII", name));
}

// The field on one line, for messages.
std::string Shown(const Json& json, const char* name) {
  std::string text = TextField(json, name);
  text.resize(Beginning(text, kLongestText).size());
  auto control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  std::replace_if(text.begin(), text.end(), control, ' ');
  return text;
}

}  // namespace

StatusOr<TemporaryKeys> ParseMachineKeys(std::string_view text) {
  const Json json = ReadJsonTop(text, kFieldLevels);
  if (json.is_discarded()) return absl::InvalidArgumentError("the answer is not JSON");
  const std::string code = Shown(json, "Code");
  if (!code.empty() && code != "Success") {
    return absl::PermissionDeniedError(fmt::format("{}: {}", code, Shown(json, "Message")));
  }
  TemporaryKeys temporary;
  MUSTER_ASSIGN_OR_RETURN(temporary.keys.access_key, Token(json, "AccessKeyId", true));
  MUSTER_ASSIGN_OR_RETURN(temporary.keys.secret_key, Token(json, "SecretAccessKey", true));
  MUSTER_ASSIGN_OR_RETURN(temporary.keys.session_token, Token(json, "Token", false));
  if (const std::string expires = TextField(json, "Expiration"); !expires.empty()) {
    MUSTER_ASSIGN_OR_RETURN(temporary.expires_unix, ParseIsoTime(expires));
  }
  return temporary;
}

StatusOr<TemporaryKeys> ParseProcessKeys(std::string_view text) {
  const Json json = ReadJsonTop(text, kFieldLevels);
  if (json.is_discarded()) return absl::InvalidArgumentError("the answer is not JSON");
  const Json* version = FindField(json, "Version");
  if (version == nullptr) return absl::InvalidArgumentError("the answer has no Version");
  if (!version->is_number() || version->get<double>() != 1) {
    return absl::InvalidArgumentError(
        fmt::format("the Version of the answer is {}, and only 1 is known", Quoted(WriteJson(*version))));
  }
  TemporaryKeys temporary;
  MUSTER_ASSIGN_OR_RETURN(temporary.keys.access_key, Token(json, "AccessKeyId", true));
  MUSTER_ASSIGN_OR_RETURN(temporary.keys.secret_key, Token(json, "SecretAccessKey", true));
  MUSTER_ASSIGN_OR_RETURN(temporary.keys.session_token, Token(json, "SessionToken", false));
  // An unreadable time is an error: without it the keys would never be renewed.
  if (const Json* expires = FindField(json, "Expiration")) {
    const std::string when = expires->is_string() ? expires->get<std::string>() : WriteJson(*expires);
    MUSTER_ASSIGN_OR_RETURN(temporary.expires_unix, ParseIsoTime(when));
  }
  return temporary;
}

StatusOr<TemporaryKeys> ParseSsoKeys(std::string_view text) {
  const Json json = ReadJsonTop(text, kFieldLevels);
  if (json.is_discarded()) return absl::InvalidArgumentError("the answer is not JSON");
  const Json* found = FindField(json, "roleCredentials");
  const Json& role = found != nullptr ? *found : json;
  TemporaryKeys temporary;
  MUSTER_ASSIGN_OR_RETURN(temporary.keys.access_key, Token(role, "accessKeyId", true));
  MUSTER_ASSIGN_OR_RETURN(temporary.keys.secret_key, Token(role, "secretAccessKey", true));
  MUSTER_ASSIGN_OR_RETURN(temporary.keys.session_token, Token(role, "sessionToken", false));
  const Json* expires = FindField(role, "expiration");
  const int64_t milliseconds = expires != nullptr && expires->is_number_integer() ? expires->get<int64_t>() : 0;
  temporary.expires_unix = milliseconds / 1000;
  return temporary;
}

StatusOr<std::string> ParseWord(std::string_view text) {
  const std::string_view word = Strip(text.substr(0, text.find('\n')));
  if (!word.empty() && IsVisible(word) && word.find('<') == std::string_view::npos) return std::string(word);
  return absl::InvalidArgumentError("the answer is not a single word of printable ASCII");
}

}  // namespace muster::initializers
