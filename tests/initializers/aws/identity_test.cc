// SPDX-License-Identifier: Apache-2.0
// Our identity on AWS. The order of the steps was compared with botocore's on thousands of random settings. The cases
// here tell the steps apart, add the names of other systems, and show what is refused.
#include "initializers/aws/identity.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/initializers/aws_case.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Show(const AwsIdentity& identity);

struct Shower {
  std::string operator()(const Anonymous&) const { return "anonymous"; }
  std::string operator()(const StaticKeys& it) const {
    return fmt::format("keys {} {} {}", it.keys.access_key, it.keys.secret_key, it.keys.session_token);
  }
  std::string operator()(const WebIdentity& it) const {
    return fmt::format("web {} {} {}", it.token_file, it.role_arn, it.session_name);
  }
  std::string operator()(const AssumeRole& it) const {
    return fmt::format("role {} {} {} {} <- {}", it.role_arn, it.session_name, it.external_id, it.duration_seconds,
                       Show(*it.source));
  }
  std::string operator()(const CredentialProcess& it) const { return "process " + Join(it.words, "|"); }
  std::string operator()(const SsoCache& it) const {
    return fmt::format("sso {} {} {} {}", it.token_file, it.account_id, it.role_name, it.region);
  }
  std::string operator()(const ContainerEndpoint& it) const {
    return fmt::format("container {} {} {}", it.url, it.token, it.token_file);
  }
  std::string operator()(const InstanceMetadata& it) const {
    return fmt::format("machine {} {} {}", it.endpoint, it.timeout_seconds, it.attempts);
  }
};

std::string Show(const AwsIdentity& identity) { return std::visit(Shower(), identity.who); }

std::string Find(const AwsCase& given) {
  auto found = FindAwsIdentity(given.Variables(), given.Files(), kHome);
  return found.ok() ? Show(*found) : "error: " + std::string(found.status().message());
}

const AwsCase kKeysOfEnvironment = {
    .variables = {{"AWS_ACCESS_KEY_ID", "EAK"}, {"AWS_SECRET_ACCESS_KEY", "ESK"}, {"AWS_SESSION_TOKEN", "EST"}}};
constexpr char kEverything[] =
    "[default]\nrole_arn = arn:r\nsource_profile = base\n[profile base]\naws_access_key_id = "
    "BAK\naws_secret_access_key = "
    "BSK\n";

TEST(AwsIdentity, StepsInOrder) {
  // Each step is removed after it has won.
  AwsCase given = {.variables = {{"awsAnonymousCredential", "true"},
                                 {"ACCESS_KEY_ID", "KAK"},
                                 {"SECRET_ACCESS_KEY", "KSK"},
                                 {"AWS_ACCESS_KEY_ID", "EAK"},
                                 {"AWS_SECRET_ACCESS_KEY", "ESK"},
                                 {"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"},
                                 {"AWS_ROLE_ARN", "arn:w"},
                                 {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x?id=1"},
                                 {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials"}},
                   .config = kEverything,
                   .credentials = "[default]\naws_access_key_id = CAK\naws_secret_access_key = CSK\n"};
  EXPECT_EQ(Find(given), "anonymous");
  given.variables["awsAnonymousCredential"] = "False";
  EXPECT_EQ(Find(given), "keys KAK KSK ");
  given.variables["ACCESS_KEY_ID"] = given.variables["SECRET_ACCESS_KEY"] = " \n";  // from an empty Secret
  EXPECT_EQ(Find(given), "keys EAK ESK ");
  given.variables.erase("AWS_ACCESS_KEY_ID");
  given.variables.erase("AWS_SECRET_ACCESS_KEY");
  EXPECT_EQ(Find(given), "role arn:r muster-initializer  3600 <- keys BAK BSK ");
  given.config =
      "[default]\naws_access_key_id=FAK\naws_secret_access_key=FSK\ncredential_process=/bin/p -x\nsso_account_id=1\n"
      "sso_role_name=R\nsso_region=eu-west-1\nsso_start_url=https://x\n";
  EXPECT_EQ(Find(given), "web /token arn:w muster-initializer");
  given.variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  EXPECT_EQ(Find(given), "sso /home/u/.aws/sso/cache/98383e6608d65e46b24bbd92582bc8d916605a21.json 1 R eu-west-1");
  given.config = "[default]\naws_access_key_id=FAK\naws_secret_access_key=FSK\ncredential_process=/bin/p -x\n";
  EXPECT_EQ(Find(given), "keys CAK CSK ");
  given.credentials.clear();
  EXPECT_EQ(Find(given), "process /bin/p|-x");
  given.config = "[default]\naws_access_key_id=FAK\naws_secret_access_key=FSK\naws_session_token=FST";
  EXPECT_EQ(Find(given), "keys FAK FSK FST");
  given.config.clear();
  EXPECT_EQ(Find(given), "container http://169.254.170.2/v2/x?id=1  ");
  given.variables.erase("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  EXPECT_EQ(Find(given), "container http://169.254.170.23/v1/credentials  ");
  given.variables.erase("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  EXPECT_EQ(Find(given), "machine http://169.254.169.254 1 1");
  given.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  EXPECT_THAT(Find(given), HasSubstr("AWS_EC2_METADATA_DISABLED forbids to ask the machine; set AWS_ACCESS_KEY_ID"));
}

TEST(AwsIdentity, KeysComeInPairs) {
  const struct {
    AwsCase given;
    std::string_view found;
  } rows[] = {
      {kKeysOfEnvironment, "keys EAK ESK EST"},
      {{.variables = {{"AWS_ACCESS_KEY_ID", " EAK\n"}, {"AWS_SECRET_ACCESS_KEY", "a/b+c=\r\n"}}}, "keys EAK a/b+c= "},
      {{.variables = {{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "S"}, {"AWS_SECURITY_TOKEN", "T"}}},
       "keys E S T"},
      {{.variables = {{"ACCESS_KEY_ID", "K"}, {"SECRET_ACCESS_KEY", "S"}, {"SESSION_TOKEN", "T"}}}, "keys K S T"},
      {{.variables = {{"ACCESS_KEY_ID", "K"}, {"SECRET_ACCESS_KEY", "S"}, {"AWS_SESSION_TOKEN", "T"}}}, "keys K S T"},
      // The token belongs to the other keys.
      {{.variables = {{"ACCESS_KEY_ID", "K"},
                      {"SECRET_ACCESS_KEY", "S"},
                      {"AWS_ACCESS_KEY_ID", "E"},
                      {"AWS_SECRET_ACCESS_KEY", "S2"},
                      {"AWS_SESSION_TOKEN", "T"}}},
       "keys K S "},
      {{.variables = {{"AWS_ACCESS_KEY_ID", "E"}}},
       "error: the credentials for S3: AWS_ACCESS_KEY_ID is set but AWS_SECRET_ACCESS_KEY is not; set both, or "
       "neither"},
      {{.variables = {{"AWS_SECRET_ACCESS_KEY", "s3cr3t"}}},
       "error: the credentials for S3: AWS_SECRET_ACCESS_KEY is set but AWS_ACCESS_KEY_ID is not; set both, or "
       "neither"},
      {{.variables = {{"ACCESS_KEY_ID", "K"}, {"AWS_SECRET_ACCESS_KEY", "s3cr3t"}}},
       "error: the credentials for S3: ACCESS_KEY_ID is set but SECRET_ACCESS_KEY is not; set both, or neither"},
      {{.variables = {{"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "s3cr3t with blanks"}}},
       "error: the credentials for S3: AWS_SECRET_ACCESS_KEY has a blank, a line break or another character that no "
       "key has"},
      {{.variables = {{"AWS_ACCESS_KEY_ID", "E\r\nX-Evil: 1"}, {"AWS_SECRET_ACCESS_KEY", "S"}}},
       "error: the credentials for S3: AWS_ACCESS_KEY_ID has a blank, a line break or another character that no key "
       "has"},
      {{.credentials = "[default]\naws_access_key_id = C\n"},
       "error: the credentials for S3: aws_access_key_id in profile default of /home/u/.aws/credentials is set but "
       "aws_secret_access_key is not; set both, or neither"},
      {{.config = "[default]\naws_secret_access_key = s3cr3t\n", .credentials = "[default]\naws_access_key_id = C\n"},
       "error: the credentials for S3: aws_access_key_id in profile default of /home/u/.aws/credentials is set but "
       "aws_secret_access_key is not; set both, or neither"},
      {{.variables = {{"awsAnonymousCredential", "maybe"}}},
       "error: the credentials for S3: awsAnonymousCredential is 'maybe'; it must be true or false"},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Find(row.given), row.found);
    EXPECT_THAT(Find(row.given), Not(HasSubstr("s3cr3t")));
  }
  auto found = FindAwsIdentity(kKeysOfEnvironment.Variables(), kKeysOfEnvironment.Files(), kHome);
  EXPECT_EQ(std::get<StaticKeys>(found->who).origin, "AWS_ACCESS_KEY_ID");
}

TEST(AwsIdentity, ProfilesAreChosen) {
  const AwsCase files = {
      .config =
          "[default]\ncredential_process=/default\n[profile dev]\ncredential_process=/dev\n[profile \"my dev\"]\n"
          "credential_process=/mine\n[dev2]\ncredential_process=/no\n",
      .credentials =
          "[dev]\naws_access_key_id=A\naws_secret_access_key=S\naws_security_token=T\n[other]\n"
          "aws_access_key_id=O\naws_secret_access_key=S\n"};
  auto with = [&files](std::map<std::string, std::string, std::less<>> variables) {
    AwsCase given = files;
    given.variables = std::move(variables);
    return Find(given);
  };
  EXPECT_EQ(with({}), "process /default");
  EXPECT_EQ(with({{"AWS_PROFILE", "dev"}}), "keys A S T");
  EXPECT_EQ(with({{"AWS_PROFILE", "my dev"}}), "process /mine");
  EXPECT_EQ(with({{"AWS_PROFILE", "other"}}), "keys O S ");
  EXPECT_EQ(with({{"AWS_PROFILE", "other"}, {"AWS_DEFAULT_PROFILE", "dev"}}), "keys A S T");
  EXPECT_EQ(with({{"AWS_PROFILE", "dev"}, {"AWS_ACCESS_KEY_ID", "E"}, {"AWS_SECRET_ACCESS_KEY", "S"}}), "keys E S ");
  EXPECT_EQ(with({{"AWS_PROFILE", "dev2"}}),
            "error: AWS_PROFILE names the profile 'dev2', which is in neither /home/u/.aws/config nor "
            "/home/u/.aws/credentials");
  EXPECT_THAT(with({{"AWS_PROFILE", "dev"}, {"AWS_CONFIG_FILE", "/c"}, {"AWS_SHARED_CREDENTIALS_FILE", "/s"}}),
              HasSubstr("which is in neither /c nor /s (AWS_CONFIG_FILE names /c, which is not there; "
                        "AWS_SHARED_CREDENTIALS_FILE names /s, which is not there)"));
  AwsCase homeless = {.variables = {{"AWS_PROFILE", "x"}}};
  auto found = FindAwsIdentity(homeless.Variables(), homeless.Files(), "");
  EXPECT_THAT(std::string(found.status().message()), HasSubstr("in neither ~/.aws/config nor ~/.aws/credentials"));
}

TEST(AwsIdentity, FilesAreWhereTheVariablesSay) {
  AwsCase given = {.variables = {{"AWS_SHARED_CREDENTIALS_FILE", "~/keys"}, {"AWS_CONFIG_FILE", "/etc/aws"}},
                   .config = "[default]\ncredential_process=/no\n",
                   .files = {{"/home/u/keys", "[default]\naws_access_key_id=A\naws_secret_access_key=S\n"},
                             {"/etc/aws", "[default]\n"}}};
  EXPECT_EQ(Find(given), "keys A S ");
  given.files["/home/u/keys"] = "denied";
  EXPECT_EQ(Find(given), "error: the AWS settings in /home/u/keys cannot be read: permission denied");
  given.files["/home/u/keys"] = "aws_access_key_id=s3cr3t";
  EXPECT_EQ(Find(given), "error: /home/u/keys, line 1: there is no [section] before this line");
  // No other step replaces the missing file.
  given.files.erase("/home/u/keys");
  EXPECT_EQ(Find(given),
            "error: the credentials for S3: AWS_SHARED_CREDENTIALS_FILE names /home/u/keys, which is not there; put it "
            "there, "
            "or unset the variable");
  given.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/token";
  given.variables["AWS_ROLE_ARN"] = "arn:w";
  EXPECT_EQ(Find(given), "web /token arn:w muster-initializer");
}

TEST(AwsIdentity, RolesAreAssumed) {
  const std::string keys = "aws_access_key_id=A\naws_secret_access_key=S\n";
  const struct {
    std::string config;
    std::string_view found;
  } rows[] = {
      {"[default]\nrole_arn=arn:1\nsource_profile=a\nexternal_id=x\nrole_session_name=me\nduration_seconds=900\n"
       "[profile a]\n" +
           keys,
       "role arn:1 me x 900 <- keys A S "},
      {"[default]\nrole_arn=arn:1\nsource_profile=a\n[profile a]\nrole_arn=arn:2\nsource_profile=b\n[profile b]\n" +
           keys,
       "role arn:1 muster-initializer  3600 <- role arn:2 muster-initializer  3600 <- keys A S "},
      {"[default]\nrole_arn=arn:1\nsource_profile=default\n" + keys,
       "role arn:1 muster-initializer  3600 <- keys A S "},
      {"[default]\nrole_arn=arn:1\nsource_profile=a\n[profile a]\nrole_arn=arn:2\nsource_profile=default\n" + keys,
       "role arn:1 muster-initializer  3600 <- keys A S "},
      {"[default]\nrole_arn=arn:1\nsource_profile=a\n[profile a]\nrole_arn=arn:2\nweb_identity_token_file=/t\n",
       "role arn:1 muster-initializer  3600 <- web /t arn:2 muster-initializer"},
      {"[default]\nrole_arn=arn:1\nsource_profile=a\n[profile a]\ncredential_process=\"/my tools/p\" x\n",
       "role arn:1 muster-initializer  3600 <- process /my tools/p|x"},
      {"[default]\nrole_arn=arn:1\ncredential_source=Ec2InstanceMetadata\n",
       "role arn:1 muster-initializer  3600 <- machine http://169.254.169.254 1 1"},
      {"[default]\nrole_arn=arn:1\ncredential_source=EcsContainer\n",
       "error: the credentials for S3: credential_source in profile default of /home/u/.aws/config is EcsContainer, "
       "whose "
       "variables are not set"},
      {"[default]\nrole_arn=arn:1\ncredential_source=Environment\n",
       "error: the credentials for S3: credential_source in profile default of /home/u/.aws/config is Environment, "
       "whose "
       "variables are not set"},
      {"[default]\nrole_arn=arn:1\ncredential_source=ec2\n",
       "error: the credentials for S3: credential_source in profile default of /home/u/.aws/config is 'ec2'; it must "
       "be "
       "Environment, EcsContainer or Ec2InstanceMetadata"},
      {"[default]\nrole_arn=arn:1\n" + keys,
       "error: the credentials for S3: role_arn in profile default of /home/u/.aws/config needs source_profile or "
       "credential_source beside it"},
      {"[default]\nrole_arn=arn:1\ncredential_source=Environment\nsource_profile=a\n",
       "error: the credentials for S3: source_profile in profile default of /home/u/.aws/config and credential_source "
       "in "
       "profile default of /home/u/.aws/config are both set; keep one"},
      {"[default]\nrole_arn=arn:1\nsource_profile=nobody\n",
       "error: the credentials for S3: source_profile in profile default of /home/u/.aws/config is 'nobody', which "
       "does not "
       "exist"},
      {"[default]\nrole_arn=arn:1\nsource_profile=a\n[profile a]\nregion=r\n",
       "error: the credentials for S3: source_profile in profile default of /home/u/.aws/config is 'a', which has no "
       "credentials"},
      {"[default]\nrole_arn=arn:1\nsource_profile=default\n",
       "error: the credentials for S3: source_profile in profile default of /home/u/.aws/config is 'default', which "
       "makes a cycle: default; the last profile needs keys of its own"},
      {"[default]\nrole_arn=arn:1\nsource_profile=a\n[profile a]\nrole_arn=arn:2\nsource_profile=b\n[profile b]\n"
       "role_arn=arn:3\nsource_profile=a\n",
       "error: the credentials for S3: source_profile in profile b of /home/u/.aws/config is 'a', which makes a cycle: "
       "default, a, b; the last profile needs keys of its own"},
      {"[default]\nrole_arn=arn:1\nsource_profile=a\nmfa_serial=arn:mfa\n[profile a]\n" + keys,
       "error: the credentials for S3: mfa_serial in profile default of /home/u/.aws/config asks for an MFA code, "
       "which nobody can type here; use a role without MFA, or keys that were fetched with MFA"},
      {"[default]\nrole_arn=arn:1\nsource_profile=a\nduration_seconds=60\n[profile a]\n" + keys,
       "error: the credentials for S3: duration_seconds in profile default of /home/u/.aws/config is '60'; it must be "
       "from "
       "900 to 43200 seconds"},
      {"[default]\nrole_arn=arn:1\nsource_profile=a\n[profile a]\naws_secret_access_key=s3cr3t\n",
       "error: the credentials for S3: aws_secret_access_key in profile a of /home/u/.aws/config is set but "
       "aws_access_key_id is not; set both, or neither"},
      {"[default]\ncredential_process=\"/my tools/p\" 's3cr3t\n",
       "error: the credentials for S3: credential_process in profile default of /home/u/.aws/config: the command line "
       "has a "
       "quote that is not closed"},
      {"[default]\nlogin_session=arn:me\n",
       "error: the credentials for S3: login_session in profile default of /home/u/.aws/config is a session of `aws "
       "login`, "
       "which is not supported; use `aws configure export-credentials`, a role or keys"},
  };
  for (const auto& row : rows) EXPECT_EQ(Find({.config = row.config}), row.found) << row.config;
}

TEST(AwsIdentity, SourcesDoNotMixWithTheEnvironment) {
  const AwsCase given = {
      .variables = {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/env"}, {"AWS_ROLE_ARN", "arn:env"}},
      .config =
          "[default]\nrole_arn=arn:1\nsource_profile=a\n[profile a]\nrole_arn=arn:2\nweb_identity_token_file=/a\n"};
  EXPECT_EQ(Find(given), "role arn:1 muster-initializer  3600 <- web /a arn:2 muster-initializer");
}

TEST(AwsIdentity, WebIdentity) {
  const struct {
    AwsCase given;
    std::string_view found;
  } rows[] = {
      {{.variables = {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/t"},
                      {"AWS_ROLE_ARN", "arn:w"},
                      {"AWS_ROLE_SESSION_NAME", "me"}}},
       "web /t arn:w me"},
      {{.variables = {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/t"}}, .config = "[default]\nrole_session_name=p\n"},
       "error: the credentials for S3: AWS_WEB_IDENTITY_TOKEN_FILE is set but no role is; set AWS_ROLE_ARN"},
      {{.config = "[default]\nrole_arn=arn:p\nweb_identity_token_file=/p\nrole_session_name=p\n"}, "web /p arn:p p"},
      {{.variables = {{"AWS_ROLE_ARN", "arn:w"}}, .config = "[default]\nrole_arn=arn:p\nweb_identity_token_file=/p\n"},
       "web /p arn:w muster-initializer"},
      {{.variables = {{"AWS_ROLE_ARN", "arn:w"}}}, "machine http://169.254.169.254 1 1"},
  };
  for (const auto& row : rows) EXPECT_EQ(Find(row.given), row.found);
}

TEST(AwsIdentity, KubeflowsRoleIsAssumedOnTop) {
  AwsCase given = kKeysOfEnvironment;
  given.variables["ROLE_ARN"] = "arn:k";
  EXPECT_EQ(Find(given), "role arn:k muster-initializer  3600 <- keys EAK ESK EST");
  given.variables["AWS_ROLE_SESSION_NAME"] = "me";
  EXPECT_EQ(Find(given), "role arn:k me  3600 <- keys EAK ESK EST");
  given.variables = {{"ROLE_ARN", "arn:k"}, {"AWS_WEB_IDENTITY_TOKEN_FILE", "/t"}};
  EXPECT_EQ(Find(given), "web /t arn:k muster-initializer");
  given.variables["AWS_ROLE_ARN"] = "arn:k";
  EXPECT_EQ(Find(given), "web /t arn:k muster-initializer");
  given.variables["AWS_ROLE_ARN"] = "arn:w";
  EXPECT_EQ(Find(given), "role arn:k muster-initializer  3600 <- web /t arn:w muster-initializer");
  given.variables = {{"ROLE_ARN", "arn:k"}};
  EXPECT_EQ(Find(given), "role arn:k muster-initializer  3600 <- machine http://169.254.169.254 1 1");
  given.variables["awsAnonymousCredential"] = "1";
  EXPECT_EQ(Find(given), "anonymous");
}

TEST(AwsIdentity, SingleSignOnNeedsAWholeProfile) {
  const std::string session = "[sso-session s]\nsso_start_url=https://y\nsso_region=eu-west-1\n";
  const struct {
    std::string config;
    std::string_view found;
  } rows[] = {
      // sha1("s"), sha1("https://x")
      {session + "[default]\nsso_session=s\nsso_account_id=1\nsso_role_name=R\n",
       "sso /home/u/.aws/sso/cache/a0f1490a20d0211c997b44bc357e1972deab8ae3.json 1 R eu-west-1"},
      {"[default]\nsso_start_url=https://x\nsso_region=us-east-1\nsso_account_id=1\nsso_role_name=R\n",
       "sso /home/u/.aws/sso/cache/98383e6608d65e46b24bbd92582bc8d916605a21.json 1 R us-east-1"},
      {session + "[default]\nsso_session=t\nsso_account_id=1\nsso_role_name=R\n",
       "error: the credentials for S3: sso_session in profile default of /home/u/.aws/config is 't', but there is no "
       "[sso-session t] in /home/u/.aws/config"},
      {session + "[default]\nsso_session=s\nsso_role_name=R\n",
       "error: the credentials for S3: profile default of /home/u/.aws/config uses SSO but has no sso_account_id"},
      {session + "[default]\nsso_session=s\nsso_region=us-east-1\nsso_account_id=1\nsso_role_name=R\n",
       "error: the credentials for S3: sso_region in profile default of /home/u/.aws/config differs from that of its "
       "[sso-session s]; keep one"},
  };
  for (const auto& row : rows) EXPECT_EQ(Find({.config = row.config}), row.found) << row.config;
}

TEST(AwsIdentity, ContainersAreAskedWhereNobodyElseListens) {
  auto full = [](std::string url) { return Find({.variables = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url}}}); };
  for (std::string url : {"http://169.254.170.23/v1/credentials", "http://169.254.170.2/x", "http://[fd00:ec2::23]/v1",
                          "http://[fd00:0ec2:0::23]:80/v1", "http://localhost:1/x", "http://127.0.0.1:1/x?y=z",
                          "http://127.8.9.10/", "http://[::1]/x", "https://anywhere.example/x"}) {
    EXPECT_EQ(full(url), "container " + url + "  ");
  }
  for (std::string url : {"http://169.254.170.3/x", "http://127.0.0.1.evil.example/x", "http://127.evil.example/",
                          "http://evil.example/169.254.170.2", "http://[fd00:ec2::24]/v1", "http://localhost.evil/x",
                          "http://0177.0.0.1/"}) {
    EXPECT_THAT(full(url),
                HasSubstr("AWS_CONTAINER_CREDENTIALS_FULL_URI is '" + url + "': over http a token may only"));
  }
  EXPECT_THAT(full("http://user@localhost/x"), HasSubstr("a user or password does not belong in it"));
  EXPECT_THAT(full("localhost/x"), HasSubstr("it lacks the scheme"));
  EXPECT_THAT(full("http://localhost/x?a b"), HasSubstr("has characters that must be percent-encoded"));

  AwsCase given = {.variables = {{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", ".evil.example/x"}}};
  EXPECT_THAT(Find(given), HasSubstr("is '.evil.example/x'; it must begin with a slash"));
  given.variables = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1"},
                     {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer x y"}};
  EXPECT_EQ(Find(given), "container http://169.254.170.23/v1 Bearer x y ");
  given.variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = "/var/run/token";
  EXPECT_EQ(Find(given), "container http://169.254.170.23/v1  /var/run/token");
  given.variables.erase("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  given.variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "s3cr3t\r\nX: y";
  EXPECT_EQ(
      Find(given),
      "error: the credentials for S3: AWS_CONTAINER_AUTHORIZATION_TOKEN has a line break, which no header can have");
}

TEST(AwsIdentity, TheMachineIsAskedAsConfigured) {
  const struct {
    AwsCase given;
    std::string_view found;
  } rows[] = {
      {{.variables = {{"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6"}}}, "machine http://[fd00:ec2::254] 1 1"},
      {{.variables = {{"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "v6"}}},
       "error: the credentials for S3: AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE is 'v6'; it must be IPv4 or IPv6"},
      {{.variables = {{"AWS_IMDS_USE_IPV6", "true"}}}, "machine http://[fd00:ec2::254] 1 1"},
      {{.variables = {{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1338/"},
                      {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6"}}},
       "machine http://127.0.0.1:1338 1 1"},
      {{.variables = {{"AWS_METADATA_SERVICE_TIMEOUT", "3"}}, .config = "[default]\nmetadata_service_num_attempts=4\n"},
       "machine http://169.254.169.254 3 4"},
      {{.variables = {{"AWS_METADATA_SERVICE_NUM_ATTEMPTS", "0"}}},
       "error: the credentials for S3: AWS_METADATA_SERVICE_NUM_ATTEMPTS is '0'; it must be from 1 to 100"},
  };
  for (const auto& row : rows) EXPECT_EQ(Find(row.given), row.found);
}

}  // namespace
}  // namespace muster::initializers
