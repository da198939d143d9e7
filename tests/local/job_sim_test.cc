// SPDX-License-Identifier: Apache-2.0
// Random lives of Jobs whose pods end and are deleted at random. Prints the seed of a life that fails.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "local/cluster/job_pods.h"
#include "local/cluster/job_rules.h"
#include "tests/local/jobs.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr int kSeeds = 1000;
constexpr int kChaos = 60;    // steps in which pods fail, and the Job is changed
constexpr int kQuiet = 3000;  // steps in which a Job has to end

class Life {
 public:
  explicit Life(uint64_t seed) : random_(seed) {
    job_ = LocalJob("{}");
    Json& spec = job_["spec"];
    spec["completions"] = 1 + Pick(5);
    spec["parallelism"] = 1 + Pick(5);
    spec["backoffLimit"] = Pick(6);
    if (Chance(4)) spec["podReplacementPolicy"] = "Failed";
    if (Chance(4)) spec["backoffLimitPerIndex"] = Pick(3), spec.erase("backoffLimit");
    if (Chance(4)) {
      const char* action = Chance(2) ? "Ignore" : "FailJob";
      spec["podFailurePolicy"] =
          YamlOf(fmt::format("{{rules: [{{action: {}, onExitCodes: {{operator: In, values: [3]}}}}]}}", action));
    }
    per_index_ = spec.contains("backoffLimitPerIndex");
    ignores_ = spec.contains("podFailurePolicy");
  }

  void Run() {
    for (int i = 0; i < kChaos && !::testing::Test::HasFailure(); ++i) {
      if (Chance(15)) job_["spec"]["suspend"] = !FlagField(job_["spec"], "suspend", false);
      if (Chance(15)) job_["spec"]["parallelism"] = 1 + Pick(5);
      if (Chance(20)) Delete(Pick(8));
      Turn(true);
    }
    job_["spec"]["suspend"] = false;
    for (int i = 0; i < kQuiet && !Over() && !::testing::Test::HasFailure(); ++i) Turn(false);
    ASSERT_TRUE(Over()) << "it never ended: " << job_["status"];
    CheckEnd();
  }

  bool Is(const char* type) const {
    for (const Json& condition : ListField(job_["status"], "conditions")) {
      if (TextField(condition, "type") == type && TextField(condition, "status") == "True") return true;
    }
    return false;
  }

 private:
  int Pick(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  bool Chance(int in) { return Pick(in) == 0; }
  bool Over() const { return Is("Complete") || Is("Failed"); }
  static bool Ended(const Json& pod) {
    return pod["status"]["phase"] == "Failed" || pod["status"]["phase"] == "Succeeded";
  }
  static bool Deleted(const Json& pod) { return pod["metadata"].contains("deletionTimestamp"); }
  static bool Tracked(const Json& pod) { return pod["metadata"].contains("finalizers"); }
  static std::string IndexOf(const Json& pod) { return TextField(pod["metadata"]["annotations"], kIndexLabel); }

  void Turn(bool bad) {
    now_ += std::chrono::seconds(1 + Pick(bad ? 20 : 60));
    for (auto& [name, pod] : pods_) Advance(bad, &pod);
    Step();
    std::erase_if(pods_,
                  [](const auto& pod) { return Deleted(pod.second) && Ended(pod.second) && !Tracked(pod.second); });
  }

  void Advance(bool bad, Json* pod) {
    if (Ended(*pod) || !Chance(2)) return;
    Json& phase = (*pod)["status"]["phase"];
    if (phase == "Pending" && !Deleted(*pod)) {
      phase = "Running";
      return;
    }
    const bool fails = Deleted(*pod) || (bad && Chance(3));
    phase = fails ? "Failed" : "Succeeded";
    (*pod)["status"]["containerStatuses"][0]["state"]["terminated"] = {{"exitCode", fails ? (Chance(4) ? 3 : 1) : 0},
                                                                       {"finishedAt", IsoTime(now_)}};
  }

  void Delete(int nth) {
    for (auto& [name, pod] : pods_) {
      if (nth-- == 0 && !Ended(pod)) pod["metadata"]["deletionTimestamp"] = IsoTime(now_);
    }
  }

  JobStep Stepped() {
    std::vector<const Json*> pods;
    for (const auto& [name, pod] : pods_) pods.push_back(&pod);
    auto step = StepJob(job_, pods, now_);
    if (!step.ok()) ADD_FAILURE() << step.status();
    return step.value_or(JobStep());
  }

  void Step() {
    const bool over = Over(), bound = over || Is("SuccessCriteriaMet") || Is("FailureTarget");
    const int before = CountField(job_["status"], "failed");
    const JobStep step = Stepped();
    EXPECT_TRUE(!bound || step.create.empty());
    EXPECT_TRUE(!over || step.status == job_["status"]);
    EXPECT_TRUE(step.create.empty() || step.remove.empty());
    EXPECT_TRUE(!step.again || *step.again > now_);
    const int counted = Apply(step);
    EXPECT_LE(CountField(step.status, "failed") - before, counted);
    // Pods that were removed from a Job that goes on, and pods that still ran when the Job succeeded, have not failed.
    if (!ignores_ && !over && !Is("SuccessCriteriaMet") && (step.remove.empty() || Is("FailureTarget"))) {
      EXPECT_EQ(CountField(step.status, "failed") - before, counted);
    }
    CheckPods();
    EXPECT_TRUE(Over() || Waits(step)) << "nothing would ever happen";
    CheckAgain(step);
  }

  // Applies the step. Returns how many of the counted pods have not succeeded.
  int Apply(const JobStep& step) {
    int failed = 0;
    for (const std::string& name : step.counted) {
      Json& pod = pods_.at(name);
      EXPECT_TRUE(Tracked(pod)) << name << " is counted twice";
      pod["metadata"].erase("finalizers");
      if (pod["status"]["phase"] != "Succeeded") ++failed;
    }
    for (const std::string& name : step.remove) {
      EXPECT_FALSE(Ended(pods_.at(name)));
      pods_.at(name)["metadata"]["deletionTimestamp"] = IsoTime(now_);
    }
    for (int index : step.create) {
      const std::string name = fmt::format("p{}", made_++);
      Json pod = LocalPod(index, "Pending", fmt::format("{{name: {}}}", name));
      EXPECT_EQ(step.annotations.contains(index), per_index_);
      if (per_index_) pod["metadata"]["annotations"].update(step.annotations.at(index));
      pods_[name] = std::move(pod);
    }
    job_["status"] = step.status;
    return failed;
  }

  // Whether the Job waits: for a pod, for a time, or to be resumed.
  bool Waits(const JobStep& step) const {
    return CountField(step.status, "active") + CountField(step.status, "terminating") > 0 || step.again ||
           FlagField(job_["spec"], "suspend", false);
  }

  void CheckPods() {
    std::multiset<std::string> active, live;
    for (const auto& [name, pod] : pods_) {
      if (Ended(pod)) continue;
      live.insert(IndexOf(pod));
      if (!Deleted(pod)) active.insert(IndexOf(pod));
    }
    EXPECT_EQ(CountField(job_["status"], "active"), std::ssize(active));
    EXPECT_EQ(CountField(job_["status"], "terminating"), std::ssize(live) - std::ssize(active));
    EXPECT_LE(std::ssize(active), CountField(job_["spec"], "parallelism"));
    for (const std::string& index : active) EXPECT_EQ(active.count(index), 1U);
    if (!TextField(job_["spec"], "podReplacementPolicy").empty() || ignores_) {
      for (const std::string& index : active) EXPECT_EQ(live.count(index), 1U) << "replaced too early";
    }
    EXPECT_TRUE(!Over() || live.empty());
    for (int index : ReadIndexes(TextField(job_["status"], "completedIndexes"), 99)) {
      EXPECT_TRUE(succeeded_.contains(index) || Succeeded(index)) << index << " has not succeeded";
      succeeded_.insert(index);
    }
  }

  bool Succeeded(int index) const {
    for (const auto& [name, pod] : pods_) {
      if (IndexOf(pod) == fmt::format("{}", index) && pod["status"]["phase"] == "Succeeded") return true;
    }
    return false;
  }

  // A second step at once creates only after a removal, and removes only after a creation. Else it only counts pods.
  void CheckAgain(const JobStep& step) {
    const JobStep second = Stepped();
    EXPECT_TRUE(second.create.empty() || !step.remove.empty());
    EXPECT_TRUE(second.remove.empty() || !step.create.empty());
    if (!second.create.empty() || !second.remove.empty()) return;
    if (!per_index_) {
      EXPECT_TRUE(second.counted.empty());
      EXPECT_EQ(second.status, step.status);
    }
  }

  void CheckEnd() {
    EXPECT_NE(Is("Complete"), Is("Failed"));
    EXPECT_EQ(Is("Complete"), job_["status"].contains("completionTime"));
    for (const auto& [name, pod] : pods_) EXPECT_FALSE(Tracked(pod)) << name;
    EXPECT_EQ(Is("Complete"), std::ssize(succeeded_) == CountField(job_["spec"], "completions"));
    EXPECT_EQ(CountField(job_["status"], "succeeded"), std::ssize(succeeded_));
    const int pods = static_cast<int>(pods_.size());
    for (int i = 0; i < 5; ++i) Turn(false);
    EXPECT_LE(std::ssize(pods_), pods);
  }

  std::mt19937_64 random_;
  Json job_;
  bool per_index_ = false, ignores_ = false;
  std::map<std::string, Json> pods_;
  std::set<int> succeeded_;
  int made_ = 0;
  WallTime now_ = kNow;
};

TEST(JobSim, JobsEndAndKeepTheirLimits) {
  int complete = 0;
  for (uint64_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Life life(seed);
    life.Run();
    if (life.Is("Complete")) ++complete;
  }
  EXPECT_GT(complete, kSeeds / 10);
  EXPECT_LT(complete, kSeeds * 9 / 10);
}

}  // namespace
}  // namespace muster::local
