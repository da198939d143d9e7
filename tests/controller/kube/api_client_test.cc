// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/api_client.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "controller/api/lenient.h"
#include "tests/controller/kube/protobuf_writer.h"
#include "tests/controller/kube/script_server.h"

namespace muster::controller {
namespace {

using absl::StatusCode;
using Grace = ApiClient::Grace;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Reply = ScriptServer::Reply;

const Resource kPods{"v1", "pods"}, kJobs{"batch/v1", "jobs"};

class ApiClientTest : public testing::Test {
 protected:
  void Begin(ScriptServer::Script script, ClusterAccess access = {}, ApiClient::Options options = {}) {
    server_.emplace(loop_, std::move(script));
    access.server = server_->access().server;
    client_.emplace(loop_, std::move(access), options);
  }
  ApiClient::Done Keep() {
    return [this](StatusOr<Json> answer) {
      EXPECT_FALSE(answer_) << "called twice";
      answer_ = std::move(answer);
    };
  }
  StatusOr<Json> Heard() {
    EXPECT_TRUE(RunUntil(loop_, [this] { return answer_.has_value(); }));
    const StatusOr<Json> answer = answer_.value_or(absl::UnknownError("nothing was heard"));
    answer_.reset();
    return answer;
  }

  boost::asio::io_context loop_;
  std::optional<ScriptServer> server_;
  std::optional<ApiClient> client_;
  std::optional<StatusOr<Json>> answer_;
};

TEST_F(ApiClientTest, AsksInTheWordsOfTheApi) {
  ClusterAccess access;
  access.token = "abc";
  Begin([](const ScriptServer::Asked&) { return ScriptServer::Of(200, {{"kind", "Answer"}}); }, access);
  const Json object = {{"a", 1}};
  const struct {
    std::function<ApiClient::Handle()> ask;
    std::string_view line, content_type, body;
  } rows[] = {
      {[&] { return client_->Get(kPods, "ns", "p", Keep()); }, "GET /api/v1/namespaces/ns/pods/p", "", ""},
      {[&] { return client_->List(kPods, "", "limit=2&continue=x", Keep()); }, "GET /api/v1/pods?limit=2&continue=x",
       "", ""},
      {[&] { return client_->Create(kJobs, "ns", object, Keep()); },
       "POST /apis/batch/v1/namespaces/ns/jobs?fieldManager=muster", "application/json", R"({"a":1})"},
      {[&] { return client_->Apply(kJobs, "ns", "j", "status", object, Keep()); },
       "PATCH /apis/batch/v1/namespaces/ns/jobs/j/status?fieldManager=muster&force=true",
       "application/apply-patch+yaml", R"({"a":1})"},
      {[&] { return client_->Merge(kJobs, "ns", "j", "", object, Keep()); },
       "PATCH /apis/batch/v1/namespaces/ns/jobs/j?fieldManager=muster", "application/merge-patch+json", R"({"a":1})"},
      {[&] { return client_->Replace(kJobs, "ns", "j", object, Keep()); },
       "PUT /apis/batch/v1/namespaces/ns/jobs/j?fieldManager=muster", "application/json", R"({"a":1})"},
      {[&] { return client_->Delete(kJobs, "ns", "j", "", Grace::kOwn, Keep()); },
       "DELETE /apis/batch/v1/namespaces/ns/jobs/j", "application/json",
       R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"})"},
      {[&] { return client_->Delete(kJobs, "ns", "j", "u1", Grace::kNone, Keep()); },
       "DELETE /apis/batch/v1/namespaces/ns/jobs/j", "application/json",
       R"({"apiVersion":"v1","gracePeriodSeconds":0,"kind":"DeleteOptions","preconditions":{"uid":"u1"},"propagationPolicy":"Background"})"},
  };
  for (const auto& row : rows) {
    const auto handle = row.ask();
    EXPECT_FALSE(answer_) << "before the call returned";
    const auto answer = Heard();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ((*answer)["kind"], "Answer");
    const ScriptServer::Asked& asked = server_->asked().back();
    EXPECT_EQ(asked.line(), row.line);
    EXPECT_EQ(asked.content_type, row.content_type);
    EXPECT_EQ(asked.body, row.body);
    EXPECT_EQ(asked.authorization, "Bearer abc");
  }
  const ApiClient::Counts& counts = client_->counts();
  EXPECT_EQ(counts.reads, 2U);
  EXPECT_EQ(counts.writes, 6U);
  EXPECT_EQ(counts.failed, 0U);
  EXPECT_EQ(
      counts.writes_by_kind,
      (std::map<std::string, uint64_t>{
          {"apply jobs/status", 1}, {"create jobs", 1}, {"delete jobs", 2}, {"patch jobs", 1}, {"replace jobs", 1}}));
}

TEST_F(ApiClientTest, TellsErrorsAsTypes) {
  const struct {
    Reply reply;
    StatusCode code;
    std::string_view told;
  } rows[] = {
      {ScriptServer::Refusal(404, "NotFound"), StatusCode::kNotFound,
       "GET /api/v1/namespaces/ns/pods/p: 404 'NotFound'"},
      {ScriptServer::Refusal(409, "Conflict"), StatusCode::kAborted, "'no'"},
      {ScriptServer::Refusal(429, "TooManyRequests"), StatusCode::kUnavailable, "429"},
      {ScriptServer::Refusal(503, "", "Retry-After: 100000\r\n"), StatusCode::kUnavailable, "503"},
      {ScriptServer::Refusal(401, "Unauthorized"), StatusCode::kUnauthenticated, "401"},
      {{.body = "<html>"}, StatusCode::kFailedPrecondition, "the answer is not JSON"},
      {{.body = std::string(300, '[')},
       StatusCode::kFailedPrecondition,
       "GET /api/v1/namespaces/ns/pods/p: the answer"},
      {{.body = std::string(2000, ' ')}, StatusCode::kFailedPrecondition, "longer than 1000 bytes"},
      {{.chunks = {"{"}, .then = Reply::Then::kCut}, StatusCode::kUnavailable, "GET /api/v1/namespaces/ns/pods/p: "},
  };
  Reply next;
  Begin([&](const ScriptServer::Asked&) { return next; }, {}, {.longest_answer = 1000});
  uint64_t failed = 0;
  for (const auto& row : rows) {
    next = row.reply;
    const auto handle = client_->Get(kPods, "ns", "p", Keep());
    const auto answer = Heard();
    EXPECT_EQ(answer.status().code(), row.code) << answer.status();
    EXPECT_THAT(std::string(Message(answer.status())), HasSubstr(std::string(row.told)));
    EXPECT_EQ(client_->counts().failed, ++failed);
  }
  EXPECT_EQ(server_->asked().size(), std::size(rows));
  server_->Stop();
  const auto handle = client_->Get(kPods, "ns", "p", Keep());
  EXPECT_EQ(Heard().status().code(), StatusCode::kUnavailable);
}

TEST_F(ApiClientTest, WhatGotNoAnswerIsAskedOnceMore) {
  std::vector<Reply::Then> then;
  Begin([&then](const ScriptServer::Asked&) {
    Reply reply = ScriptServer::Of(200, {{"kind", "Answer"}});
    reply.then = then.front();
    then.erase(then.begin());
    return reply;
  });
  using enum Reply::Then;
  then = {kSilent, kEnd};
  auto handle = client_->Replace(kPods, "ns", "p", Json::object(), Keep());
  EXPECT_TRUE(Heard().ok());
  then = {kEnd, kSilent, kSilent, kEnd};
  handle = client_->Get(kPods, "ns", "p", Keep());  // leaves an idle connection
  EXPECT_TRUE(Heard().ok());
  handle = client_->Create(kPods, "ns", Json::object(), Keep());
  const auto created = Heard();
  // The second kSilent: libcurl itself sends a request again if an idle connection brings no answer.
  EXPECT_TRUE(absl::IsUnavailable(created.status())) << created.status();
  then = {kSilent, kSilent};
  handle = client_->Get(kPods, "ns", "p", Keep());
  EXPECT_TRUE(absl::IsUnavailable(Heard().status())) << "only once";
}

TEST_F(ApiClientTest, WhatIsTooDeepIsLeftOut) {
  Begin([](const ScriptServer::Asked&) {
    return Reply{.body =
                     fmt::format(R"({{"kind":"Answer","x":{}1{}}})", std::string(5000, '['), std::string(5000, ']'))};
  });
  const auto handle = client_->Get(kPods, "ns", "p", Keep());
  const auto answer = Heard();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["kind"], "Answer");
  EXPECT_LT(WriteJson(*answer).size(), 600U);
}

// A pod is made from the template of a Job that Get() has brought. A list is for the caches.
TEST_F(ApiClientTest, OnlyListsComeWithoutWhatNoCodeReads) {
  const Json container = {{"name", "node"}, {"command", {"train"}}, {"env", {{{"name", "A"}, {"value", "b"}}}}};
  const Json spec = {{"template", {{"spec", {{"containers", {container}}}}}}};
  const Json job = {{"metadata", {{"name", "j"}, {"managedFields", {1}}}}, {"spec", spec}};
  Begin([&](const ScriptServer::Asked& asked) {
    const bool one = asked.line().find("/jobs/j") != std::string::npos;
    return ScriptServer::Of(200, one ? job : Json{{"items", {job}}});
  });
  const auto one = client_->Get(kJobs, "ns", "j", Keep());
  EXPECT_EQ(*Heard(), (Json{{"metadata", {{"name", "j"}}}, {"spec", spec}}));
  const auto all = client_->List(kJobs, "ns", "", Keep());
  const Json listed = Heard()->at("items").at(0);
  EXPECT_EQ(listed["metadata"], (Json{{"name", "j"}}));
  EXPECT_EQ(listed["spec"]["template"]["spec"]["containers"], (Json::array({Json{{"name", "node"}}})));
}

TEST_F(ApiClientTest, ListsOfPodsAndJobsComeInProtobuf) {
  const Json list = {{"apiVersion", "v1"},
                     {"kind", "PodList"},
                     {"metadata", {{"resourceVersion", "7"}}},
                     {"items", {{{"metadata", {{"name", "a"}}}}}}};
  const struct {
    const Resource& resource;
    Reply reply;
    std::string wanted;  // "a": the pod; else the error
  } rows[] = {
      {kPods, {.type = kProtobufType, .body = protobuf::Object(list)}, "a"},
      {kPods, {.body = WriteJson(list)}, "a"},  // a server without it
      {kTrainJobs, {.body = WriteJson(list)}, "a"},
      {kPods, {.type = kProtobufType, .body = "{}"}, "GET /api/v1/pods: the answer: it is not an object in "},
      {kPods,
       {.type = kProtobufType, .body = protobuf::Envelope("v1", "SecretList", "")},
       "it is of kind 'SecretList'"},
  };
  for (const auto& row : rows) {
    Begin([&](const ScriptServer::Asked&) { return row.reply; });
    const auto handle = client_->List(row.resource, "", "", Keep());
    const auto heard = Heard();
    EXPECT_THAT(heard.ok() ? NameOf((*heard)["items"][0]) : std::string(Message(heard.status())),
                HasSubstr(row.wanted));
    EXPECT_EQ(absl::IsFailedPrecondition(heard.status()), row.wanted != "a");  // the informer asks for smaller pages
    EXPECT_EQ(server_->asked()[0].accept,
              row.resource == kPods ? "application/vnd.kubernetes.protobuf, application/json" : "application/json");
  }
}

TEST_F(ApiClientTest, ComesBackWhenItIsToldTo) {
  std::vector<Reply> replies = {ScriptServer::Refusal(429, "TooManyRequests", "Retry-After: 0\r\n"),
                                ScriptServer::Refusal(503, "", "Retry-After: 1\r\n"),
                                ScriptServer::Of(201, {{"made", true}})};
  size_t at = 0;
  Begin([&](const ScriptServer::Asked&) { return replies[at++]; });
  const auto handle = client_->Create(kJobs, "ns", {{"a", 1}}, Keep());
  const auto answer = Heard();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["made"], true);
  EXPECT_EQ(server_->asked().size(), 3U);
  EXPECT_EQ(server_->asked().back().body, R"({"a":1})");
  EXPECT_EQ(client_->counts().throttled, 2U);
  EXPECT_EQ(client_->counts().writes, 1U);
}

// With this rate limit a second write would wait for hours.
TEST_F(ApiClientTest, ALeaseDoesNotWaitBehindOtherWrites) {
  const Resource leases{"coordination.k8s.io/v1", "leases"};
  Begin(
      [](const ScriptServer::Asked&) {
        return ScriptServer::Of(200, {{"kind", "Answer"}});
      },
      {}, {.writes_per_second = 0.0001, .burst = 1});
  const auto first = client_->Create(kPods, "ns", Json::object(), Keep());
  ASSERT_TRUE(Heard().ok());
  const auto waits = client_->Create(kPods, "ns", Json::object(), Keep());
  const auto lease = client_->Replace(leases, "ns", "l", Json::object(), Keep());
  ASSERT_TRUE(Heard().ok());
  EXPECT_THAT(server_->lines(),
              ElementsAre("POST /api/v1/namespaces/ns/pods?fieldManager=muster",
                          "PUT /apis/coordination.k8s.io/v1/namespaces/ns/leases/l?fieldManager=muster"));
}

TEST_F(ApiClientTest, ARefusedTokenIsReadAgain) {
  std::string folder = testing::TempDir() + "/api-client-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ClusterAccess access;
  access.token_file = folder + "/token";
  std::ofstream(access.token_file) << "old\n";
  Begin(
      [&](const ScriptServer::Asked& asked) {
        if (asked.authorization == "Bearer new") return ScriptServer::Of(200, Json::object());
        std::ofstream(access.token_file) << "new\n";
        return ScriptServer::Refusal(401, "Unauthorized");
      },
      access);
  auto handle = client_->Get(kPods, "ns", "p", Keep());
  EXPECT_TRUE(Heard().ok());
  EXPECT_EQ(server_->asked().size(), 2U);
  std::filesystem::remove_all(folder);
  handle = client_->Get(kPods, "ns", "p", Keep());
  EXPECT_TRUE(Heard().ok()) << "the token is still held";
}

TEST_F(ApiClientTest, APluginIsRunAgainWhereItsTokenIsRefused) {
  std::string folder = testing::TempDir() + "/api-client-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ClusterAccess access;
  access.exec.emplace();
  access.exec->command = "sh";
  access.exec->api_version = "client.authentication.k8s.io/v1";
  access.exec->environment = {{"FOLDER", folder}};
  access.exec->arguments = {"-c",
                            R"(echo x >> "$FOLDER/runs"; echo "$KUBERNETES_EXEC_INFO" > "$FOLDER/info"
         echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t'$(wc -l < "$FOLDER/runs")'"}}')"};
  Begin(
      [](const ScriptServer::Asked& asked) {
        return asked.authorization == "Bearer t2" ? ScriptServer::Of(200, Json::object())
                                                  : ScriptServer::Refusal(401, "Unauthorized");
      },
      access);
  int heard = 0;
  std::vector<ApiClient::Handle> handles;
  for (int i = 0; i < 3; ++i) {
    handles.push_back(client_->Get(kPods, "ns", "p", [&](const StatusOr<Json>& answer) {
      EXPECT_TRUE(answer.ok()) << answer.status();
      ++heard;
    }));
  }
  EXPECT_TRUE(RunUntil(loop_, [&] { return heard == 3; }));
  std::string runs, info;
  std::getline(std::ifstream(folder + "/info"), info);
  EXPECT_EQ(std::filesystem::file_size(folder + "/runs"), 4U) << "two runs";
  EXPECT_THAT(info, HasSubstr(R"("kind":"ExecCredential")"));
  std::filesystem::remove_all(folder);
}

TEST_F(ApiClientTest, APluginsFailureIsTold) {
  const struct {
    std::string command, script, hint;
    std::string_view told;
  } rows[] = {
      {"sh", "echo log in first >&2; exit 3", "",
       "the credential plugin 'sh': it ended with 3 and said 'log in first'"},
      {"sh", "echo hello", "", "the credential plugin 'sh': its stdout is not a JSON object"},
      {"/nowhere/plugin", "", "get it at example", "No such file or directory; 'get it at example'"},
  };
  for (const auto& row : rows) {
    ClusterAccess access;
    access.exec = {.command = row.command,
                   .api_version = "client.authentication.k8s.io/v1",
                   .install_hint = row.hint,
                   .arguments = {"-c", row.script}};
    Begin([](const ScriptServer::Asked&) { return Reply{}; }, access);
    const auto handle = client_->Get(kPods, "ns", "p", Keep());
    const auto answer = Heard();
    EXPECT_EQ(answer.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(Message(answer.status())), HasSubstr(std::string(row.told)));
    EXPECT_THAT(std::string(Message(answer.status())), StartsWith("GET /api/v1/namespaces/ns/pods/p: "));
    EXPECT_THAT(server_->lines(), IsEmpty());
  }
}

TEST_F(ApiClientTest, ADroppedCallHearsNothing) {
  Begin([](const ScriptServer::Asked&) { return ScriptServer::Of(200, Json::object()); });
  auto dropped = client_->Create(kJobs, "ns", Json::object(), [](const StatusOr<Json>&) { FAIL(); });
  dropped.reset();
  client_->Get(kPods, "ns", "p", [](const StatusOr<Json>&) { FAIL(); }).reset();
  const auto kept = client_->Get(kPods, "ns", "q", Keep());
  EXPECT_TRUE(Heard().ok());
  EXPECT_THAT(server_->lines(), ElementsAre("GET /api/v1/namespaces/ns/pods/q"));
}

TEST_F(ApiClientTest, ACallbackMayEndTheClient) {
  Begin([](const ScriptServer::Asked&) { return ScriptServer::Of(200, Json::object()); });
  bool heard = false;
  ApiClient::Handle handle = client_->Get(kPods, "ns", "p", [&](const StatusOr<Json>&) {
    handle.reset();
    client_.reset();
    heard = true;
  });
  const auto other = client_->Get(kPods, "ns", "q", [&](const StatusOr<Json>&) { EXPECT_FALSE(heard); });
  EXPECT_TRUE(RunUntil(loop_, [&] { return heard; }));
  loop_.restart();
  loop_.poll();
}

class WatchTest : public ApiClientTest {
 protected:
  ApiClient::WatchEvents Events() {
    return {.line =
                [this](std::string_view line, bool whole, Encoding encoding) {
                  got_.push_back(fmt::format("{}{}{}", encoding == Encoding::kProtobuf ? "protobuf " : "", line,
                                             whole ? "" : "..."));
                },
            .end =
                [this](const Status& status) {
                  EXPECT_FALSE(end_) << "called twice";
                  end_ = status;
                }};
  }
  Status End() {
    EXPECT_TRUE(RunUntil(loop_, [this] { return end_.has_value(); }));
    return end_.value_or(absl::UnknownError("no end"));
  }
  std::vector<std::string> got_;
  std::optional<Status> end_;
};

TEST_F(WatchTest, LinesComeWholeWhereverTheyAreCut) {
  const std::string body = "{\"a\":1}\n{\"b\":2}\n{\"half";
  for (size_t cut = 0; cut <= body.size(); ++cut) {
    std::vector<std::string> chunks;
    if (cut > 0) chunks.push_back(body.substr(0, cut));
    if (cut < body.size()) chunks.push_back(body.substr(cut));
    for (const bool in_peace : {true, false}) {
      got_.clear();
      end_.reset();
      Begin([&](const ScriptServer::Asked&) {
        return Reply{.chunks = chunks, .then = in_peace ? Reply::Then::kEnd : Reply::Then::kCut};
      });
      const auto handle = client_->Watch(kPods, "ns", "resourceVersion=7", Events());
      const Status end = End();
      EXPECT_EQ(end.code(), in_peace ? StatusCode::kOk : StatusCode::kUnavailable) << end;
      EXPECT_THAT(got_, ElementsAre("{\"a\":1}", "{\"b\":2}")) << cut;
      EXPECT_THAT(server_->lines().at(0),
                  StartsWith("GET /api/v1/namespaces/ns/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds="));
      EXPECT_THAT(server_->lines().at(0), HasSubstr("&resourceVersion=7"));
    }
  }
}

TEST_F(WatchTest, LinesComeWhileItLasts) {
  Begin([&](const ScriptServer::Asked&) {
    return Reply{.chunks = {"{\"a\":1}\n{\"b\"", ":2}\n", "{"}, .then = Reply::Then::kStay};
  });
  auto handle = client_->Watch(kPods, "", "", Events());
  EXPECT_TRUE(RunUntil(loop_, [this] { return got_.size() == 2; }));
  EXPECT_FALSE(end_);
  handle.reset();
  EXPECT_EQ(client_->counts().watches, 1U);
}

TEST_F(WatchTest, ARefusalEndsIt) {
  const struct {
    Reply reply;
    StatusCode code;
  } rows[] = {
      {ScriptServer::Refusal(410, "Expired"), StatusCode::kOutOfRange},
      {ScriptServer::Refusal(403, "Forbidden"), StatusCode::kPermissionDenied},
  };
  for (const auto& row : rows) {
    end_.reset();
    Begin([&](const ScriptServer::Asked&) { return row.reply; });
    const auto handle = client_->Watch(kPods, "", "", Events());
    const Status end = End();
    EXPECT_EQ(end.code(), row.code) << end;
    EXPECT_THAT(std::string(Message(end)), StartsWith("GET /api/v1/pods: "));
  }
  EXPECT_THAT(got_, IsEmpty());
}

TEST_F(WatchTest, ALineThatIsTooLongIsCut) {
  Begin(
      [&](const ScriptServer::Asked&) {
        return Reply{.chunks = {std::string(2000, 'x'), "\n{}\n"}};
      },
      {}, {.longest_line = 5});
  const auto handle = client_->Watch(kPods, "", "", Events());
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(got_, ElementsAre("xxxxx...", "{}"));
}

TEST_F(WatchTest, FramesComeWholeWhereverTheyAreCut) {
  const std::string body = protobuf::Frame("one") + protobuf::Frame("two") + protobuf::Frame("half").substr(0, 6);
  for (size_t cut = 1; cut < body.size(); ++cut) {
    got_.clear();
    end_.reset();
    Begin([&](const ScriptServer::Asked&) {
      return Reply{.type = "application/vnd.kubernetes.protobuf;stream=watch",
                   .chunks = {body.substr(0, cut), body.substr(cut)},
                   .then = Reply::Then::kCut};
    });
    const auto handle = client_->Watch(kPods, "ns", "", Events());
    EXPECT_EQ(End().code(), StatusCode::kUnavailable);
    EXPECT_THAT(got_, ElementsAre("protobuf one", "protobuf two")) << cut;
  }
}

TEST_F(WatchTest, ComesBackWhenItIsToldTo) {
  Begin([&](const ScriptServer::Asked&) {
    return server_->asked().size() == 1 ? ScriptServer::Refusal(429, "TooManyRequests", "Retry-After: 0\r\n")
                                        : Reply{.chunks = {"{}\n"}};
  });
  const auto handle = client_->Watch(kPods, "", "", Events());
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(got_, ElementsAre("{}"));
}

TEST_F(WatchTest, ALineMayEndIt) {
  Begin([&](const ScriptServer::Asked&) { return Reply{.chunks = {"{}\n{}\n{}\n"}}; });
  ApiClient::Handle handle = client_->Watch(kPods, "", "",
                                            {.line =
                                                 [&](std::string_view line, bool, Encoding) {
                                                   got_.emplace_back(line);
                                                   handle.reset();
                                                 },
                                             .end = [](const Status&) { FAIL(); }});
  EXPECT_TRUE(RunUntil(loop_, [this] { return !got_.empty(); }));
  const auto other = client_->Get(kPods, "ns", "p", Keep());
  EXPECT_FALSE(Heard().ok());
  EXPECT_EQ(got_.size(), 1U);
}

}  // namespace
}  // namespace muster::controller
