// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/event_recorder.h"

#include <gmock/gmock.h>

#include <optional>

#include "tests/controller/kube/script_server.h"

namespace muster::controller {
namespace {

using testing::StartsWith;

const WallTime kWall = WallTime(std::chrono::seconds(1'000'000'000));

class EventRecorderTest : public testing::Test {
 protected:
  void Begin(std::vector<ScriptServer::Reply> replies) {
    replies_ = std::move(replies);
    server_.emplace(loop_, [this](const ScriptServer::Asked&) {
      return next_ < replies_.size() ? replies_[next_++] : ScriptServer::Of(200, Json::object());
    });
    client_.emplace(loop_, server_->access(), ApiClient::Options{});
    recorder_.emplace(loop_, *client_, "muster-controller");
  }
  void Record(const std::string& message) {
    Meta about;
    about.ns = "ns";
    about.name = "job";
    about.uid = "u";
    recorder_->Record("trainer.kubeflow.org/v1alpha1", "TrainJob", about, false, "Reason", message, kWall);
  }
  const ScriptServer::Asked& Wait(size_t requests) {
    EXPECT_TRUE(RunUntil(loop_, [&] { return server_->asked().size() >= requests; }));
    return server_->asked().at(requests - 1);
  }

  boost::asio::io_context loop_;
  std::vector<ScriptServer::Reply> replies_;
  size_t next_ = 0;
  std::optional<ScriptServer> server_;
  std::optional<ApiClient> client_;
  std::optional<EventRecorder> recorder_;
};

TEST_F(EventRecorderTest, WritesRepetitionsAsACount) {
  Begin({});
  Record("one");
  Record("one");
  Record("one");
  const ScriptServer::Asked first = Wait(1);
  EXPECT_EQ(first.line(), "POST /api/v1/namespaces/ns/events?fieldManager=muster");
  EXPECT_EQ(first.json()["involvedObject"]["kind"], "TrainJob");
  const std::string name = first.json()["metadata"]["name"];
  EXPECT_EQ(first.json()["count"], 1);
  const ScriptServer::Asked second = Wait(2);
  EXPECT_EQ(second.line(), "PATCH /api/v1/namespaces/ns/events/" + name + "?fieldManager=muster");
  EXPECT_EQ(second.json()["count"], 3);
}

TEST_F(EventRecorderTest, RecreatesAnEventThatTheClusterHasDeleted) {
  Begin({ScriptServer::Of(201, Json::object()), ScriptServer::Refusal(404, "NotFound")});
  Record("one");
  Record("one");
  EXPECT_THAT(Wait(1).line(), StartsWith("POST "));
  EXPECT_THAT(Wait(2).line(), StartsWith("PATCH "));
  EXPECT_THAT(Wait(3).line(), StartsWith("POST "));
  EXPECT_EQ(Wait(3).json()["count"], 2);
}

TEST_F(EventRecorderTest, TriesAgainAndGivesUp) {
  Begin({ScriptServer::Refusal(403, "Forbidden"), ScriptServer::Refusal(500, "InternalError")});
  Record("denied");
  Wait(1);
  Record("later");
  const std::string name = Wait(2).json()["metadata"]["name"];
  EXPECT_EQ(Wait(3).json()["metadata"]["name"], name);
  EXPECT_THAT(Wait(3).line(), StartsWith("POST "));
}

}  // namespace
}  // namespace muster::controller
