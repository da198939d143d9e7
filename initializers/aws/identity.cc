// SPDX-License-Identifier: Apache-2.0
#include "initializers/aws/identity.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "initializers/aws/machine.h"
#include "initializers/facts/command_words.h"
#include "initializers/facts/digest.h"

namespace muster::initializers {
namespace {

constexpr int kShortestRole = 900;  // seconds; limits of STS
constexpr int kLongestRole = 43'200;

Status Unusable(std::string_view what) { return absl::FailedPreconditionError(std::string(what)); }

std::string ValueOr(const std::optional<AwsSetting>& setting, std::string_view otherwise) {
  return setting ? setting->value : std::string(otherwise);
}

// The pair of keys; nullopt: neither is set; an error: only one is. `access_name`, `secret_name`: for the message.
StatusOr<std::optional<AwsIdentity>> PairOf(const std::optional<AwsSetting>& access,
                                            const std::optional<AwsSetting>& secret,
                                            const std::optional<AwsSetting>& session, std::string_view access_name,
                                            std::string_view secret_name) {
  if (!access && !secret) return std::nullopt;
  if (!access || !secret) {
    return Unusable(fmt::format("{} is set but {} is not; set both, or neither",
                                access ? access->origin : secret->origin, access ? secret_name : access_name));
  }
  for (const auto& part : {access, secret, session}) {
    if (part && !IsVisible(part->value)) {  // keys have no blanks, and a line break would end the header
      return absl::InvalidArgumentError(
          fmt::format("{} has a blank, a line break or another character that no key has", part->origin));
    }
  }
  return AwsIdentity{StaticKeys{{access->value, secret->value, ValueOr(session, "")}, access->origin}};
}

class Finder {
 public:
  explicit Finder(const AwsConfig& config) : config_(config) {}

  StatusOr<AwsIdentity> Find() const {
    MUSTER_ASSIGN_OR_RETURN(const bool anonymous, config_.Flag({"awsAnonymousCredential"}, {}, false));
    if (anonymous) return AwsIdentity{Anonymous{}};
    MUSTER_ASSIGN_OR_RETURN(AwsIdentity found, Chain());
    const auto role = config_.Env({"ROLE_ARN"});
    const auto* web = std::get_if<WebIdentity>(&found.who);
    if (!role || (web && web->role_arn == role->value)) return found;
    return AwsIdentity{AssumeRole{.role_arn = role->value,
                                  .session_name = ValueOr(config_.Env({"AWS_ROLE_SESSION_NAME"}), kRoleSessionName),
                                  .origin = role->origin,
                                  .source = std::make_shared<const AwsIdentity>(std::move(found))}};
  }

 private:
  using Maybe = StatusOr<std::optional<AwsIdentity>>;

  StatusOr<AwsIdentity> Chain() const {
    MUSTER_ASSIGN_OR_RETURN(auto found, EnvironmentKeys());
    if (found) return *found;
    if (IsAssumedRole(config_.profile())) {
      std::vector<std::string> visited = {config_.profile().name};
      return AssumedRole(config_.profile(), &visited);
    }
    MUSTER_ASSIGN_OR_RETURN(found, OfProfile(config_.profile(), true));
    if (found) return *found;
    if (!config_.missing().empty()) {
      return Unusable(fmt::format("{}; put it there, or unset the variable", Join(config_.missing(), "; ")));
    }
    MUSTER_ASSIGN_OR_RETURN(found, Container());
    if (found) return *found;
    return Machine();
  }

  Maybe EnvironmentKeys() const {
    const auto aws_access = config_.Env({"AWS_ACCESS_KEY_ID"});
    auto session = config_.Env({"SESSION_TOKEN"});
    if (!session && !aws_access) session = config_.Env({"AWS_SESSION_TOKEN"});  // else it is the AWS_* pair's
    MUSTER_ASSIGN_OR_RETURN(auto kubeflow, PairOf(config_.Env({"ACCESS_KEY_ID"}), config_.Env({"SECRET_ACCESS_KEY"}),
                                                  session, "ACCESS_KEY_ID", "SECRET_ACCESS_KEY"));
    if (kubeflow) return kubeflow;
    return PairOf(aws_access, config_.Env({"AWS_SECRET_ACCESS_KEY"}),
                  config_.Env({"AWS_SECURITY_TOKEN", "AWS_SESSION_TOKEN"}), config_.NameOfVariable("AWS_ACCESS_KEY_ID"),
                  config_.NameOfVariable("AWS_SECRET_ACCESS_KEY"));
  }

  static bool HasKeys(const AwsProfile& profile) {
    return profile.Has("aws_access_key_id") || profile.Has("aws_secret_access_key");
  }
  static bool IsAssumedRole(const AwsProfile& profile) {
    return profile.Has("role_arn") && !profile.Has("web_identity_token_file");
  }

  StatusOr<AwsIdentity> AssumedRole(const AwsProfile& profile, std::vector<std::string>* visited) const {
    const AwsSetting role = *profile.Get("role_arn");
    if (const auto mfa = profile.Get("mfa_serial")) {
      return Unusable(
          fmt::format("{} asks for an MFA code, which nobody can type here; use a role without MFA, or keys that were "
                      "fetched with MFA",
                      mfa->origin));
    }
    AssumeRole assumed{.role_arn = role.value,
                       .session_name = ValueOr(profile.Get("role_session_name"), kRoleSessionName),
                       .external_id = ValueOr(profile.Get("external_id"), ""),
                       .origin = role.origin};
    if (const auto duration = profile.Get("duration_seconds")) {
      const auto seconds = ParseInt(duration->value);
      if (!seconds || *seconds < kShortestRole || *seconds > kLongestRole) {
        return absl::InvalidArgumentError(fmt::format("{} is {}; it must be from {} to {} seconds", duration->origin,
                                                      Quoted(duration->value), kShortestRole, kLongestRole));
      }
      assumed.duration_seconds = static_cast<int>(*seconds);
    }
    MUSTER_ASSIGN_OR_RETURN(AwsIdentity source, SourceOf(profile, role, visited));
    assumed.source = std::make_shared<const AwsIdentity>(std::move(source));
    return AwsIdentity{std::move(assumed)};
  }

  StatusOr<AwsIdentity> SourceOf(const AwsProfile& profile, const AwsSetting& role,
                                 std::vector<std::string>* visited) const {
    const auto named = profile.Get("source_profile");
    const auto kind = profile.Get("credential_source");
    if (named && kind) {
      return Unusable(fmt::format("{} and {} are both set; keep one", named->origin, kind->origin));
    }
    if (kind) return SourceOfKind(*kind);
    if (!named) return Unusable(fmt::format("{} needs source_profile or credential_source beside it", role.origin));

    const auto source = config_.FindProfile(named->value);
    if (!source) return Unusable(fmt::format("{} is {}, which does not exist", named->origin, Quoted(named->value)));
    const bool seen = std::find(visited->begin(), visited->end(), source->name) != visited->end();
    // A profile may be its own source if it has keys besides the role.
    if (seen && (source->name != profile.name || !HasKeys(*source))) {
      return Unusable(fmt::format("{} is {}, which makes a cycle: {}; the last profile needs keys of its own",
                                  named->origin, Quoted(named->value), Join(*visited, ", ")));
    }
    visited->push_back(source->name);
    if (!HasKeys(*source) && IsAssumedRole(*source)) return AssumedRole(*source, visited);
    MUSTER_ASSIGN_OR_RETURN(auto found, OfProfile(*source, false));
    if (found) return *found;
    return Unusable(fmt::format("{} is {}, which has no credentials", named->origin, Quoted(named->value)));
  }

  StatusOr<AwsIdentity> SourceOfKind(const AwsSetting& kind) const {
    std::optional<AwsIdentity> found;
    if (kind.value == "Environment") {
      MUSTER_ASSIGN_OR_RETURN(found, EnvironmentKeys());
    } else if (kind.value == "EcsContainer") {
      MUSTER_ASSIGN_OR_RETURN(found, Container());
    } else if (kind.value == "Ec2InstanceMetadata") {
      return Machine();
    } else {
      return Unusable(fmt::format("{} is {}; it must be Environment, EcsContainer or Ec2InstanceMetadata", kind.origin,
                                  Quoted(kind.value)));
    }
    if (found) return *found;
    return Unusable(fmt::format("{} is {}, whose variables are not set", kind.origin, kind.value));
  }

  // The identities of a profile other than an assumed role. Only the chosen profile is mixed with the environment.
  Maybe OfProfile(const AwsProfile& profile, bool with_environment) const {
    MUSTER_ASSIGN_OR_RETURN(auto found, WebIdentityOf(profile, with_environment));
    if (found) return found;
    MUSTER_ASSIGN_OR_RETURN(found, SsoOf(profile));
    if (found) return found;
    MUSTER_ASSIGN_OR_RETURN(found, KeysIn(profile, true));
    if (found) return found;
    if (const auto login = profile.Get("login_session")) {
      return Unusable(
          fmt::format("{} is a session of `aws login`, which is not supported; use `aws configure "
                      "export-credentials`, a role or keys",
                      login->origin));
    }
    if (auto process = profile.Get("credential_process")) {
      auto words = SplitWords(process->value);
      if (!words.ok()) return Annotate(words.status(), process->origin);
      return AwsIdentity{CredentialProcess{*std::move(words), std::move(process->origin)}};
    }
    return KeysIn(profile, false);
  }

  static Maybe KeysIn(const AwsProfile& profile, bool credentials_file) {
    AwsProfile one = profile;
    (credentials_file ? one.config : one.credentials).clear();
    auto session = one.Get("aws_security_token");
    if (!session) session = one.Get("aws_session_token");
    return PairOf(one.Get("aws_access_key_id"), one.Get("aws_secret_access_key"), session, "aws_access_key_id",
                  "aws_secret_access_key");
  }

  Maybe WebIdentityOf(const AwsProfile& profile, bool with_environment) const {
    auto get = [&](std::string_view variable, std::string_view key) {
      auto found = with_environment ? config_.Env({variable}) : std::nullopt;
      return found ? found : profile.Get(key);
    };
    const auto token = get("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
    if (!token) return std::nullopt;
    auto role = get("AWS_ROLE_ARN", "role_arn");
    if (!role && with_environment) role = config_.Env({"ROLE_ARN"});
    if (!role) return Unusable(fmt::format("{} is set but no role is; set AWS_ROLE_ARN", token->origin));
    return AwsIdentity{WebIdentity{token->value, role->value,
                                   ValueOr(get("AWS_ROLE_SESSION_NAME", "role_session_name"), kRoleSessionName),
                                   token->origin}};
  }

  Maybe SsoOf(const AwsProfile& profile) const {
    if (!profile.Has("sso_role_name") && !profile.Has("sso_account_id")) return std::nullopt;
    const auto session_name = profile.Get("sso_session");
    AwsProfile session;  // the profile, maybe merged with its [sso-session]
    if (session_name) {
      const IniSection* section = config_.FindSection("sso-session", session_name->value);
      if (!section) {
        return Unusable(fmt::format("{} is {}, but there is no [sso-session {}] in {}", session_name->origin,
                                    Quoted(session_name->value), session_name->value, config_.config_path()));
      }
      session = {.name = profile.name, .config = *section, .config_path = profile.config_path};
    }
    auto need = [&](std::string_view key) -> StatusOr<std::string> {
      const auto own = profile.Get(key);
      const auto shared = session.Get(key);
      if (own && shared && own->value != shared->value) {
        return Unusable(
            fmt::format("{} differs from that of its [sso-session {}]; keep one", own->origin, session_name->value));
      }
      if (!own && !shared) {
        return Unusable(fmt::format("profile {} of {} uses SSO but has no {}", profile.name, profile.config_path, key));
      }
      return (own ? own : shared)->value;
    };
    SsoCache sso{.origin = fmt::format("sso in profile {} of {}", profile.name, profile.config_path)};
    MUSTER_ASSIGN_OR_RETURN(const std::string start_url, need("sso_start_url"));
    MUSTER_ASSIGN_OR_RETURN(sso.region, need("sso_region"));
    MUSTER_ASSIGN_OR_RETURN(sso.account_id, need("sso_account_id"));
    MUSTER_ASSIGN_OR_RETURN(sso.role_name, need("sso_role_name"));
    if (config_.home().empty()) {
      return Unusable(
          fmt::format("{} cannot be used: its token is in the home folder, and HOME is not set", sso.origin));
    }
    if (!HashAvailable(HashKind::kSha1)) {
      return Unusable(fmt::format(
          "{} cannot be used: its token's file is named by a SHA-1, which this machine's OpenSSL refuses (FIPS)",
          sso.origin));
    }
    const std::string& cached_as = session_name ? session_name->value : start_url;
    auto hasher = Hasher::Make(HashKind::kSha1, cached_as.size());
    hasher->Update(cached_as);
    sso.token_file = fmt::format("{}/.aws/sso/cache/{}.json", config_.home(), ToHex(hasher->Finish()));
    return AwsIdentity{std::move(sso)};
  }

  Maybe Container() const {
    MUSTER_ASSIGN_OR_RETURN(auto found, FindContainerEndpoint(config_));
    if (!found) return std::nullopt;
    return AwsIdentity{*std::move(found)};
  }

  StatusOr<AwsIdentity> Machine() const {
    MUSTER_ASSIGN_OR_RETURN(auto found, FindInstanceMetadata(config_));
    return AwsIdentity{std::move(found)};
  }

  const AwsConfig& config_;
};

}  // namespace

StatusOr<AwsIdentity> FindAwsIdentity(const AwsConfig& config) {
  auto found = Finder(config).Find();
  if (!found.ok()) return Annotate(found.status(), "the credentials for S3");
  return found;
}

StatusOr<AwsIdentity> FindAwsIdentity(const Environment& environment, const ReadText& read, const std::string& home) {
  MUSTER_ASSIGN_OR_RETURN(const AwsConfig config, AwsConfig::Read(environment, read, home));
  return FindAwsIdentity(config);
}

}  // namespace muster::initializers
