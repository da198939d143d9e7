// SPDX-License-Identifier: Apache-2.0
// The shared files of the AWS SDKs. The results were compared with botocore's reader.
#include "initializers/facts/ini_file.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;

// "[a] k=v k=v [b]", or "error: ...".
std::string Read(std::string_view text) {
  auto file = ParseIni(text, "/home/u/.aws/config");
  if (!file.ok()) return "error: " + std::string(file.status().message());
  std::vector<std::string> parts;
  for (const auto& [name, section] : *file) {
    parts.push_back(fmt::format("[{}]", name));
    for (const auto& [key, value] : section) parts.push_back(fmt::format("{}={}", key, value));
  }
  return Join(parts, " ");
}

TEST(IniFile, IsRead) {
  const struct {
    std::string_view text, read;
  } rows[] = {
      {"", ""},
      {"# nothing\n\n; at all\n", ""},
      {"[default]\naws_access_key_id = AKID\naws_secret_access_key=a/b+c==\n",
       "[default] aws_access_key_id=AKID aws_secret_access_key=a/b+c=="},
      {"[default]\r\nregion = eu-west-1\r\n[profile dev]\r\nregion=us-east-1",
       "[default] region=eu-west-1 [profile dev] region=us-east-1"},
      {"\xef\xbb\xbf[default]\na=1", "[default] a=1"},
      {"[ default ]\nA_b : 1", "[default] a_b=1"},
      {"[profile \"my dev\"]\n[sso-session s]\n[services x]", "[profile \"my dev\"] [services x] [sso-session s]"},
      {"[default] # comment\na = 1 # not a comment\nb = 2 ; neither", "[default] a=1 # not a comment b=2 ; neither"},
      {"[default]\na =\nb=", "[default] a= b="},
      {"[default]\ns3 =\n  addressing_style = path\n\n  # why\n\tuse_accelerate_endpoint=true\nregion = r",
       "[default] region=r s3= s3.addressing_style=path s3.use_accelerate_endpoint=true"},
      {"[services x]\ns3 =\n  endpoint_url = http://a:9000/b=c\nsts =\n  endpoint_url = https://b",
       "[services x] s3= s3.endpoint_url=http://a:9000/b=c sts= sts.endpoint_url=https://b"},
      {"[default]\ncredential_process = /bin/x\n  --flag\n  --other\nregion=r",
       "[default] credential_process=/bin/x\n--flag\n--other region=r"},
      {"  [default]\n  a=1\n  b=2", "[default] a=1 b=2"},
      {"[default]\n    a=1\n  b=2", "[default] a=1 b=2"},
      {"[default]\na=1\n  [x]\nb=2", "[default] a=1\n[x] b=2"},
      {"[a]\nk=1\n[b]\n  k=2", "[a] k=1 [b] k=2"},
      {"[a]b]\nk=1", "[a]b] k=1"},
  };
  for (const auto& row : rows) EXPECT_EQ(Read(row.text), row.read) << row.text;
}

TEST(IniFile, ThatIsNoneIsNamed) {
  const struct {
    std::string_view text, error;
  } rows[] = {
      {"aws_access_key_id = x", "/home/u/.aws/config, line 1: there is no [section] before this line"},
      {"[default]\n\nAKIDsecret", "/home/u/.aws/config, line 3: there is no '=' in this line"},
      {"[default]\n=secret", "line 2: there is no name before the '='"},
      {"[default]\na=1\nA=secret", "line 3: 'a' is there twice; keep one"},
      {"[default]\n[default]", "line 2: section 'default' is there twice; make it one"},
      {"[]", "line 1: a section has no name"},
      {"[default", "line 1: there is no [section] before this line"},
      {"[default]\ns3 =\n  secret", "line 3: there is no '=' in this line below 's3'"},
      {"[default]\ns3 =\n  = secret", "line 3: there is no name before the '='"},
      {"[default]\ns3 =\n  a = 1\n  a = secret", "line 4: 's3.a' is there twice; keep one"},
      {"{\"secret\": 1}", "line 1: there is no [section]"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(Read(row.text), HasSubstr(row.error)) << row.text;
    EXPECT_THAT(Read(row.text), ::testing::Not(HasSubstr("secret"))) << row.text;
    EXPECT_EQ(ParseIni(row.text, "p").status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(IniFile, IsBounded) {
  EXPECT_EQ(Read(std::string(kLongestIniFile, '\n')), "");
  EXPECT_THAT(Read(std::string(kLongestIniFile + 1, '\n')), HasSubstr("more than 1048576: is it the right file?"));
}

}  // namespace
}  // namespace muster::initializers
