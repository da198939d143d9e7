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
    observed.pods.push_back(pod);
  }
  return observed;
}

TEST(AgentStatus, TheFirstReadyPodIsAsked) {
  struct Row {
    const char* what;
    std::function<void(TrainJobPlan&, Observed&)> change;
    std::string url;  // empty: nobody is asked
  };
  const Row rows[] = {
      {"both", [](TrainJobPlan&, Observed&) {}, "http://10.0.0.0:29480/status"},
      {"IPv6", [](TrainJobPlan&, Observed& o) { o.pods[1].address = "fd00::1"; }, "http://[fd00::1]:29480/status"},
      {"not ready", [](TrainJobPlan&, Observed& o) { o.pods[1].ready = false; }, "http://10.0.0.1:29480/status"},
      {"ended", [](TrainJobPlan&, Observed& o) { o.pods[1].phase = "Failed"; }, "http://10.0.0.1:29480/status"},
      {"no address", [](TrainJobPlan&, Observed& o) { o.pods[0].address = o.pods[1].address = ""; }, ""},
      {"no port", [](TrainJobPlan& p, Observed&) { p.jobs[0].agent_port.reset(); }, ""},
      {"no agent", [](TrainJobPlan& p, Observed&) { p.jobs[0].agent = false; }, ""},
      {"no restarts", [](TrainJobPlan& p, Observed&) { p.max_restarts = 0; }, ""},
  };
  for (const Row& row : rows) {
    TrainJobPlan plan = Served();
    Observed observed = Running();
    row.change(plan, observed);
    const auto whom = WhomToAsk(plan, observed);
    EXPECT_EQ(whom ? whom->url : "", row.url) << row.what;
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
  EXPECT_EQ(WhomToAsk(plan, observed)->url, "http://10.0.0.1:1/status") << "the Master first";
  observed.pods[1].ready = false;
  EXPECT_EQ(WhomToAsk(plan, observed)->url, "http://10.0.0.0:2/status");
  plan.replicas[1].agent_port.reset();
  EXPECT_FALSE(WhomToAsk(plan, observed).has_value());
  observed.pods[1].ready = true;
  plan.restart = RestartScope::kPod;
  EXPECT_FALSE(WhomToAsk(plan, observed).has_value()) << "restarts in a pod do not count";
  plan.restart = RestartScope::kJob;
  plan.budget = 0;
  EXPECT_FALSE(WhomToAsk(plan, observed).has_value()) << "there is no restart";
}

TEST(AgentStatus, ReadsTheAnswerOfAnAgent) {
  const auto said =
      ReadAgentStatus("uid", R"({"run_id":"a","restart_count":2,"max_restarts":3,"nodes":[{"rank":null}],)"
                             R"("overcome":{"rank":3,"exit_code":139,"signal":"SIGSEGV","host":"h"}})");
  ASSERT_TRUE(said.ok()) << said.status();
  EXPECT_EQ(said->pod_uid, "uid");
  EXPECT_EQ(said->restarts, 2);
  EXPECT_EQ(said->overcome->rank, 3);
  EXPECT_FALSE(ReadAgentStatus("uid", R"({"restart_count":0})")->overcome.has_value());
  for (const char* wrong : {"", "no run", "[]", "{}", R"({"restart_count":-1})", R"({"restart_count":"1"})",
                            R"({"restart_count":1,"overcome":7})", R"({"restart_count":1,"overcome":{"rank":"x"}})"}) {
    EXPECT_FALSE(ReadAgentStatus("uid", wrong).ok()) << wrong;
  }
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
