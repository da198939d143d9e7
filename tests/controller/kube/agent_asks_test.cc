// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/agent_asks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/controller/kube/raw_agent.h"
#include "tests/controller/kube/script_server.h"

namespace muster::controller {
namespace {

using testing::ElementsAre;

// An agent of the job, and what it answers.
struct Agent {
  Agent(boost::asio::io_context& loop, ScriptServer::Script script) : server(loop, std::move(script)) {}
  AgentToAsk whom() const { return {"uid", server.access().server + "/status"}; }
  ScriptServer server;
};

ScriptServer::Reply Status(const char* version, Json more = Json::object()) {
  Json status = {{"restart_count", 0}, {"source", "coordinator"}, {"version", version}};
  status.update(more);
  return ScriptServer::Of(200, status);
}

class AgentAsksTest : public testing::Test {
 protected:
  void Until(const std::function<bool()>& done) { EXPECT_TRUE(RunUntil(loop_, done)); }

  boost::asio::io_context loop_;
  std::vector<std::optional<AgentsSaid>> said_;
  AgentAsks asks_{loop_, [this](const std::string& key, std::optional<AgentsSaid> said) {
                    EXPECT_EQ(key, "ns/job");
                    said_.push_back(std::move(said));
                  }};
};

TEST_F(AgentAsksTest, WaitsForNewsAfterTheVersionItKnows) {
  const Json lost = {{{"address", "10.0.0.7"}, {"how", "closed"}, {"lost_seconds", 0.1}, {"last_heard_seconds", 1}}};
  int times = 0;
  Agent agent(loop_, [&](const ScriptServer::Asked&) {
    switch (++times) {
      case 1:
        return Status("a1");
      case 2:
        return ScriptServer::Reply{.status = 304};
      case 3:
        return Status("b2", {{"lost", lost}, {"heartbeat_timeout_seconds", 15}});
      default:
        return ScriptServer::Reply{.then = ScriptServer::Reply::Then::kStay};
    }
  });
  asks_.Ask("ns/job", {agent.whom()});
  Until([&] { return times == 4; });
  EXPECT_THAT(agent.server.lines(), ElementsAre("GET /status", "GET /status?after=a1&wait=60",
                                                "GET /status?after=a1&wait=60", "GET /status?after=b2&wait=60"));
  ASSERT_EQ(said_.size(), 2U) << "nothing is said where nothing has changed";
  EXPECT_TRUE(said_[0]->lost.empty());
  ASSERT_EQ(said_[1]->lost.size(), 1U);
  EXPECT_EQ(said_[1]->lost[0].address, "10.0.0.7");
  EXPECT_EQ(said_[1]->pod_uid, "uid");
}

TEST_F(AgentAsksTest, AsksTheNextOneWhenOneBreaksOrDoesNotKnow) {
  int of_first = 0, of_second = 0, of_third = 0;
  Agent first(loop_, [&](const ScriptServer::Asked&) {
    if (++of_first == 1) return Status("a1");
    return ScriptServer::Reply{.then = ScriptServer::Reply::Then::kSilent};
  });
  Agent second(loop_, [&](const ScriptServer::Asked&) {
    ++of_second;
    return Status("b1", {{"cut_off", true}});
  });
  Agent third(loop_, [&](const ScriptServer::Asked&) {
    if (++of_third == 1) return Status("c1");
    return ScriptServer::Reply{.then = ScriptServer::Reply::Then::kStay};
  });
  asks_.Ask("ns/job", {first.whom(), second.whom(), third.whom()});
  Until([&] { return of_third == 2; });
  EXPECT_THAT(third.server.lines(), ElementsAre("GET /status", "GET /status?after=c1&wait=60"));
  ASSERT_EQ(said_.size(), 4U);
  EXPECT_FALSE(said_[1].has_value()) << "the word of the first is void";
  asks_.Ask("ns/job", {second.whom(), third.whom()});
  asks_.Ask("ns/job", {third.whom(), second.whom()});
  EXPECT_EQ(of_third, 2) << "the one that is asked stays";
  asks_.Ask("ns/job", {second.whom()});
  Until([&] { return of_second == 2; });
  asks_.Forget("ns/job");
}

TEST_F(AgentAsksTest, AFurtherPodEndsThePause) {
  int of_first = 0, of_second = 0;
  Agent first(loop_, [&](const ScriptServer::Asked&) {
    ++of_first;
    return Status("a1", {{"source", "node"}});
  });
  Agent second(loop_, [&](const ScriptServer::Asked&) {
    ++of_second;
    return Status("b1");
  });
  asks_.Ask("ns/job", {first.whom()});
  Until([&] { return of_first == 3; });  // after 1 s, and then 2 s
  Until([&] { return said_.size() == 3; });
  asks_.Ask("ns/job", {first.whom(), second.whom()});
  Until([&] { return of_second == 1; });
  EXPECT_LE(of_first, 4);
}

// An agent of many jobs, none of which is answered.
struct SilentAgent {
  explicit SilentAgent(boost::asio::io_context& loop) : raw(loop, {}) {}
  AgentToAsk whom() const { return {"uid", "http://" + raw.address() + "/status"}; }
  RawAgent raw;
};

TEST_F(AgentAsksTest, TheConnectionOfAnEndedJobCloses) {
  SilentAgent agent(loop_);
  asks_.Ask("ns/ends", {agent.whom()});
  asks_.Ask("ns/stays", {agent.whom()});
  Until([&] { return agent.raw.open() == 2; });
  asks_.Forget("ns/ends");
  Until([&] { return agent.raw.open() == 1; });
  EXPECT_EQ(agent.raw.accepted(), 2);
}

TEST_F(AgentAsksTest, NoConnectionStaysOpenBetweenTwoRequests) {
  Agent knows_nothing(loop_, [&](const ScriptServer::Asked&) { return Status("a1", {{"source", "node"}}); });
  RawAgent refuses(loop_, {.bytes = {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"}});
  asks_.Ask("ns/job", {knows_nothing.whom(), {"uid", "http://" + refuses.address() + "/status"}});
  Until([&] { return said_.size() == 2; });  // a pause of 1 s follows
  Until([&] { return refuses.open() == 0; });
  EXPECT_EQ(refuses.accepted(), 1);
}

TEST_F(AgentAsksTest, ASilentAgentDelaysNoOtherJob) {
  SilentAgent silent(loop_);
  for (int job = 0; job < 20; ++job) asks_.Ask(fmt::format("ns/a{}", job), {silent.whom()});
  Agent agent(loop_, [](const ScriptServer::Asked&) { return Status("a1"); });
  asks_.Ask("ns/job", {agent.whom()});
  Until([&] { return !said_.empty() && silent.raw.open() == 20; });  // said_: of no other job
}

TEST_F(AgentAsksTest, JobsBeyondTheConnectionsWaitForOne) {
  const rlimit few{.rlim_cur = 80, .rlim_max = 80};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  AgentAsks asks(loop_, [](const std::string&, const auto&) {});
  SilentAgent agent(loop_);
  for (int job = 0; job < 21; ++job) asks.Ask(fmt::format("ns/{}", job), {agent.whom()});
  Until([&] { return agent.raw.open() == 20; });
  Agent other(loop_, [](const ScriptServer::Asked&) { return Status("a1"); });
  asks_.Ask("ns/job", {other.whom()});
  Until([&] { return !said_.empty(); });
  EXPECT_EQ(agent.raw.accepted(), 20) << "a quarter of the descriptors";
  asks.Forget("ns/0");
  Until([&] { return agent.raw.accepted() == 21; });
}

}  // namespace
}  // namespace muster::controller
