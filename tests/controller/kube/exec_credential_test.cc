// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/exec_credential.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::controller {
namespace {

using testing::HasSubstr;

constexpr char kVersion[] = "client.authentication.k8s.io/v1";

std::string Answer(std::string_view status) {
  return fmt::format(R"({{"apiVersion":"{}","kind":"ExecCredential","status":{}}})", kVersion, status);
}

TEST(ExecCredential, TellsThePluginVersionAndCluster) {
  ClusterAccess::Exec plugin{.command = "x", .api_version = kVersion};
  EXPECT_EQ(ExecInfo(plugin),
            R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false}})");
  plugin.cluster_info = R"({"server":"https://h"})";
  EXPECT_THAT(ExecInfo(plugin), HasSubstr(R"("spec":{"cluster":{"server":"https://h"},"interactive":false})"));
}

TEST(ExecCredential, IsRead) {
  auto credential =
      ReadExecCredential(Answer(R"({"token":"abc","expirationTimestamp":"1970-01-01T00:01:00Z"})"), kVersion);
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->token, "abc");
  EXPECT_EQ(credential->expires, 60);
  credential = ReadExecCredential(Answer(R"({"clientCertificateData":"C","clientKeyData":"K"})"), kVersion);
  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(credential->client_certificate + credential->client_key + credential->token, "CK");
  EXPECT_EQ(credential->expires, std::nullopt);
}

TEST(ExecCredential, RefusesAWrongAnswerWithoutShowingIt) {
  const struct {
    std::string text;
    std::string_view told;
  } rows[] = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"s3cr3t", "not a JSON object"},
      {"{}", "its answer is '' of ''"},
      {R"({"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential"})", "v1beta1"},
      {Answer("null"), "no 'status'"},
      {Answer("{}"), "neither 'token' nor"},
      {Answer(R"({"token":7})"), "'token' is not a text"},
      {Answer(R"({"token":"s3cr3t\nx"})"), "'token' has white space"},
      {Answer(R"({"clientKeyData":"s3cr3t"})"), "one is missing"},
      {Answer(R"({"token":"s3cr3t","expirationTimestamp":"soon"})"), "'expirationTimestamp'"},
  };
  for (const auto& row : rows) {
    const auto credential = ReadExecCredential(row.text, kVersion);
    ASSERT_FALSE(credential.ok()) << row.text;
    EXPECT_THAT(std::string(Message(credential.status())), HasSubstr(std::string(row.told)));
    EXPECT_EQ(credential.status().message().find("s3cr3t"), absl::string_view::npos) << credential.status();
  }
}

}  // namespace
}  // namespace muster::controller
