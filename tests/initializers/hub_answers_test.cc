// SPDX-License-Identifier: Apache-2.0
// Revisions, trees, links and errors as the Hugging Face hub writes them, and malformed ones.
#include "initializers/stores/hub_answers.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace muster::initializers {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kCommit = "607a30d783dfa663caf39e06633721c8d4cfcd7e";
constexpr std::string_view kOid = "0ad3b7c41b0e1fcbdb1e3e2a8f0e6d4b8b8b2f5a";
constexpr std::string_view kSha256 = "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707";

TEST(HubRevision, IsACommit) {
  const struct {
    std::string_view json, commit;
  } rows[] = {
      {R"({"_id":"621f","id":"openai-community/gpt2","sha":"607a30d783dfa663caf39e06633721c8d4cfcd7e","private":false,
          "siblings":[{"rfilename":"config.json"},{"rfilename":"sha"}],"config":{"sha":"no","a":[[[[1]]]]},"gated":false})",
       kCommit},
      {R"({"sha":"607a30d783dfa663caf39e06633721c8d4cfcd7e"})", kCommit},
      {R"({"siblings":[]})", "error: the hub's answer about the revision has no sha"},
      {R"({"sha":null})", "error: the hub's answer about the revision has no sha"},
      {R"({"sha":"main"})", "error: the hub's sha of the revision is 'main', which is not a commit"},
      {R"({"sha":"607A30D783DFA663CAF39E06633721C8D4CFCD7E"})",
       "error: the hub's sha of the revision is '607A30D783DFA663CAF39E06633721C8D4CFCD7E', which is not a commit"},
      {R"(["sha"])", "error: the hub's answer about the revision has no sha"},
      {"<html>\n<body>Please log in",
       "error: the hub's answer about the revision cannot be read: it is not JSON: '<html>\\x0a<body>Please log "
       "in'"},
      {R"({"sha":"607a)", "error: the hub's answer about the revision cannot be read: it is not JSON: "},
      {"", "error: the hub's answer about the revision cannot be read: it is not JSON: ''"},
  };
  for (const auto& row : rows) {
    auto commit = ParseRevision(row.json);
    EXPECT_THAT(commit.ok() ? *commit : "error: " + std::string(Message(commit.status())), HasSubstr(row.commit))
        << row.json;
  }
}

TEST(HubRevision, OnlyAFullHashIsACommit) {
  EXPECT_TRUE(IsCommit(kCommit));
  for (std::string_view other :
       {"main", "", "607a30d", "607a30d783dfa663caf39e06633721c8d4cfcd7g", "607A30D783DFA663CAF39E06633721C8D4CFCD7E",
        "607a30d783dfa663caf39e06633721c8d4cfcd7e0"}) {
    EXPECT_FALSE(IsCommit(other)) << other;
  }
}

// "path size hash | ...", or "error: ...".
std::string Read(std::string_view json) {
  auto entries = ParseTree(json);
  if (!entries.ok()) return "error: " + std::string(Message(entries.status()));
  std::vector<std::string> parts;
  for (const Entry& entry : *entries) {
    EXPECT_EQ(entry.path, entry.key);
    EXPECT_TRUE(entry.known && entry.ranges && !entry.content);
    EXPECT_EQ(entry.version, ToHex(entry.expected->value));
    parts.push_back(fmt::format("{} {} {}", entry.path, entry.size, Describe(*entry.expected)));
  }
  return Join(parts, " | ");
}

std::string File(std::string_view fields) { return fmt::format(R"([{{"type":"file",{}}}])", fields); }

TEST(HubTree, FilesAreRead) {
  EXPECT_EQ(Read("[]"), "");
  EXPECT_EQ(Read(R"([{"type":"directory","oid":"0ad3b7c41b0e1fcbdb1e3e2a8f0e6d4b8b8b2f5a","size":0,"path":"onnx"}])"),
            "");
  EXPECT_EQ(Read(fmt::format(R"([
    {{"type":"directory","oid":"{0}","size":0,"path":"d"}},
    {{"type":"file","oid":"{0}","size":5,"path":"d/a \" é.json"}},
    {{"type":"file","oid":"{0}","size":0,"path":"empty","lfs":null}},
    {{"type":"submodule","path":"other"}},
    {{"type":"file","oid":"{0}","size":548105171,"path":"model.safetensors","xetHash":"{1}","securityFileStatus":{{"a":[{{}}]}},
      "lfs":{{"oid":"{1}","size":548105171,"pointerSize":134,"more":{{"size":1}}}}}}])",
                             kOid, kSha256)),
            fmt::format("d/a \" é.json 5 git-blob:{0} | empty 0 git-blob:{0} | model.safetensors 548105171 sha256:{1}",
                        kOid, kSha256));
  EXPECT_EQ(Read(File(fmt::format(R"("oid":"{}","size":9223372036854775807,"path":"a")", kOid))),
            fmt::format("a 9223372036854775807 git-blob:{}", kOid));
}

TEST(HubTree, WhatIsWrongIsNamed) {
  const struct {
    std::string json;
    std::string_view error;
  } rows[] = {
      {"<html>Please log in</html>", "it is not JSON: '<html>Please log in</html>'"},
      {"{}", "it is not a JSON array"},
      {"null", "it is not a JSON array"},
      {"[1]", "entry 1: it has no type"},
      {"[[]]", "entry 1: it has no type"},
      {R"([{"path":"a"}])", "entry 1: it has no type"},
      {File(fmt::format(R"("oid":"{}","size":1)", kOid)), "entry 1: it has no path"},
      {File(fmt::format(R"("oid":"{}","size":1,"path":"")", kOid)), "entry 1: it has no path"},
      {File(fmt::format(R"("oid":"{}","size":1,"path":7)", kOid)), "entry 1: it has no path"},
      {File(fmt::format(R"("oid":"{}","path":"a")", kOid)), "entry 1: 'a': it has no size"},
      {File(fmt::format(R"("oid":"{}","path":"a","size":-1)", kOid)), "'a': it has no size"},
      {File(fmt::format(R"("oid":"{}","path":"a","size":1.5)", kOid)), "'a': it has no size"},
      {File(fmt::format(R"("oid":"{}","path":"a","size":"1")", kOid)), "'a': it has no size"},
      {File(fmt::format(R"("oid":"{}","path":"a","size":9223372036854775808)", kOid)), "'a': it has no size"},
      {File(R"("size":1,"path":"a")"), "'a': it has no oid"},
      {File(R"("size":1,"path":"a","oid":"0ad3")"), "'a': its oid is '0ad3', which is not a git id"},
      {File(fmt::format(R"("size":1,"path":"a","oid":"{}")", kSha256)), "not a git id"},
      {File(fmt::format(R"("size":1,"path":"a","oid":"{0}","lfs":{{"oid":"{0}","size":1}})", kOid)), "not a SHA-256"},
      {File(fmt::format(R"("size":1,"path":"a","oid":"{}","lfs":{{"size":1}})", kOid)), "'a': it has no oid"},
      {File(fmt::format(R"("size":1,"path":"a","oid":"{}","lfs":{{"oid":"{}","size":2}})", kOid, kSha256)),
       "'a': its size and that in lfs differ"},
      {File(fmt::format(R"("size":1,"path":"a","oid":"{}","lfs":{{"oid":"{}"}})", kOid, kSha256)),
       "'a': its size and that in lfs differ"},
      {File(fmt::format(R"("size":1,"path":"a","oid":"{}","lfs":7)", kOid)), "'a': its size and that in lfs differ"},
  };
  for (const auto& row : rows) {
    EXPECT_THAT(Read(row.json), HasSubstr(row.error)) << row.json;
    EXPECT_THAT(Read(row.json), HasSubstr("error: the hub's list of files cannot be read: ")) << row.json;
  }
  const std::string good = fmt::format(R"({{"type":"file","oid":"{}","size":1,"path":"a"}})", kOid);
  EXPECT_THAT(Read(fmt::format("[{},{},7]", good, good)), HasSubstr("entry 3: it has no type"));
  EXPECT_THAT(Read(std::string(100'000, '[')), HasSubstr("it is not JSON"));
  EXPECT_LT(Read(File(fmt::format(R"("oid":"{}","path":"{}")", kOid, std::string(100'000, 'a')))).size(), 500U);
}

TEST(HubSiblings, AreReadAsTheTreeIs) {
  auto entries = ParseSiblings(fmt::format(R"({{"id":"a/b","sha":"x","tags":[[[[]]]],"siblings":[
    {{"rfilename":"a.json","size":5,"blobId":"{0}"}},
    {{"rfilename":"d/b","size":7,"blobId":"{0}","lfs":{{"sha256":"{1}","size":7,"pointerSize":134}}}}]}})",
                                           kOid, kSha256));
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2U);
  const Entry &first = (*entries)[0], &second = (*entries)[1];
  EXPECT_EQ(fmt::format("{} {} {}", first.path, first.size, Describe(*first.expected)),
            fmt::format("a.json 5 git-blob:{}", kOid));
  EXPECT_EQ(fmt::format("{} {} {}", second.key, second.size, Describe(*second.expected)),
            fmt::format("d/b 7 sha256:{}", kSha256));
  const struct {
    std::string_view json, error;
  } rows[] = {
      {"<html>", "it is not JSON"},
      {"{}", "it has no siblings"},
      {R"({"siblings":{}})", "it is not a JSON array"},
      {R"({"siblings":[7]})", "entry 1: it has no rfilename"},
      {R"({"siblings":[{"rfilename":"a"}]})", "entry 1: 'a': it has no size"},
      {R"({"siblings":[{"rfilename":"a","size":1}]})", "entry 1: 'a': it has no blobId"},
      {R"({"siblings":[{"rfilename":"a","size":1,"lfs":{"size":1}}]})", "entry 1: 'a': it has no sha256"},
  };
  for (const auto& row : rows) EXPECT_THAT(Message(ParseSiblings(row.json).status()), HasSubstr(row.error)) << row.json;
}

TEST(HubLink, ToTheNextPage) {
  const struct {
    std::string_view link, next;
  } rows[] = {
      {R"(<https://huggingface.co/api/models/a/b/tree/main?cursor=ZXlK%3D&limit=1000>; rel="next")",
       "https://huggingface.co/api/models/a/b/tree/main?cursor=ZXlK%3D&limit=1000"},
      {R"(</x>; rel="prev", </y?a,b;c>; title="a, <b>; rel=\"next"; rel=next)", "/y?a,b;c"},
      {R"(</x>; rel="prev next")", "/x"},
      {R"(</x> ; REL = "Next")", "/x"},
      {R"(</x>; rel="first", </z>; rel="last")", ""},
      {R"(</x>; title="rel=next")", ""},
      {R"(</x>; title="; rel=next")", ""},
      {"<>; rel=next", ""},
      {"</x", ""},
      {"", ""},
      {"</x>", ""},
      {"/x; rel=next", ""},
  };
  for (const auto& row : rows) EXPECT_EQ(NextLink(row.link).value_or(""), row.next) << row.link;
}

using Headers = std::vector<std::pair<std::string, std::string>>;

// "kind code pause: message"
std::string Judge(int status, const Headers& headers, bool with_token, std::string_view body = "") {
  const http::Refusal refusal = RefusalOfHub(http::ResponseHead{status, headers, "https://hub/api/x?y=z"}, body,
                                             "hf://a/b", with_token, 1'800'000'000);
  constexpr std::string_view kKinds[] = {"transient", "throttled", "changed", "fatal"};
  const double pause = refusal.asked ? std::chrono::duration<double>(*refusal.asked).count() : -1;
  return fmt::format("{} {} {}: {}", kKinds[static_cast<int>(refusal.kind)],
                     absl::StatusCodeToString(refusal.status.code()), pause, Message(refusal.status));
}

TEST(HubRefusal, SaysWhatToDo) {
  const struct {
    int status;
    Headers headers;
    bool with_token;
    std::string_view start, remedy;
  } rows[] = {
      {404,
       {},
       false,
       "fatal NOT_FOUND -1: hf://a/b: 404 for 'https://hub/api/x'; ",
       "a mirror has to have the hub's API"},
      {405,
       {},
       false,
       "fatal FAILED_PRECONDITION -1: hf://a/b: 405; 'https://hub/api/x' is not served there",
       "or a mirror that has its API"},
      {501,
       {},
       true,
       "fatal FAILED_PRECONDITION -1: hf://a/b: 501; 'https://hub/api/x' is not served there",
       "HF_ENDPOINT"},
      {401,
       {{"x-error-code", "RepoNotFound"}, {"x-error-message", "Invalid username or password."}},
       false,
       "fatal NOT_FOUND -1: hf://a/b: 401 'RepoNotFound': 'Invalid username or password.'",
       "if it is private, set HF_TOKEN"},
      {404,
       {{"x-error-code", "RepoNotFound"}},
       true,
       "fatal NOT_FOUND -1: hf://a/b: 404 'RepoNotFound'",
       "that the token may read it"},
      {404, {{"x-error-code", "RevisionNotFound"}}, false, "fatal NOT_FOUND", "a branch, a tag or a commit"},
      {404, {{"x-error-code", "EntryNotFound"}}, false, "fatal NOT_FOUND", "no such file at this revision"},
      {404, {}, false, "fatal NOT_FOUND", "the endpoint (HF_ENDPOINT)"},
      {401, {{"x-error-code", "GatedRepo"}}, false, "fatal PERMISSION_DENIED", "then set HF_TOKEN (or ACCESS_TOKEN)"},
      {403, {{"x-error-code", "GatedRepo"}}, true, "fatal PERMISSION_DENIED", "ask for access on its page"},
      {401,
       {{"x-error-message", "Invalid credentials in Authorization header"}},
       true,
       "fatal PERMISSION_DENIED -1: hf://a/b: 401: 'Invalid credentials in Authorization header'",
       "renew it"},
      {401, {}, false, "fatal PERMISSION_DENIED", "set HF_TOKEN"},
      {403, {}, true, "fatal PERMISSION_DENIED", "what the token may read"},
      {403,
       {{"x-error-message", "Access to this resource is disabled."}},
       true,
       "fatal FAILED_PRECONDITION",
       "disabled it"},
      {403, {{"x-error-code", "DisabledRepo"}}, false, "fatal FAILED_PRECONDITION", "disabled it"},
      {400, {}, false, "fatal FAILED_PRECONDITION -1: hf://a/b: 400", ""},
      {302, {}, false, "fatal FAILED_PRECONDITION -1: hf://a/b: 302", ""},
      {429, {{"ratelimit", R"("api";r=0;t=36)"}}, false, "throttled UNAVAILABLE 37", "higher with a token"},
      {429, {{"ratelimit", R"("api";r=0;t=36)"}, {"retry-after", "50"}}, true, "throttled UNAVAILABLE 50", "used up"},
      {429, {{"ratelimit", R"("api";r=0;t=60)"}, {"retry-after", "50"}}, true, "throttled UNAVAILABLE 61", ""},
      {429, {{"retry-after", "7"}}, true, "throttled UNAVAILABLE 7", ""},
      {429, {}, true, "throttled UNAVAILABLE -1", ""},
      {503, {{"retry-after", "2"}}, true, "throttled UNAVAILABLE 2", ""},
      {500, {}, true, "transient UNAVAILABLE -1", ""},
      {504, {{"x-error-code", "RepoNotFound"}}, true, "transient UNAVAILABLE", ""},
      {408, {}, true, "transient UNAVAILABLE", ""},
  };
  for (const auto& row : rows) {
    const std::string text = Judge(row.status, row.headers, row.with_token);
    EXPECT_THAT(text, ::testing::StartsWith(row.start));
    EXPECT_THAT(text, HasSubstr(row.remedy));
  }
}

TEST(HubRefusal, OutsideTextIsOneShortLine) {
  EXPECT_THAT(Judge(400, {}, false, R"({"error":"Bad\nrequest"})"), HasSubstr(R"(400: 'Bad\x0arequest')"));
  EXPECT_THAT(Judge(400, {{"x-error-message", "first"}}, false, R"({"error":"second"})"), Not(HasSubstr("second")));
  EXPECT_THAT(Judge(400, {}, false, "<html>\n"), Not(HasSubstr("html")));
  EXPECT_LT(
      Judge(400, {{"x-error-code", std::string(9000, 'a')}, {"x-error-message", std::string(9000, 'b')}}, false).size(),
      600U);
}

}  // namespace
}  // namespace muster::initializers
