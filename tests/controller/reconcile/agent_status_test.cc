// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile/agent_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/controller/reconcile/decided.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TrainJobPlan Served() {
  TrainJobPlan plan = TwoNodes();
  plan.jobs[0].agent_port = 29480;
  return plan;
}

Observed Running() {
  Observed observed;
  observed.services = {HeadlessService()};
  observed.jobs = {There("a-node-0")};
  for (int index : {1, 0}) {
    ObservedPod pod = Pod(observed.jobs[0], index);
    pod.ready = true;
    pod.address = fmt::format("10.0.0.{}", index);
    pod.node = fmt::format("n{}", index);
    observed.pods.push_back(pod);
  }
  return observed;
}

std::string Urls(const std::vector<AgentToAsk>& agents) {
  std::vector<std::string> urls;
  for (const AgentToAsk& agent : agents) urls.push_back(agent.url);
  return Join(urls, " ");
}

TEST(AgentStatus, ReadyPodsAreAskedFirst) {
  struct Row {
    const char* what;
    std::function<void(TrainJobPlan&, Observed&)> change;
    std::string urls;  // empty: nobody is asked
  };
  const std::string first = "http://10.0.0.0:29480/status?training=1";
  const std::string second = "http://10.0.0.1:29480/status?training=1";
  const Row rows[] = {
      {"both", [](TrainJobPlan&, Observed&) {}, first + " " + second},
      {"IPv6", [](TrainJobPlan&, Observed& o) { o.pods[1].address = "fd00::1"; },
       "http://[fd00::1]:29480/status?training=1 " + second},
      {"not ready", [](TrainJobPlan&, Observed& o) { o.pods[1].ready = false; }, second + " " + first},
      {"none ready", [](TrainJobPlan&, Observed& o) { o.pods[0].ready = o.pods[1].ready = false; },
       first + " " + second},
      {"not started", [](TrainJobPlan&, Observed& o) { o.pods[1].phase = "Pending"; }, second},
      {"ended", [](TrainJobPlan&, Observed& o) { o.pods[1].phase = "Failed"; }, second},
      {"no address", [](TrainJobPlan&, Observed& o) { o.pods[0].address = o.pods[1].address = ""; }, ""},
      {"no port", [](TrainJobPlan& p, Observed&) { p.jobs[0].agent_port.reset(); }, ""},
      {"no agent", [](TrainJobPlan& p, Observed&) { p.jobs[0].agent = false; }, ""},
      {"no restarts", [](TrainJobPlan& p, Observed&) { p.max_restarts = 0; }, first + " " + second},
      {"neither restarts nor peers",
       [](TrainJobPlan& p, Observed&) {
         p.max_restarts = 0;
         p.jobs[0].pods = 1;
       },
       first + " " + second},
  };
  for (const Row& row : rows) {
    TrainJobPlan plan = Served();
    Observed observed = Running();
    row.change(plan, observed);
    EXPECT_EQ(Urls(WhomToAsk(plan, observed)), row.urls) << row.what;
  }
}

TEST(AgentStatus, OfAPyTorchJob) {
  PyTorchPlan plan;
  plan.restart = RestartScope::kJob;
  for (const ReplicaType type : {ReplicaType::kMaster, ReplicaType::kWorker}) {
    plan.replicas.push_back({.type = type, .agent = true, .agent_port = type == ReplicaType::kMaster ? 1 : 2});
  }
  Observed observed;
  for (const char* type : {"worker", "master"}) {
    ObservedPod pod;
    pod.replica_type = type;
    pod.index = 0;
    pod.phase = "Running";
    pod.ready = true;
    pod.address = fmt::format("10.0.0.{}", observed.pods.size());
    observed.pods.push_back(pod);
  }
  EXPECT_EQ(Urls(WhomToAsk(plan, observed)), "http://10.0.0.1:1/status http://10.0.0.0:2/status") << "the Master first";
  plan.replicas[1].agent_port.reset();
  EXPECT_EQ(Urls(WhomToAsk(plan, observed)), "http://10.0.0.1:1/status");
  plan.restart = RestartScope::kPod;
  EXPECT_EQ(Urls(WhomToAsk(plan, observed)), "") << "restarts in a pod do not count";
  plan.restart = RestartScope::kJob;
  plan.budget = 0;
  EXPECT_EQ(Urls(WhomToAsk(plan, observed)), "") << "there is no restart";
  for (PlannedReplicas& replicas : plan.replicas) replicas.meets = true;
  EXPECT_EQ(Urls(WhomToAsk(plan, observed)), "http://10.0.0.1:1/status") << "it may know of a lost node";
}

TEST(AgentStatus, ReadsTheAnswerOfAnAgent) {
  const auto said = ReadAgentStatus("uid",
                                    R"({"run_id":"a","restart_count":2,"max_restarts":3,"nodes":[{"rank":null}],)"
                                    R"("overcome":{"rank":3,"exit_code":139,"signal":"SIGSEGV","host":"h"},)"
                                    R"("version":"00ff"})",
                                    kNow);
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(said->version, "00ff");
  EXPECT_TRUE(said->knows);
  EXPECT_EQ(said->said.pod_uid, "uid");
  EXPECT_EQ(said->said.restarts, 2);
  EXPECT_EQ(said->said.overcome->rank, 3);
  EXPECT_TRUE(said->said.lost.empty());
  EXPECT_FALSE(ReadAgentStatus("uid", R"({"restart_count":0})", kNow)->said.overcome.has_value());
  for (const char* wrong : {"", "no run", "[]", "{}", R"({"restart_count":-1})", R"({"restart_count":"1"})",
                            R"({"restart_count":1,"overcome":7})", R"({"restart_count":1,"overcome":{"rank":"x"}})",
                            R"({"restart_count":1,"version":"a&b"})", R"({"restart_count":1,"lost":7})",
                            R"({"restart_count":1,"lost":[{"address":7}]})",
                            R"({"restart_count":1,"lost":[{"address":"10.0.0.1","lost_seconds":-1}]})",
                            R"({"restart_count":1,"heartbeat_timeout_seconds":1e99})"}) {
    EXPECT_FALSE(ReadAgentStatus("uid", wrong, kNow).ok()) << wrong;
  }
  Json many = {{"restart_count", 0}, {"lost", Json::array()}};
  for (int i = 0; i < 257; ++i) many["lost"].push_back({{"address", "10.0.0.1"}});
  EXPECT_FALSE(ReadAgentStatus("uid", WriteJson(many), kNow).ok());
}

TEST(AgentStatus, ReadsTheTrainingAndTheTime) {
  const auto answer = ReadAgentStatus(
      "uid",
      R"({"restart_count":0,"training":{"rank":1,"unit":"steps","position":5,"end":10,"left_seconds":2.5},)"
      R"("goodput":0.9,"began_unix_ms":1700000000000,"seconds":{"training":9,"start":1,"more":5}})",
      kNow);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const AgentsSaid& said = answer->said;
  EXPECT_EQ(said.training,
            (TrainingFacts{.rank = 1, .position = 5, .end = 10, .left = std::chrono::milliseconds(2500)}));
  ASSERT_TRUE(said.time);
  EXPECT_EQ(said.time->began_unix_ms, 1700000000000);
  EXPECT_EQ(GoodputOf(said.time->spent), 0.9);
  for (const char* wrong : {R"({"restart_count":0,"training":7})", R"({"restart_count":0,"training":{"rank":-1}})",
                            R"({"restart_count":0,"began_unix_ms":1,"seconds":7})",
                            R"({"restart_count":0,"began_unix_ms":"x","seconds":{}})"}) {
    EXPECT_FALSE(ReadAgentStatus("uid", wrong, kNow).ok()) << wrong;
  }
}

// What has not moved on stays as it was, so that no pass writes it.
TEST(AgentStatus, NewsAreTrainingsThatMovedOn) {
  std::optional<AgentsSaid> known;
  const auto says = [&known](double position, int trained) {
    AgentsSaid said{.pod_uid = "a", .training = TrainingFacts{.position = position, .end = 1000}};
    said.time = RunTime{.began_unix_ms = 1};
    said.time->spent[static_cast<size_t>(TimeUse::kTraining)] = std::chrono::seconds(trained);
    said.time->spent[static_cast<size_t>(TimeUse::kStart)] = std::chrono::seconds(10);
    return TakeNews(std::move(said), &known);
  };
  EXPECT_TRUE(says(500, 90));  // goodput 90 %
  const AgentsSaid first = *known;
  EXPECT_FALSE(says(505, 91));
  EXPECT_EQ(known, first);
  EXPECT_TRUE(says(510, 92));
  EXPECT_EQ(known->training->position, 510);
  EXPECT_EQ(known->time, first.time) << "still 90 %";
  EXPECT_TRUE(says(511, 120)) << "92 %";
  EXPECT_EQ(known->training->position, 510);
  EXPECT_FALSE(TakeNews(AgentsSaid{.pod_uid = "b"}, &known)) << "an agent that tells nothing";
  EXPECT_EQ(known->training->position, 510);
  AgentsSaid restarted{.pod_uid = "a", .restarts = 1, .training = TrainingFacts{.position = 401, .end = 1000}};
  EXPECT_TRUE(TakeNews(restarted, &known));
  EXPECT_EQ(known, restarted);
}

// The words of the pods that have ended are the last ones.
TEST(AgentStatus, TheStatusHasTheTimeAndTheTraining) {
  Observed observed = Running();
  TrainJob job = Job();
  job.status.start_time = kNow - 100 * kSecond;
  const auto run = [](WallTime began, int trained) {
    RunTime time{.began_unix_ms =
                     std::chrono::duration_cast<std::chrono::milliseconds>(began.time_since_epoch()).count()};
    time.spent[static_cast<size_t>(TimeUse::kTraining)] = std::chrono::seconds(trained);
    return time;
  };
  const WallTime began = kNow - 60 * kSecond;
  observed.agents = AgentsSaid{.pod_uid = observed.pods[1].meta.uid,
                               .training = TrainingFacts{.position = 5, .end = 10},
                               .time = run(began, 30)};
  TrainJobDecision decision = Decide(job, Served(), observed, kNow);
  ASSERT_TRUE(decision.status.time);
  EXPECT_EQ(decision.status.time->pods, Duration(40 * kSecond));
  EXPECT_EQ(decision.training->position, 5);
  job.status = ReadTrainJobStatus(WriteTrainJobStatus(decision.status));
  EXPECT_EQ(job.status.time, decision.status.time);

  observed.jobs[0].complete = true;
  observed.jobs[0].complete_at = kNow - kSecond;
  for (ObservedPod& pod : observed.pods) {
    pod.phase = "Succeeded";
    ObservedEnd end{.container = "node", .finished = kNow - 2 * kSecond};
    end.message = TerminationMessage{};
    if (pod.index == 0) {
      end.message->time = run(began, 58);
      end.message->training = TrainingFacts{.position = 10, .end = 10};
    } else {
      end.message->time = run(began + kSecond, 57);
      end.message->training = TrainingFacts{.rank = 1, .position = 9, .end = 10};
    }
    pod.ends = {end};
  }
  decision = Decide(job, Served(), observed, kNow);
  EXPECT_TRUE(decision.status.Finished());
  EXPECT_EQ(AgentsTime(*decision.status.time), run(began, 58).spent);
  EXPECT_EQ(decision.training->position, 10);
}

TEST(AgentStatus, ReadsWhenALostNodeCounts) {
  struct Row {
    const char* what;
    Json lost;                 // beside the address
    std::chrono::seconds due;  // from kNow
  };
  using std::chrono::seconds;
  const Row rows[] = {
      {"its connection closed", {{"how", "closed"}, {"lost_seconds", 0}, {"last_heard_seconds", 4}}, seconds(3)},
      {"a while ago", {{"how", "closed"}, {"lost_seconds", 60}, {"last_heard_seconds", 64}}, seconds(-57)},
      {"silent for the limit", {{"how", "silent"}, {"lost_seconds", 0}, {"last_heard_seconds", 15}}, seconds(0)},
      {"it went to look for another coordinator",
       {{"how", "silent"}, {"lost_seconds", 0}, {"last_heard_seconds", 1}},
       seconds(14)},
  };
  for (const Row& row : rows) {
    Json status = {{"restart_count", 0}, {"source", "coordinator"}, {"heartbeat_timeout_seconds", 15}};
    status["lost"] = Json::array({row.lost, {{"how", "closed"}}});
    status["lost"][0]["address"] = "fd00::7";
    const auto answer = ReadAgentStatus("uid", WriteJson(status), kNow);
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_EQ(answer->said.lost.size(), 1U) << "one without an address cannot be found";
    EXPECT_EQ(answer->said.lost[0].address, "fd00::7");
    EXPECT_EQ(answer->said.lost[0].due, kNow + row.due) << row.what;
    for (const auto& [field, value] : {std::pair<const char*, Json>{"source", "node"}, {"cut_off", true}}) {
      Json doubtful = status;
      doubtful[field] = value;
      const auto doubted = ReadAgentStatus("uid", WriteJson(doubtful), kNow);
      EXPECT_TRUE(doubted->said.lost.empty()) << field;
      EXPECT_FALSE(doubted->knows) << field;
    }
  }
}

TEST(AgentStatus, NewsAreRestartsAndLostNodes) {
  std::optional<AgentsSaid> known;
  EXPECT_FALSE(TakeNews(AgentsSaid{"a", 0, {}}, &known));
  EXPECT_TRUE(TakeNews(AgentsSaid{"a", 1, {}}, &known));
  EXPECT_FALSE(TakeNews(AgentsSaid{"a", 1, {}}, &known));
  EXPECT_TRUE(TakeNews(AgentsSaid{"a", 1, {}, {{"10.0.0.1"}}}, &known));
  EXPECT_TRUE(TakeNews(AgentsSaid{"a", 1, {}}, &known)) << "it is back";
  EXPECT_FALSE(TakeNews(std::nullopt, &known));
  TakeNews(AgentsSaid{"a", 1, {}, {{"10.0.0.1"}}}, &known);
  EXPECT_TRUE(TakeNews(std::nullopt, &known)) << "its word is void";
  EXPECT_EQ(known, (AgentsSaid{"a", 1, {}}));
}

// What the agents say while they run, and what their messages say in the end, is counted once.
TEST(AgentStatus, RestartsInPlaceShowWhileTheyHappen) {
  Observed observed = Running();
  TrainJob job = Job();
  const auto pass = [&] {
    TrainJobDecision decision = Decide(job, Served(), observed, kNow);
    job.status = decision.status;
    return decision;
  };
  pass();
  EXPECT_EQ(job.status.restarts, 0);
  const TerminationMessage last = ToldAt("a-node-0-0", "a-node-0-1", kNow - 20 * kSecond, 139);
  observed.agents = AgentsSaid{observed.pods[1].meta.uid, 1, last.cause};
  TrainJobDecision decision = pass();
  EXPECT_EQ(job.status.restarts, 1);
  EXPECT_THAT(Reasons(decision), ElementsAre("Restarted"));
  EXPECT_THAT(decision.events[0].message, HasSubstr("rank 3 on pod a-node-0-1-x (node n1)"));
  EXPECT_THAT(Actions(decision), IsEmpty());
  ASSERT_EQ(job.status.failures.size(), 1U);
  EXPECT_EQ(job.status.failures[0].pod, "a-node-0-1-x");
  EXPECT_THAT(pass().events, IsEmpty()) << "it is said once";

  observed.jobs[0].complete = true;
  observed.jobs[0].complete_at = kNow - kSecond;
  for (ObservedPod& pod : observed.pods) {
    pod.phase = "Succeeded";
    ObservedEnd end;
    end.container = "node";
    end.finished = kNow - 2 * kSecond;
    end.message = last;
    end.message->exit_code = 0;
    end.message->restart_count = 1;
    pod.ends = {end};
  }
  decision = pass();
  EXPECT_TRUE(job.status.Finished());
  EXPECT_EQ(job.status.restarts, 1);
  EXPECT_EQ(job.status.failures.size(), 1U);
  EXPECT_THAT(Reasons(decision), ElementsAre("Complete"));
}

TEST(AgentStatus, APodSpeaksForItsOwnJob) {
  Observed observed = Running();
  observed.agents = AgentsSaid{"uid of another pod", 3, {}};
  EXPECT_EQ(Decide(Job(), Served(), observed, kNow).status.restarts, 0);
  observed.agents = AgentsSaid{observed.pods[0].meta.uid, 1'000'000, {}};
  EXPECT_EQ(Decide(Job(), Served(), observed, kNow).status.restarts, 3) << "never more than the budget";
}

}  // namespace
}  // namespace muster::controller
