// SPDX-License-Identifier: Apache-2.0
#include "initializers/google/identity.h"

#include <algorithm>

#include "base/json_fields.h"
#include "base/quoted.h"
#include "base/text.h"
#include "http/endpoint_url.h"

namespace muster::initializers {
namespace {

constexpr int kShortestLife = 600;  // seconds; Google's limits for the token of an impersonated account
constexpr int kLongestLife = 43'200;
constexpr int kLongestWait = 100;  // seconds
constexpr char kTokenUri[] = "https://oauth2.googleapis.com/token";
constexpr char kFileVariable[] = "GOOGLE_APPLICATION_CREDENTIALS";
constexpr char kMachineAddress[] = "169.254.169.254";
constexpr char kKnownTypes[] =
    "service_account, authorized_user, external_account and impersonated_service_account are known";

Status Unusable(std::string_view what) { return absl::FailedPreconditionError(std::string(what)); }

bool IsOneLine(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// One object of a credentials file. `origin`: the file, for messages.
class Credentials {
 public:
  Credentials(const Json& json, std::string origin) : json_(json), origin_(std::move(origin)) {}

  const std::string& origin() const { return origin_; }
  const Json* Get(const char* key) const { return FindField(json_, key); }

  // The text field `key`; empty: it is missing. InvalidArgument: it is not text.
  StatusOr<std::string> Text(const char* key) const {
    const Json* found = Get(key);
    if (found == nullptr) return "";
    if (!found->is_string()) return absl::InvalidArgumentError(fmt::format("{}: {} is not text", origin_, key));
    return found->get<std::string>();
  }
  StatusOr<std::string> Need(const char* key) const {
    MUSTER_ASSIGN_OR_RETURN(std::string text, Text(key));
    if (text.empty()) {
      return Unusable(fmt::format("{} has no {}; create the file again (gcloud iam, gcloud auth application-default)",
                                  origin_, key));
    }
    return text;
  }
  // The object in field `key`.
  StatusOr<Credentials> Object(const char* key) const {
    const Json* found = Get(key);
    if (found != nullptr && found->is_object()) return Credentials(*found, fmt::format("{}: {}", origin_, key));
    return Unusable(fmt::format("{} has no {} that is an object; create the file again", origin_, key));
  }
  // A required text of one line: it goes into a header, a form, or a message.
  StatusOr<std::string> NeedLine(const char* key) const {
    MUSTER_ASSIGN_OR_RETURN(std::string text, Need(key));
    if (IsOneLine(text)) return text;
    return absl::InvalidArgumentError(
        fmt::format("{}: {} has a line break or another control character", origin_, key));
  }
  // `machine`: http to 169.254.169.254 is allowed too. `otherwise`: if the field is missing; empty: it is required.
  StatusOr<std::string> Url(const char* key, std::string_view otherwise, bool machine = false) const {
    MUSTER_ASSIGN_OR_RETURN(std::string text, Text(key));
    if (text.empty() && !otherwise.empty()) return std::string(otherwise);
    MUSTER_ASSIGN_OR_RETURN(text, Need(key));
    auto url = http::ParseEndpointUrl(text.substr(0, text.find('?')));
    if (!url.ok()) return Annotate(url.status(), fmt::format("{}: {}", origin_, key));
    const bool plain = std::none_of(text.begin(), text.end(), [](char c) { return c <= ' ' || c >= 0x7f || c == '#'; });
    if (!plain) {
      return absl::InvalidArgumentError(
          fmt::format("{}: {} has characters that must be percent-encoded", origin_, key));
    }
    if (url->tls || http::IsThisMachine(*url) || (machine && url->host == kMachineAddress)) return text;
    return absl::InvalidArgumentError(
        fmt::format("{}: {} is {}: over http a secret may only go to this machine; use https", origin_, key,
                    Quoted(http::UrlText(*url))));
  }

 private:
  const Json& json_;
  std::string origin_;
};

StatusOr<std::string> FileType(const Credentials& fields) {
  if (fields.Get("type") == nullptr && (fields.Get("installed") != nullptr || fields.Get("web") != nullptr)) {
    return Unusable(
        fmt::format("{} is the id of an OAuth client, not a credential; run `gcloud auth "
                    "application-default login`, or make a key of a service account",
                    fields.origin()));
  }
  return fields.NeedLine("type");
}

StatusOr<GoogleIdentity> ReadServiceAccount(const Credentials& fields) {
  ServiceAccount account{.origin = fields.origin()};
  MUSTER_ASSIGN_OR_RETURN(account.client_email, fields.NeedLine("client_email"));
  MUSTER_ASSIGN_OR_RETURN(account.private_key, fields.Need("private_key"));
  MUSTER_ASSIGN_OR_RETURN(account.private_key_id, fields.Text("private_key_id"));
  MUSTER_ASSIGN_OR_RETURN(account.token_uri, fields.Url("token_uri", kTokenUri));
  return GoogleIdentity{std::move(account)};
}

StatusOr<GoogleIdentity> ReadAuthorizedUser(const Credentials& fields) {
  AuthorizedUser user{.origin = fields.origin()};
  MUSTER_ASSIGN_OR_RETURN(user.client_id, fields.NeedLine("client_id"));
  MUSTER_ASSIGN_OR_RETURN(user.client_secret, fields.NeedLine("client_secret"));
  MUSTER_ASSIGN_OR_RETURN(user.refresh_token, fields.NeedLine("refresh_token"));
  MUSTER_ASSIGN_OR_RETURN(user.token_uri, fields.Url("token_uri", kTokenUri));
  return GoogleIdentity{std::move(user)};
}

StatusOr<std::map<std::string, std::string>> ReadHeaders(const Credentials& fields) {
  std::map<std::string, std::string> headers;
  const Json* json = fields.Get("headers");
  if (json == nullptr) return headers;
  for (const auto& [name, value] : json->items()) {
    const bool good = json->is_object() && !name.empty() && IsOneLine(name) &&
                      name.find_first_of(": ") == std::string::npos && value.is_string() &&
                      IsOneLine(value.get_ref<const std::string&>());
    if (!good) {
      return absl::InvalidArgumentError(
          fmt::format("{}: headers must be an object of names and one-line values", fields.origin()));
    }
    headers.emplace(name, value.get<std::string>());
  }
  return headers;
}

// The name of the token's field; "": the whole text is the token.
StatusOr<std::string> ReadTokenField(const Credentials& fields) {
  const Json* json = fields.Get("format");
  if (json == nullptr) return "";
  const Credentials format(*json, fields.origin() + ".format");
  MUSTER_ASSIGN_OR_RETURN(const std::string type, format.Text("type"));
  if (type.empty() || type == "text") return "";
  if (type == "json") return format.NeedLine("subject_token_field_name");
  return Unusable(fmt::format("{}.type is {}; it must be text or json", format.origin(), Quoted(type)));
}

StatusOr<SubjectToken> ReadSubject(const Credentials& file) {
  MUSTER_ASSIGN_OR_RETURN(const Credentials fields, file.Object("credential_source"));
  SubjectToken subject;
  MUSTER_ASSIGN_OR_RETURN(subject.file, fields.Text("file"));
  if (!subject.file.empty() && subject.file.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(fmt::format("{}.file has a NUL", fields.origin()));
  }
  if (subject.file.empty() && fields.Get("environment_id") != nullptr) {
    return Unusable(
        fmt::format("{} has environment_id: exchanging AWS keys for a Google token is not supported; use a token in a "
                    "file (a projected service account token), or a key of a service account",
                    fields.origin()));
  }
  if (subject.file.empty() && fields.Get("executable") != nullptr) {
    return Unusable(
        fmt::format("{} has executable: running a program for a token is not supported; have it write the token into a "
                    "file, and name the file",
                    fields.origin()));
  }
  if (subject.file.empty() && fields.Get("url") == nullptr) {
    return Unusable(fmt::format("{} has neither file nor url", fields.origin()));
  }
  if (subject.file.empty()) {
    MUSTER_ASSIGN_OR_RETURN(subject.url, fields.Url("url", "", true));
    MUSTER_ASSIGN_OR_RETURN(subject.headers, ReadHeaders(fields));
  }
  MUSTER_ASSIGN_OR_RETURN(subject.field, ReadTokenField(fields));
  return subject;
}

StatusOr<int> ReadLifetime(const Credentials& file) {
  const Json* json = file.Get("service_account_impersonation");
  const Json* found = json == nullptr ? nullptr : FindField(*json, "token_lifetime_seconds");
  if (found == nullptr) return ExternalAccount().impersonation_seconds;
  const int64_t seconds = found->is_number_integer() ? found->get<int64_t>() : 0;
  if (seconds >= kShortestLife && seconds <= kLongestLife) return static_cast<int>(seconds);
  return absl::InvalidArgumentError(
      fmt::format("{}: service_account_impersonation.token_lifetime_seconds must be from {} to {}", file.origin(),
                  kShortestLife, kLongestLife));
}

StatusOr<GoogleIdentity> ReadExternalAccount(const Credentials& fields) {
  for (const char* key : {"client_id", "workforce_pool_user_project"}) {
    if (fields.Get(key) == nullptr) continue;
    return Unusable(
        fmt::format("{} has {}: it is of a workforce pool, for people; use a workload identity pool, or a "
                    "key of a service account",
                    fields.origin(), key));
  }
  ExternalAccount account{.origin = fields.origin()};
  MUSTER_ASSIGN_OR_RETURN(account.audience, fields.NeedLine("audience"));
  MUSTER_ASSIGN_OR_RETURN(account.subject_token_type, fields.NeedLine("subject_token_type"));
  MUSTER_ASSIGN_OR_RETURN(account.token_url, fields.Url("token_url", ""));
  MUSTER_ASSIGN_OR_RETURN(account.subject, ReadSubject(fields));
  if (fields.Get("service_account_impersonation_url") != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(account.impersonation_url, fields.Url("service_account_impersonation_url", ""));
    MUSTER_ASSIGN_OR_RETURN(account.impersonation_seconds, ReadLifetime(fields));
  }
  return GoogleIdentity{std::move(account)};
}

StatusOr<GoogleIdentity> ReadPlain(const std::string& type, const Credentials& fields) {
  if (type == "service_account") return ReadServiceAccount(fields);
  if (type == "authorized_user") return ReadAuthorizedUser(fields);
  if (type == "external_account") return ReadExternalAccount(fields);
  return Unusable(fmt::format("{} has the type {}; {}", fields.origin(), Quoted(type), kKnownTypes));
}

StatusOr<GoogleIdentity> ReadImpersonated(const Credentials& fields) {
  ImpersonatedAccount account{.origin = fields.origin()};
  MUSTER_ASSIGN_OR_RETURN(account.impersonation_url, fields.Url("service_account_impersonation_url", ""));
  if (const Json* delegates = fields.Get("delegates")) {
    for (const Json& delegate : *delegates) {
      if (!delegates->is_array() || !delegate.is_string()) {
        return absl::InvalidArgumentError(fmt::format("{}: delegates must be a list of names", fields.origin()));
      }
      account.delegates.push_back(delegate.get<std::string>());
    }
  }
  MUSTER_ASSIGN_OR_RETURN(const Credentials source, fields.Object("source_credentials"));
  MUSTER_ASSIGN_OR_RETURN(const std::string type, FileType(source));
  if (type == "impersonated_service_account") {
    return Unusable(
        fmt::format("{} is an impersonated account, too; list the accounts in between in delegates", source.origin()));
  }
  MUSTER_ASSIGN_OR_RETURN(GoogleIdentity identity, ReadPlain(type, source));
  account.source = std::make_shared<const GoogleIdentity>(std::move(identity));
  return GoogleIdentity{std::move(account)};
}

StatusOr<GoogleIdentity> ReadFile(std::string_view text, const std::string& origin) {
  const StatusOr<Json> read = ReadJson(text, kFieldLevels);
  if (!read.ok()) {
    return absl::InvalidArgumentError(fmt::format("{} {}; create the file again", origin, Message(read.status())));
  }
  const Json& json = *read;
  if (!json.is_object()) {
    return absl::InvalidArgumentError(fmt::format("{} is not a JSON object; create the file again", origin));
  }
  const Credentials fields(json, origin);
  MUSTER_ASSIGN_OR_RETURN(const std::string type, FileType(fields));
  return type == "impersonated_service_account" ? ReadImpersonated(fields) : ReadPlain(type, fields);
}

StatusOr<GoogleIdentity> FindMachine(const Environment& environment) {
  if (auto forbidden = environment.NonBlank("NO_GCE_CHECK"); forbidden && ParseFlag(*forbidden).value_or(false)) {
    return Unusable(
        fmt::format("no identity is configured, and NO_GCE_CHECK forbids to ask the metadata server; name a "
                    "credentials file in {}, or use --anonymous for a public bucket",
                    kFileVariable));
  }
  MetadataServer server{.origin_url = "http://metadata.google.internal"};
  for (const char* name : {"GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP"}) {
    auto value = environment.NonBlank(name);
    if (!value) continue;
    auto url =
        http::ParseEndpointUrl(value->find("://") == std::string::npos ? fmt::format("http://{}", *value) : *value);
    if (!url.ok()) return Annotate(url.status(), name);
    server.origin_url = http::UrlText(*url);
    break;
  }
  if (auto text = environment.NonBlank("GCE_METADATA_TIMEOUT")) {
    const auto seconds = ParseInt(*text);
    if (!seconds || *seconds < 1 || *seconds > kLongestWait) {
      return absl::InvalidArgumentError(
          fmt::format("GCE_METADATA_TIMEOUT is {}; it must be from 1 to {} seconds", Quoted(*text), kLongestWait));
    }
    server.timeout_seconds = static_cast<int>(*seconds);
  }
  return GoogleIdentity{std::move(server)};
}

}  // namespace

StatusOr<GoogleIdentity> FindGoogleIdentity(const Environment& environment, const ReadText& read,
                                            const std::string& home) {
  if (environment.NonBlank("STORAGE_EMULATOR_HOST")) return GoogleIdentity{NoGoogleIdentity{}};
  if (auto path = environment.NonBlank(kFileVariable)) {
    auto text = read(*path);
    if (absl::IsNotFound(text.status())) {
      return Unusable(fmt::format("{} names {}, which is not there; mount it, or unset the variable", kFileVariable,
                                  Quoted(*path)));
    }
    const std::string origin = fmt::format("{} ({})", kFileVariable, *path);
    if (!text.ok()) return Annotate(text.status(), fmt::format("{} cannot be read", origin));
    return ReadFile(*text, origin);
  }
  std::string folder = environment.NonBlank("CLOUDSDK_CONFIG").value_or(home.empty() ? "" : home + "/.config/gcloud");
  if (!folder.empty()) {
    const std::string path = folder + "/application_default_credentials.json";
    auto text = read(path);
    if (text.ok()) return ReadFile(*text, path);
    if (!absl::IsNotFound(text.status())) return Annotate(text.status(), fmt::format("{} cannot be read", path));
  }
  return FindMachine(environment);
}

}  // namespace muster::initializers
