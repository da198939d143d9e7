// SPDX-License-Identifier: Apache-2.0
// The endpoint of the hub and our token, by the rules of huggingface_hub and Kubeflow.
#include "initializers/stores/hub_settings.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/initializers/aws_case.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Source SourceOf(std::string_view uri) { return *ParseSource(uri, Role::kModel); }

// "endpoint revision [token of origin]", or "error: ...".
std::string Find(const AwsCase& given, std::string_view uri = "hf://a/b", bool anonymous = false,
                 const std::string& home = kHome) {
  auto settings = FindHubSettings(SourceOf(uri), anonymous, given.Variables(), given.Files(), home);
  if (!settings.ok()) return "error: " + std::string(Message(settings.status()));
  std::string text = fmt::format("{} {}", settings->endpoint, settings->revision);
  if (settings->token) text += fmt::format(" {} of {}", *settings->token, settings->token_origin.value_or("?"));
  return text;
}

TEST(HubSettings, TheEndpointIsReadAndChecked) {
  const struct {
    std::string_view endpoint, found;
  } rows[] = {
      {"", "https://huggingface.co main"},
      {" ", "https://huggingface.co main"},
      {"https://hub.example/", "https://hub.example main"},
      {"http://127.0.0.1:8080/base//", "http://127.0.0.1:8080/base main"},
      {"hub.example", "error: HF_ENDPOINT: 'hub.example' is not an endpoint: it lacks the scheme"},
      {"ftp://hub.example", "error: HF_ENDPOINT: 'ftp://hub.example' is not an endpoint: its scheme is neither"},
      {"https://u:s3cret@hub.example", "error: HF_ENDPOINT: '...@hub.example' is not an endpoint"},
  };
  for (const auto& row : rows) {
    const std::string found = Find({.variables = {{"HF_ENDPOINT", std::string(row.endpoint)}}});
    EXPECT_THAT(found, ::testing::StartsWith(row.found));
    EXPECT_THAT(found, Not(HasSubstr("s3cret")));
  }
  EXPECT_EQ(Find({.variables = {{"ENDPOINT", "http://an-object-store"}}}), "https://huggingface.co main");
}

TEST(HubSettings, TokensInOrder) {
  // Each setting is removed after it has won.
  AwsCase given = {.variables = {{"ACCESS_TOKEN", "kubeflow"},
                                 {"HF_TOKEN", " hf\n"},
                                 {"HUGGING_FACE_HUB_TOKEN", "legacy"},
                                 {"HUGGING_FACE_TOKEN", "other"},
                                 {"HF_TOKEN_PATH", "~/t"},
                                 {"HF_HOME", "/hf"},
                                 {"XDG_CACHE_HOME", "/xdg"}},
                   .files = {{"/home/u/t", "path\n"},
                             {"/hf/token", " home \r\n"},
                             {"/xdg/huggingface/token", "xdg"},
                             {"/home/u/.cache/huggingface/token", "cache"}}};
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"ACCESS_TOKEN", "kubeflow of ACCESS_TOKEN"},
      {"HF_TOKEN", "hf of HF_TOKEN"},
      {"HUGGING_FACE_HUB_TOKEN", "legacy of HUGGING_FACE_HUB_TOKEN"},
      {"HUGGING_FACE_TOKEN", "other of HUGGING_FACE_TOKEN"},
      {"HF_TOKEN_PATH", "path of /home/u/t"},
      {"HF_HOME", "home of /hf/token"},
      {"XDG_CACHE_HOME", "xdg of /xdg/huggingface/token"},
      {"", "cache of /home/u/.cache/huggingface/token"},
  };
  for (const auto& [variable, token] : rows) {
    EXPECT_EQ(Find(given), fmt::format("https://huggingface.co main {}", token));
    EXPECT_EQ(Find(given, "hf://a/b", true), "https://huggingface.co main") << "anonymous";
    if (auto set = given.variables.find(variable); set != given.variables.end()) given.variables.erase(set);
  }
  given.variables["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1";
  EXPECT_EQ(Find(given), "https://huggingface.co main");
  given.variables["HF_TOKEN"] = "named";
  EXPECT_EQ(Find(given), "https://huggingface.co main named of HF_TOKEN");
}

TEST(HubSettings, NoTokenIsNone) {
  EXPECT_EQ(Find({}), "https://huggingface.co main");
  EXPECT_EQ(Find({}, "hf://a/b", false, ""), "https://huggingface.co main");
  EXPECT_EQ(Find({.variables = {{"HF_TOKEN", ""}, {"HF_TOKEN_PATH", "/not/there"}}}), "https://huggingface.co main");
  EXPECT_EQ(Find({.variables = {{"HF_HOME", "/hf"}}, .files = {{"/hf/token", " \n"}}}), "https://huggingface.co main");
}

TEST(HubSettings, TokensThatCannotBe) {
  for (const std::string& token : {std::string("s3cret\nX: y"), std::string("s3cret s3cret"),
                                   std::string("s3cr\xc3\xa9t"), "s3cret" + std::string(5000, 'a')}) {
    for (const AwsCase& given : {AwsCase{.variables = {{"HF_TOKEN", token}}},
                                 AwsCase{.variables = {{"HF_TOKEN_PATH", "/t"}}, .files = {{"/t", token}}}}) {
      const std::string found = Find(given);
      EXPECT_THAT(found, ::testing::ContainsRegex("^error: the token in (HF_TOKEN|/t) .*; set it to the token alone"));
      EXPECT_THAT(found, Not(HasSubstr("s3cr")));
    }
  }
  EXPECT_EQ(Find({.variables = {{"HF_TOKEN_PATH", "/t"}}, .files = {{"/t", "denied"}}}),
            "error: the token in /t cannot be read: permission denied");
}

TEST(HubSettings, TheRevisionIsReadAndChecked) {
  const AwsCase given = {.variables = {{"MODEL_VERSION", " v2.0 "}}};
  EXPECT_EQ(Find(given), "https://huggingface.co v2.0");
  EXPECT_EQ(Find(given, "hf://a/b@refs/pr/3/x"), "https://huggingface.co refs/pr/3");
  EXPECT_EQ(FindHubRevision(SourceOf("hf://a/b"), given.Variables()), "v2.0");
  for (const std::string& bad : {std::string("a b"), std::string("a\nb"), std::string(256, 'a'), std::string("\xff")}) {
    EXPECT_THAT(Find({.variables = {{"MODEL_VERSION", bad}}}),
                ::testing::ContainsRegex("^error: MODEL_VERSION is '.*', which is not a revision"));
  }
}

TEST(HubSettings, OfflineModeIsRefused) {
  for (std::string_view on : {"1", "true", "YES", "on"}) {
    EXPECT_THAT(Find({.variables = {{"HF_HUB_OFFLINE", std::string(on)}}}), HasSubstr("HF_HUB_OFFLINE is set"));
  }
  for (std::string_view off : {"0", "false", "", "maybe"}) {
    EXPECT_EQ(Find({.variables = {{"HF_HUB_OFFLINE", std::string(off)}}}), "https://huggingface.co main") << off;
  }
}

TEST(HubCache, WhereTheClientLooks) {
  AwsCase given = {.variables = {{"HF_HUB_CACHE", "~/c"},
                                 {"HUGGINGFACE_HUB_CACHE", "/legacy"},
                                 {"HF_HOME", "/hf"},
                                 {"XDG_CACHE_HOME", "/xdg"}}};
  for (const auto& [variable, path] :
       std::vector<std::pair<std::string, std::string>>{{"HF_HUB_CACHE", "/home/u/c"},
                                                        {"HUGGINGFACE_HUB_CACHE", "/legacy"},
                                                        {"HF_HOME", "/hf/hub"},
                                                        {"XDG_CACHE_HOME", "/xdg/huggingface/hub"},
                                                        {"", "/home/u/.cache/huggingface/hub"}}) {
    EXPECT_EQ(*FindHubCache(given.Variables(), kHome), path);
    given.variables.erase(variable);
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(FindHubCache(given.Variables(), "").status()));
}

}  // namespace
}  // namespace muster::initializers
