// SPDX-License-Identifier: Apache-2.0
// An informer with its client, against a server that cuts connections, refuses, and expires versions.
#include "controller/kube/client/informer.h"

#include <gmock/gmock.h>

#include <optional>

#include "tests/controller/kube/protobuf_writer.h"
#include "tests/controller/kube/script_server.h"

namespace muster::controller {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using Reply = ScriptServer::Reply;

const Resource kPods{"v1", "pods"};

std::string Pod(const std::string& name, const std::string& version, const std::string& phase = "Running") {
  return WriteJson(Json{{"kind", "Pod"},
                        {"metadata", {{"namespace", "ns"}, {"name", name}, {"resourceVersion", version}}},
                        {"status", {{"phase", phase}}}});
}
std::string Event(const std::string& type, const std::string& object) {
  return fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", type, object);
}
Reply Page(const std::vector<std::string>& items, const std::string& version, const std::string& more = "") {
  return {
      .body = fmt::format(
          R"({{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})",
          version, more, Join(items, ","))};
}

class InformerTest : public testing::Test {
 protected:
  // As Stream. The server refuses streams first, as one that has none.
  void Begin(std::vector<Reply> replies, size_t longest_answer = size_t{1} << 20) {
    replies.insert(replies.begin(), ScriptServer::Refusal(422, "Invalid"));
    Stream(std::move(replies), longest_answer);
  }
  // The server answers each request by the next one of `replies`. After the last it sends nothing.
  void Stream(std::vector<Reply> replies, size_t longest_answer = size_t{1} << 20) {
    replies_ = std::move(replies);
    server_.emplace(loop_, [this](const ScriptServer::Asked&) {
      return next_ < replies_.size() ? replies_[next_++] : Reply{.then = Reply::Then::kStay};
    });
    client_.emplace(loop_, server_->access(), ApiClient::Options{.longest_answer = longest_answer});
    informer_.emplace(loop_, *client_, kPods, "ns", "app in (a,b)",
                      Informer::Events{.put = [this](const ObjectView& pod) { Put(pod); },
                                       .gone = [this](const GoneObject& gone) { Gone(gone.ns + "/" + gone.name); },
                                       .synced = [this] { told_.push_back("synced"); },
                                       .say = [this](const std::string& text) { said_.push_back(text); }});
    informer_->Begin();
  }

  // Keeps each pod's phase. A pod of phase "bad" counts as unreadable and is not kept.
  void Put(const ObjectView& pod) {
    const std::string key = pod.Part("metadata").Text("namespace") + "/" + pod.Part("metadata").Text("name");
    const std::string phase = pod.Part("status").Text("phase");
    if (phase == "bad") {
      told_.push_back(phase);
      return Gone(key);
    }
    kept_[key] = phase;
    told_.push_back("put " + phase);
  }
  void Gone(const std::string& key) {
    if (const auto last = kept_.extract(key); !last.empty()) told_.push_back("gone " + last.mapped());
  }

  boost::asio::io_context loop_;
  std::vector<Reply> replies_;
  size_t next_ = 0;
  std::optional<ScriptServer> server_;
  std::optional<ApiClient> client_;
  std::optional<Informer> informer_;
  std::map<std::string, std::string> kept_;  // by "namespace/name"
  std::vector<std::string> told_, said_;
};

TEST_F(InformerTest, ListsFewerAtATimeWhereAPageIsTooLong) {
  Begin({{.body = std::string(2000, ' ')}, Page({Pod("a", "1", "A")}, "10")}, 1000);
  EXPECT_TRUE(RunUntil(loop_, [&] { return informer_->synced(); }));
  EXPECT_THAT(told_, ElementsAre("put A", "synced"));
  EXPECT_THAT(server_->lines()[1], HasSubstr("limit=500&"));
  EXPECT_THAT(server_->lines()[2], HasSubstr("limit=62&"));
}

TEST_F(InformerTest, KeepsInStep) {
  const std::string added = Event("ADDED", Pod("c", "11", "Pending")),
                    changed = Event("MODIFIED", Pod("c", "12", "Failed"));
  Begin({
      Page({Pod("a", "1", "A")}, "10", "more of/it"),
      Page({Pod("b", "2", "B")}, "10"),
      // The watch is cut in the middle of a line.
      {.chunks = {added.substr(0, 20), added.substr(20), changed.substr(0, 30)}, .then = Reply::Then::kCut},
      {.chunks = {changed, Event("BOOKMARK", R"({"metadata":{"resourceVersion":"20"}})")}},
      // The version has expired.
      {.chunks = {Event("ERROR", R"({"kind":"Status","code":410,"reason":"Expired"})")}},
      ScriptServer::Refusal(429, "TooManyRequests", "Retry-After: 0\r\n"),
      Page({Pod("b", "2", "B"), Pod("c", "25", "Done")}, "30"),
      {.chunks = {Event("DELETED", Pod("b", "31")), Event("ADDED", Pod("d", "32", "bad"))}, .then = Reply::Then::kStay},
  });
  EXPECT_FALSE(informer_->synced());
  EXPECT_TRUE(RunUntil(loop_, [&] { return told_.size() >= 9; }));
  EXPECT_TRUE(informer_->synced());
  EXPECT_THAT(told_, ElementsAre("put A", "put B", "synced", "put Pending", "put Failed", "put Done", "gone A",
                                 "gone B", "bad"));
  EXPECT_THAT(said_, IsEmpty());
  EXPECT_EQ(kept_, (std::map<std::string, std::string>{{"ns/c", "Done"}}));
  EXPECT_FALSE(kept_.contains("ns/b"));
  EXPECT_EQ(kept_["ns/c"], "Done");

  const std::string selector = "labelSelector=app%20in%20%28a%2Cb%29";
  std::vector<std::string> lines = server_->lines();
  lines.erase(lines.begin());
  ASSERT_EQ(lines.size(), 8U);
  const std::string path = "GET /api/v1/namespaces/ns/pods?";
  EXPECT_EQ(lines[0], path + "limit=500&" + selector);
  EXPECT_EQ(lines[1], path + "limit=500&" + selector + "&continue=more%20of%2Fit");
  for (const auto& [at, version] : std::map<int, std::string>{{2, "10"}, {3, "11"}, {4, "20"}, {7, "30"}}) {
    EXPECT_THAT(lines[at], StartsWith(path + "watch=true&allowWatchBookmarks=true&timeoutSeconds="));
    EXPECT_TRUE(lines[at].ends_with("&resourceVersion=" + version + "&" + selector)) << lines[at];
  }
  EXPECT_EQ(lines[5], lines[0]);
  EXPECT_EQ(lines[6], lines[0]);
}

TEST_F(InformerTest, KeepsInStepByProtobuf) {
  const auto pod = [](const std::string& name, const std::string& version, const std::string& phase) {
    Json json = Json::parse(Pod(name, version, phase));
    json["apiVersion"] = "v1";
    return json;
  };
  const auto frame = [&](const std::string& type, const Json& object) {
    return protobuf::Frame(protobuf::Event(type, protobuf::Object(object)));
  };
  const auto page = [&](const std::vector<Json>& items, const std::string& version) {
    const Json list = {
        {"apiVersion", "v1"}, {"kind", "PodList"}, {"metadata", {{"resourceVersion", version}}}, {"items", items}};
    return Reply{.type = kProtobufType, .body = protobuf::Object(list)};
  };
  const auto watch = [](std::vector<std::string> frames, Reply::Then then = Reply::Then::kEnd) {
    return Reply{.type = fmt::format("{};stream=watch", kProtobufType), .chunks = std::move(frames), .then = then};
  };
  const std::string added = frame("ADDED", pod("c", "11", "Pending")),
                    changed = frame("MODIFIED", pod("c", "12", "Failed"));
  Begin({
      page({pod("a", "1", "A"), pod("b", "2", "B")}, "10"),
      // The watch is cut in the middle of a frame.
      watch({added.substr(0, 20), added.substr(20), changed.substr(0, 30)}, Reply::Then::kCut),
      watch({changed}),
      watch({frame("ERROR", {{"apiVersion", "v1"}, {"kind", "Status"}, {"code", 410}, {"reason", "Expired"}})}),
      page({pod("b", "2", "B"), pod("c", "25", "Done")}, "30"),
      watch({std::string("\xff\xff\xff\xff", 4)}, Reply::Then::kStay),  // 4 GiB
      Page({Pod("c", "25", "Done"), Pod("d", "26", "D")}, "40"),        // a server that has no protobuf any more
      {.chunks = {Event("DELETED", Pod("d", "41"))}, .then = Reply::Then::kStay},
  });
  EXPECT_TRUE(RunUntil(loop_, [&] { return told_.size() >= 10; }));
  EXPECT_THAT(told_, ElementsAre("put A", "put B", "synced", "put Pending", "put Failed", "put Done", "gone A", "put D",
                                 "gone B", "gone D"));
  EXPECT_THAT(said_, ElementsAre(HasSubstr("a line of the watch is not an event"), "pods: up to date again"));
  EXPECT_THAT(server_->lines()[3], HasSubstr("resourceVersion=11"));
}

TEST_F(InformerTest, KeepsInStepByAStream) {
  const std::string mark =
      R"({"metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}})";
  Stream({
      {.chunks = {Event("ADDED", Pod("a", "9", "A")), Event("ADDED", Pod("b", "2", "B")), Event("BOOKMARK", mark),
                  Event("MODIFIED", Pod("a", "11", "C"))}},
      {.chunks = {Event("DELETED", Pod("b", "12"))}, .then = Reply::Then::kStay},
  });
  EXPECT_TRUE(RunUntil(loop_, [&] { return told_.size() >= 5; }));
  EXPECT_THAT(told_, ElementsAre("put A", "put B", "synced", "put C", "gone B"));
  EXPECT_THAT(said_, IsEmpty());
  const std::vector<std::string> lines = server_->lines();
  EXPECT_THAT(lines[0], StartsWith("GET /api/v1/namespaces/ns/pods?watch=true&allowWatchBookmarks=true&"));
  EXPECT_TRUE(
      lines[0].ends_with("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                         "&labelSelector=app%20in%20%28a%2Cb%29"))
      << lines[0];
  EXPECT_THAT(lines[1], HasSubstr("&resourceVersion=11&"));
}

TEST_F(InformerTest, GoesOnAfterAnOutage) {
  Begin({
      ScriptServer::Refusal(500, "InternalError"),
      Page({Pod("a", "1", "A")}, "10"),
      ScriptServer::Refusal(410, "Expired"),
      Page({Pod("a", "1", "A")}, "11"),
      {.chunks = {Event("MODIFIED", Pod("a", "12", "B"))}, .then = Reply::Then::kStay},
  });
  EXPECT_TRUE(RunUntil(loop_, [&] { return told_.size() >= 3; }));
  EXPECT_THAT(told_, ElementsAre("put A", "synced", "put B"));
  EXPECT_THAT(said_, Contains(HasSubstr("500 'InternalError'")));
  EXPECT_THAT(said_, Contains("pods: up to date again"));
}

TEST_F(InformerTest, WhatBecomesUnreadableIsGone) {
  Begin({Page({Pod("a", "1", "A"), Pod("b", "1", "B")}, "10"),
         {.chunks = {Event("MODIFIED", Pod("a", "11", "bad")), Event("DELETED", Pod("a", "12", "bad"))},
          .then = Reply::Then::kStay}});
  EXPECT_TRUE(RunUntil(loop_, [&] { return told_.size() >= 5; }));
  EXPECT_THAT(told_, ElementsAre("put A", "put B", "synced", "bad", "gone A"));
  EXPECT_THAT(kept_, UnorderedElementsAre(testing::Pair("ns/b", "B")));
}

TEST(Informer, ACallbackMayEndIt) {
  boost::asio::io_context loop;
  ScriptServer server(loop, [](const ScriptServer::Asked& asked) {
    if (asked.target.find("watch=") != std::string::npos) return ScriptServer::Refusal(422, "Invalid");
    return Page({Pod("a", "1"), Pod("b", "2")}, "10");
  });
  ApiClient client(loop, server.access(), {});
  std::optional<Informer> informer;
  int told = 0;
  informer.emplace(loop, client, kPods, "", "",
                   Informer::Events{.put =
                                        [&](const ObjectView&) {
                                          ++told;
                                          informer.reset();
                                        },
                                    .gone = [](const GoneObject&) {},
                                    .synced = [] { FAIL(); },
                                    .say = [](const std::string&) {}});
  informer->Begin();
  EXPECT_TRUE(RunUntil(loop, [&] { return told > 0; }));
  loop.restart();
  loop.poll();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(server.asked().size(), 2U);
}

}  // namespace
}  // namespace muster::controller
