// SPDX-License-Identifier: Apache-2.0
// Random lives of PyTorchJobs in the model of pytorch_world.h. The controller is sometimes killed between two writes.
// The seed of a failed life is printed; MUSTER_SIM_SEED=SEED runs only that life.
#include <cstdlib>
#include <random>

#include "tests/controller/reconcile/pytorch_world.h"

namespace muster::controller {
namespace {

constexpr int kSeeds = 1'500;
constexpr int kChaos = 60;   // steps with failures
constexpr int kQuiet = 100;  // steps without failures, within which a job has to end

class Life {
 public:
  explicit Life(uint64_t seed) : random_(seed), world_(Parts()) {}

  void Run() {
    for (int step = 0; step < kChaos && !Over(); ++step) {
      if (Chance(25)) Change();
      Turn(true);
      if (Chance(10)) world_.Settle();
    }
    suspended_ = false;
    ChangeTo();
    for (int step = 0; step < kQuiet && !Over(); ++step) Turn(false);
    if (::testing::Test::HasFailure()) return;
    ASSERT_TRUE(world_.job.status.Finished())
        << "it never ended: " << world_.State() << " " << world_.job.status.message;
    const PyTorchJobStatus& status = world_.job.status;
    EXPECT_TRUE(!status.Is("Failed") || fatal_ || limit_) << world_.Message("Failed");
    EXPECT_EQ(status.conditions.back().type, status.Is("Failed") ? "Failed" : "Succeeded");
    EXPECT_TRUE(status.completion_time);
    world_.Settle();
    const auto end = world_.job.status.conditions;
    for (int step = 0; step < 10; ++step) Turn(true);
    world_.Settle();
    EXPECT_EQ(world_.job.status.conditions, end) << "the end did not stay";
    EXPECT_TRUE(clean_ != "All" || world_.PodNames().empty());
  }

 private:
  bool Chance(int of) { return Pick(of) == 0; }
  int Pick(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }
  bool Over() const { return world_.job.status.Finished() || ::testing::Test::HasFailure(); }

  PyTorchParts Parts() {
    parts_.master = Chance(2);
    parts_.workers = parts_.master ? Pick(4) : 1 + Pick(3);
    // Not Always: such a job never ends.
    parts_.policy =
        std::vector<std::string>{"ExitCode", "ExitCode", "OnFailure", "Never"}[static_cast<size_t>(Pick(4))];
    if (Chance(2)) parts_.annotations = "{muster.dev/restart: job}";
    if (Chance(2)) parts_.container = kTorchrun;
    if (!parts_.master && Chance(3)) parts_.spec = "{elasticPolicy: {minReplicas: 1, maxReplicas: 4}}";
    clean_ = std::vector<std::string>{"None", "Running", "All"}[static_cast<size_t>(Pick(3))];
    if (Chance(2)) limit_ = Pick(4);
    Describe();
    return parts_;
  }

  void Describe() {
    parts_.run = fmt::format("{{cleanPodPolicy: {}, suspend: {}{}}}", clean_, suspended_,
                             limit_ ? fmt::format(", backoffLimit: {}", *limit_) : "");
  }

  void ChangeTo() {
    Describe();
    world_.Change(parts_);
  }

  void Change() {
    if (Chance(2)) {
      suspended_ = !suspended_;
    } else if (parts_.workers > 0) {
      parts_.workers = 1 + Pick(4);
    }
    ChangeTo();
  }

  void Turn(bool chaos) {
    world_.Wait(std::chrono::seconds(1 + Pick(chaos ? 40 : 400)));
    if (chaos && Chance(40)) world_.Wait(std::chrono::seconds(-300));  // the clock is set back
    if (Chance(2)) return Controller(chaos);
    Kubelet(chaos);
  }

  void Controller(bool chaos) {
    const PyTorchDecision decision = world_.Decide();
    const PyTorchJobStatus before = world_.job.status;
    EXPECT_GE(decision.status.restarts, before.restarts);
    EXPECT_GE(decision.status.attempt, before.attempt);
    EXPECT_LE(decision.status.failures.size(), kMostFailures);
    EXPECT_LE(decision.status.restarts, charges_) << "something was charged twice";
    world_.CarryOut(decision, chaos && Chance(4) ? Pick(5) : 1'000'000);
    std::set<int> attempts;
    for (const ObservedPod& pod : world_.seen.pods) {
      const bool planned = pod.replica_type == "master" || pod.index < parts_.workers;
      if (planned) attempts.insert(pod.attempt);
    }
    EXPECT_LE(attempts.size(), 1U) << "pods of two attempts are there at once";
  }

  void Kubelet(bool chaos) {
    for (size_t i = 0; i < world_.seen.pods.size(); ++i) {
      ObservedPod& pod = world_.seen.pods[i];
      if (pod.will_fail) {  // its phase comes later
        if (chaos && Chance(2)) continue;
        pod.will_fail = false;
        pod.phase = "Failed";
      }
      if (pod.meta.deleted && pod.phase == "Running") {
        if (chaos && Chance(6)) continue;  // its node does not answer
        pod.phase = Chance(2) ? "Failed" : "Succeeded";
        pod.ends = {PyTorchWorld::EndOf(pod.phase == "Failed" ? 143 : 0, world_.now)};
      }
      if (pod.phase != "Pending" && pod.phase != "Running") continue;
      if (!Chance(2)) continue;
      if (pod.phase == "Pending") {
        pod.phase = "Running";
        pod.ran = true;
      } else if (chaos && Chance(3)) {
        Break(pod);
        if (pod.phase == "Failed" && Chance(2)) {
          pod.phase = "Running";
          pod.will_fail = true;
        }
      } else if (!chaos || Chance(6)) {
        world_.Ends(pod.meta.name, 0);
      }
    }
    world_.seen.pods.erase(std::remove_if(world_.seen.pods.begin(), world_.seen.pods.end(),
                                          [this, chaos](const ObservedPod& pod) {
                                            const bool ended = pod.phase != "Running" && pod.meta.deleted;
                                            return ended || (chaos && Chance(60));  // a forced deletion from outside
                                          }),
                           world_.seen.pods.end());
  }

  void Break(ObservedPod& pod) {
    if (pod.meta.deleted) return;
    switch (Pick(4)) {
      case 0:
        pod.meta.deleted = world_.now + PyTorchWorld::kGrace;
        return;
      case 1:
        world_.Ends(pod.meta.name, 137).disrupted = true;
        fatal_ = fatal_ || parts_.policy == "Never";
        return;
      default:
        break;
    }
    const int code = Chance(8) ? 1 + Pick(127) : 128 + Pick(100);
    ++charges_;
    const bool by_kubelet = parts_.policy == "OnFailure" && parts_.annotations == "{}";
    if (by_kubelet && Chance(2)) {
      world_.StartsAgain(pod.meta.name, code);
      return;
    }
    world_.Ends(pod.meta.name, code);
    fatal_ = fatal_ || parts_.policy == "Never" || (parts_.policy == "ExitCode" && code < 128);
  }

  std::mt19937_64 random_;
  PyTorchParts parts_;
  std::string clean_;
  std::optional<int> limit_;
  bool suspended_ = false;
  bool fatal_ = false;  // an event may have ended the job
  int charges_ = 0;     // failures that may be counted
  PyTorchWorld world_;  // last: its initialiser uses the others
};

TEST(PyTorchSimulation, EveryJobEnds) {
  const char* one = std::getenv("MUSTER_SIM_SEED");
  const int first = one != nullptr ? std::atoi(one) : 0;
  for (int seed = first; seed < (one != nullptr ? first + 1 : kSeeds); ++seed) {
    SCOPED_TRACE(fmt::format("MUSTER_SIM_SEED={}", seed));
    Life(static_cast<uint64_t>(seed)).Run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace muster::controller
