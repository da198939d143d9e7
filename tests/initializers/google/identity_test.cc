// SPDX-License-Identifier: Apache-2.0
#include "initializers/google/identity.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/initializers/aws_case.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFile[] = "/var/secrets/key.json";
constexpr char kWellKnown[] = "/home/u/.config/gcloud/application_default_credentials.json";
constexpr char kSecret[] = "s3cr3t";

constexpr std::string_view kServiceAccount =
    R"({"type":"service_account","client_email":"x@p.iam","private_key_id":"k1","private_key":"s3cr3t PEM"})";
constexpr std::string_view kUser =
    R"({"type":"authorized_user","client_id":"id","client_secret":"s3cr3t1","refresh_token":"s3cr3t2","account":""})";

std::string External(std::string_view source, std::string_view more = "") {
  return fmt::format(
      R"({{"type":"external_account","audience":"//iam/pool","subject_token_type":"urn:jwt","token_url":"https://sts.googleapis.com/v1/token","credential_source":{}{}}})",
      source, more);
}
std::string Impersonated(std::string_view source, std::string_view more = "") {
  return fmt::format(
      R"({{"type":"impersonated_service_account","service_account_impersonation_url":"https://iam/x:generateAccessToken","source_credentials":{}{}}})",
      source, more);
}

struct Show {
  std::string operator()(const NoGoogleIdentity&) const { return "anonymous"; }
  std::string operator()(const ServiceAccount& a) const {
    return fmt::format("account {} {} {} {} of {}", a.client_email, a.private_key_id, a.token_uri, a.private_key,
                       a.origin);
  }
  std::string operator()(const AuthorizedUser& u) const {
    return fmt::format("user {} {} {} {} of {}", u.client_id, u.client_secret, u.refresh_token, u.token_uri, u.origin);
  }
  std::string operator()(const MetadataServer& m) const {
    return fmt::format("machine {} {} s", m.origin_url, m.timeout_seconds);
  }
  std::string operator()(const ExternalAccount& e) const {
    std::string headers;
    for (const auto& [name, value] : e.subject.headers) headers += fmt::format(" {}={}", name, value);
    return fmt::format(
        "external {} {} {} from {}{}[{}]{}{}", e.audience, e.subject_token_type, e.token_url, e.subject.file,
        e.subject.url, e.subject.field, headers,
        e.impersonation_url.empty() ? "" : fmt::format(" as {} for {}", e.impersonation_url, e.impersonation_seconds));
  }
  std::string operator()(const ImpersonatedAccount& i) const {
    return fmt::format("as {} through [{}] by {}", i.impersonation_url, Join(i.delegates, ","),
                       std::visit(*this, i.source->who));
  }
};

std::string Find(const AwsCase& there) {
  auto identity = FindGoogleIdentity(there.Variables(), there.Files(), kHome);
  if (!identity.ok()) return "error: " + std::string(identity.status().message());
  return std::visit(Show(), identity->who);
}

AwsCase Named(std::string_view json) {
  AwsCase there;
  there.variables["GOOGLE_APPLICATION_CREDENTIALS"] = kFile;
  there.files[kFile] = json;
  return there;
}

TEST(GoogleIdentity, TheFirstThatIsConfigured) {
  const std::string user(kUser), account(kServiceAccount);
  const struct {
    AwsCase there;
    std::string_view found;
  } rows[] = {
      {{}, "machine http://metadata.google.internal 3 s"},
      {{.files = {{kWellKnown, user}}}, "user id"},
      {{.variables = {{"CLOUDSDK_CONFIG", "/g"}}, .files = {{kWellKnown, user}}}, "machine http"},
      {{.variables = {{"CLOUDSDK_CONFIG", "/g"}}, .files = {{"/g/application_default_credentials.json", user}}},
       "user id"},
      {{.variables = {{"GOOGLE_APPLICATION_CREDENTIALS", kFile}}, .files = {{kFile, account}, {kWellKnown, user}}},
       "account x@p.iam k1 https://oauth2.googleapis.com/token s3cr3t PEM of GOOGLE_APPLICATION_CREDENTIALS "
       "(/var/secrets/key.json)"},
      {{.variables = {{"GOOGLE_APPLICATION_CREDENTIALS", " "}}, .files = {{kWellKnown, user}}}, "user id"},
      {{.variables = {{"STORAGE_EMULATOR_HOST", "localhost:4443"}, {"GOOGLE_APPLICATION_CREDENTIALS", kFile}}},
       "anonymous"},
      {{.variables = {{"GCE_METADATA_HOST", "127.0.0.1:80"}, {"GCE_METADATA_IP", "1.2.3.4"}}},
       "machine http://127.0.0.1 3"},
      {{.variables = {{"GCE_METADATA_ROOT", "meta"}, {"GCE_METADATA_TIMEOUT", "9"}}}, "machine http://meta 9 s"},
      {{.variables = {{"GCE_METADATA_IP", "1.2.3.4"}, {"NO_GCE_CHECK", "false"}}}, "machine http://1.2.3.4 3 s"},
  };
  for (const auto& row : rows) EXPECT_THAT(Find(row.there), ::testing::StartsWith(row.found));
}

TEST(GoogleIdentity, OfEachType) {
  const std::string file_source = R"({"file":"/var/run/token"})";
  const std::pair<std::string, std::string_view> rows[] = {
      {External(file_source), "external //iam/pool urn:jwt https://sts.googleapis.com/v1/token from /var/run/token[]"},
      {External(R"({"file":"/t","format":{"type":"json","subject_token_field_name":"access_token"}})"),
       "external //iam/pool urn:jwt https://sts.googleapis.com/v1/token from /t[access_token]"},
      {External(
           R"({"url":"http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01","headers":{"Metadata":"True"},"format":{"type":"text"}})"),
       "external //iam/pool urn:jwt https://sts.googleapis.com/v1/token from "
       "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01[] Metadata=True"},
      {External(
           file_source,
           R"(,"service_account_impersonation_url":"https://iam/x","service_account_impersonation":{"token_lifetime_seconds":900})"),
       "external //iam/pool urn:jwt https://sts.googleapis.com/v1/token from /var/run/token[] as https://iam/x for "
       "900"},
      {External(file_source, R"(,"service_account_impersonation_url":"https://iam/x")"),
       "external //iam/pool urn:jwt https://sts.googleapis.com/v1/token from /var/run/token[] as https://iam/x for "
       "3600"},
      {Impersonated(kUser),
       "as https://iam/x:generateAccessToken through [] by user id s3cr3t1 s3cr3t2 https://oauth2.googleapis.com/token "
       "of GOOGLE_APPLICATION_CREDENTIALS (/var/secrets/key.json): source_credentials"},
      {Impersonated(External(file_source), R"(,"delegates":["projects/-/serviceAccounts/d"])"),
       "as https://iam/x:generateAccessToken through [projects/-/serviceAccounts/d] by external //iam/pool urn:jwt "
       "https://sts.googleapis.com/v1/token from /var/run/token[]"},
      {R"({"type":"service_account","client_email":"x","private_key":"k","token_uri":"http://127.0.0.1:8080/token"})",
       "account x  http://127.0.0.1:8080/token k of GOOGLE_APPLICATION_CREDENTIALS (/var/secrets/key.json)"},
  };
  for (const auto& [json, found] : rows) EXPECT_EQ(Find(Named(json)), found);
}

TEST(GoogleIdentity, ThatCannotWorkIsAnError) {
  const std::string in_file = "GOOGLE_APPLICATION_CREDENTIALS (/var/secrets/key.json)";
  const std::pair<std::string, std::string> rows[] = {
      {"", " is not JSON: wrong at line 1, column 1"},
      {"[]", " is not a JSON object"},
      {"denied", " cannot be read: permission denied"},
      {R"({"private_key":"s3cr3t")", " is not JSON: wrong at line 1, column 24"},
      {R"({"client_email":"x"})", " has no type"},
      {R"({"installed":{"client_secret":"s3cr3t"}})", " is the id of an OAuth client, not a credential"},
      {R"({"type":"gdch_service_account"})", " has the type 'gdch_service_account'; service_account, authorized_user"},
      {R"({"type":"service_account","private_key":"s3cr3t"})", " has no client_email; create the file again"},
      {R"({"type":"service_account","client_email":"x"})", " has no private_key"},
      {R"({"type":"service_account","client_email":"x","private_key":{"s3cr3t":1}})", ": private_key is not text"},
      {R"({"type":"service_account","client_email":"x\ny","private_key":"s3cr3t"})", ": client_email has a line break"},
      {R"({"type":"service_account","client_email":"x","private_key":"s3cr3t","token_uri":"http://elsewhere/t"})",
       ": token_uri is 'http://elsewhere/t': over http a secret may only go to this machine; use https"},
      {R"({"type":"service_account","client_email":"x","private_key":"k","token_uri":"http://u:s3cr3t@h/"})",
       ": token_uri: '...@h/' is not an endpoint"},
      {R"({"type":"service_account","client_email":"x","private_key":"k","token_uri":"https://h/a b"})",
       ": token_uri: "},
      {R"({"type":"authorized_user","client_id":"x","client_secret":"s3cr3t"})", " has no refresh_token"},
      {External("{}"), ": credential_source has neither file nor url"},
      {External("null"), " has no credential_source that is an object"},
      {External(R"("s3cr3t")"), " has no credential_source that is an object"},
      {Impersonated(R"("s3cr3t")"), " has no source_credentials that is an object"},
      {External("3"), " has no credential_source that is an object"},
      {External(R"({"environment_id":"aws1","url":"http://169.254.169.254/x"})"),
       ": credential_source has environment_id: exchanging AWS keys"},
      {External(R"({"executable":{"command":"/x s3cr3t"}})"), ": credential_source has executable: running a program"},
      {External(R"({"url":"http://elsewhere/?token=s3cr3t"})"),
       ": credential_source: url is 'http://elsewhere': over http"},
      {External(R"({"url":"https://h/","headers":{"A":"b\r\nC: s3cr3t"}})"),
       ": credential_source: headers must be an object"},
      {External(R"({"url":"https://h/","headers":{"A b":"c"}})"), ": credential_source: headers must be an object"},
      {External(R"({"url":"https://h/","headers":["a"]})"), ": credential_source: headers must be an object"},
      {External(R"({"file":"/t","format":{"type":"json"}})"),
       ": credential_source.format has no subject_token_field_name"},
      {External(R"({"file":"/t","format":{"type":"xml"}})"), ": credential_source.format.type is 'xml'"},
      {External(R"({"file":"/t"})", R"(,"workforce_pool_user_project":"p")"), " has workforce_pool_user_project"},
      {External(R"({"file":"/t"})", R"(,"service_account_impersonation_url":"ftp://x")"),
       ": service_account_impersonation_url: 'ftp://x' is not an endpoint"},
      {External(
           R"({"file":"/t"})",
           R"(,"service_account_impersonation_url":"https://x","service_account_impersonation":{"token_lifetime_seconds":5})"),
       ": service_account_impersonation.token_lifetime_seconds must be from 600 to 43200"},
      {Impersonated("null"), " has no source_credentials"},
      {Impersonated(Impersonated(kUser)), ": source_credentials is an impersonated account, too"},
      {Impersonated(R"({"type":"x"})"), ": source_credentials has the type 'x'"},
      {Impersonated(kUser, R"(,"delegates":"d")"), ": delegates must be a list of names"},
      {Impersonated(kUser, R"(,"delegates":[1])"), ": delegates must be a list of names"},
  };
  for (const auto& [json, error] : rows) {
    const std::string found = Find(Named(json));
    EXPECT_THAT(found, HasSubstr("error: " + in_file + error)) << json;
    EXPECT_THAT(found, Not(HasSubstr(kSecret))) << json;
  }
}

TEST(GoogleIdentity, AWrongPlaceOfCredentialsIsAnError) {
  const struct {
    AwsCase there;
    std::string_view error;
  } rows[] = {
      {{.variables = {{"GOOGLE_APPLICATION_CREDENTIALS", kFile}}, .files = {{kWellKnown, std::string(kUser)}}},
       "error: GOOGLE_APPLICATION_CREDENTIALS names '/var/secrets/key.json', which is not there; mount it, or unset"},
      {{.files = {{kWellKnown, "denied"}}},
       "error: /home/u/.config/gcloud/application_default_credentials.json cannot be read: permission denied"},
      {{.files = {{kWellKnown, "{}"}}},
       "error: /home/u/.config/gcloud/application_default_credentials.json has no type"},
      {{.variables = {{"NO_GCE_CHECK", "True"}}},
       "error: no identity is configured, and NO_GCE_CHECK forbids to ask the metadata server; name a credentials file "
       "in GOOGLE_APPLICATION_CREDENTIALS, or use --anonymous for a public bucket"},
      {{.variables = {{"GCE_METADATA_HOST", "a b"}}}, "error: GCE_METADATA_HOST: "},
      {{.variables = {{"GCE_METADATA_TIMEOUT", "0"}}}, "error: GCE_METADATA_TIMEOUT is '0'; it must be from 1 to 100"},
  };
  for (const auto& row : rows) EXPECT_THAT(Find(row.there), ::testing::StartsWith(row.error));
}

TEST(GoogleIdentity, WithoutAHomeAsksTheMachine) {
  AwsCase there;
  there.files["/.config/gcloud/application_default_credentials.json"] = kUser;
  auto identity = FindGoogleIdentity(there.Variables(), there.Files(), "");
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_TRUE(std::holds_alternative<MetadataServer>(identity->who));
}

}  // namespace
}  // namespace muster::initializers
