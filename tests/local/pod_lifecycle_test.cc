// SPDX-License-Identifier: Apache-2.0
// The life of one pod's containers, call by call: which ones start and stop, and what ReadPod reads from the status.
#include "local/pod/lifecycle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/iso_time.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/reconcile/observed.h"

namespace muster::local {

using namespace controller;

namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Restart = ContainerProgram::Restart;

constexpr WallTime kNow{seconds(1'800'000'000)};

ContainerProgram Plain(const char* name, Restart restart = Restart::kNever) {
  return {.name = name, .restart = restart};
}

ContainerProgram Sidecar(const char* name, bool startup = false) {
  ContainerProgram program{.name = name, .sidecar = true, .restart = Restart::kAlways};
  if (startup) program.startup = Probe{};
  return program;
}

// One pod. Its containers are called by their names.
class Played {
 public:
  Played(std::vector<ContainerProgram> init, std::vector<ContainerProgram> containers)
      : program_{.init_containers = std::move(init), .containers = std::move(containers)},
        cycle_(program_, "127.1.0.2", kNow) {}

  // The next step: "start a b, stop c, again 10" (seconds from now). Containers that are told to start have started.
  std::string Next() {
    const PodLifecycle::Step step = cycle_.Next(now_);
    std::string text;
    for (const auto& [word, containers] : {std::pair("start", step.start), std::pair("stop", step.stop)}) {
      if (containers.empty()) continue;
      text += fmt::format("{}{}", text.empty() ? "" : ", ", word);
      for (const size_t i : containers) text += fmt::format(" {}", cycle_.Program(i).name);
    }
    if (step.again) {
      const auto pause = std::chrono::duration_cast<seconds>(*step.again - now_);
      text += fmt::format("{}again {}", text.empty() ? "" : ", ", pause.count());
    }
    for (const size_t i : step.start) cycle_.Started(i, now_);
    return text;
  }

  // The container ends with `code`. Returns Next().
  std::string End(std::string_view container, int code = 0) {
    cycle_.Ended(At(container), {.exit_code = code}, now_);
    return Next();
  }

  std::string Stop(std::string reason = "", std::string message = "") {
    cycle_.Stop(std::move(reason), std::move(message));
    return Next();
  }

  // The container's startup probe succeeds. Returns Next().
  std::string Up(std::string_view container) {
    cycle_.StartupDone(At(container));
    return Next();
  }

  // The container's startup or liveness probe fails. Returns Next().
  std::string Fail(std::string_view container, std::optional<seconds> grace) {
    cycle_.Unhealthy(At(container), grace);
    return Next();
  }

  void Wait(seconds time) { now_ += time; }

  size_t At(std::string_view name) const {
    for (size_t i = 0; i < cycle_.size(); ++i) {
      if (cycle_.Program(i).name == name) return i;
    }
    ADD_FAILURE() << name;
    return 0;
  }

  Json Status() const { return cycle_.Status(Json(), now_); }
  std::string Phase() const { return TextField(Status(), "phase"); }

  Json StatusOf(std::string_view container) const {
    const Json status = Status();
    for (const char* kind : {"initContainerStatuses", "containerStatuses"}) {
      for (const Json& one : ListField(status, kind)) {
        if (TextField(one, "name") == container) return one;
      }
    }
    return Json();
  }

  ObservedPod Read() const {
    Json pod = {{"kind", "Pod"}, {"metadata", {{"name", "p"}}}, {"spec", Json::object()}, {"status", Status()}};
    for (const ContainerProgram& one : program_.init_containers) {
      Json container = {{"name", one.name}};
      if (one.sidecar) container["restartPolicy"] = "Always";
      pod["spec"]["initContainers"].push_back(std::move(container));
    }
    const auto read = ReadPod(pod);
    if (!read.ok()) ADD_FAILURE() << read.status();
    return read.value_or(ObservedPod());
  }

  PodLifecycle& cycle() { return cycle_; }
  WallTime now() const { return now_; }

 private:
  const PodProgram program_;
  PodLifecycle cycle_;
  WallTime now_ = kNow;
};

bool HasCondition(const Json& status, const char* type) {
  for (const Json& condition : ListField(status, "conditions")) {
    if (TextField(condition, "type") == type) return TextField(condition, "status") == "True";
  }
  ADD_FAILURE() << type;
  return false;
}

TEST(PodLifecycle, InitContainersOneAfterTheOtherThenAllContainersAtOnce) {
  Played pod({Plain("i"), Plain("j")}, {Plain("a"), Plain("b")});
  EXPECT_EQ(pod.Phase(), "Pending");
  EXPECT_EQ(pod.Next(), "start i");
  EXPECT_EQ(pod.Next(), "");
  EXPECT_EQ(pod.End("i"), "start j");
  EXPECT_EQ(pod.Phase(), "Pending");
  EXPECT_FALSE(HasCondition(pod.Status(), "Initialized"));
  EXPECT_EQ(pod.End("j"), "start a b");
  EXPECT_EQ(pod.Phase(), "Running");
  EXPECT_TRUE(HasCondition(pod.Status(), "Initialized"));
  EXPECT_EQ(pod.End("b"), "");
  EXPECT_EQ(pod.Phase(), "Running");
  EXPECT_FALSE(pod.cycle().over());
  EXPECT_EQ(pod.End("a"), "");
  EXPECT_EQ(pod.Phase(), "Succeeded");
  EXPECT_TRUE(pod.cycle().over());
}

TEST(PodLifecycle, AStartIsToldOnce) {
  Played pod({}, {Plain("a"), Plain("b")});
  EXPECT_THAT(pod.cycle().Next(kNow).start, ElementsAre(0, 1));
  EXPECT_THAT(pod.cycle().Next(kNow).start, IsEmpty());
  pod.cycle().Started(0, kNow);
  EXPECT_EQ(pod.Phase(), "Pending");
  pod.cycle().Started(1, kNow);
  EXPECT_EQ(pod.Phase(), "Running");
  EXPECT_TRUE(pod.cycle().IsRunning(1));
  EXPECT_EQ(pod.cycle().size(), 2);
}

TEST(PodLifecycle, ASidecarGoesOnAndTheNextOneWaitsUntilItHasStarted) {
  Played pod({Plain("i"), Sidecar("s", true), Sidecar("t"), Plain("j")}, {Plain("a")});
  EXPECT_EQ(pod.Next(), "start i");
  EXPECT_EQ(pod.End("i"), "start s");
  EXPECT_EQ(pod.Next(), "");
  EXPECT_EQ(pod.Up("s"), "start t");
  EXPECT_EQ(pod.Next(), "start j");
  EXPECT_EQ(pod.Phase(), "Pending");
  EXPECT_EQ(pod.End("j"), "start a");
  EXPECT_EQ(pod.Phase(), "Running");
}

TEST(PodLifecycle, ItIsPendingAndNotInitializedUntilItsSidecarsHaveStarted) {
  Played pod({Sidecar("s", true)}, {Plain("a")});
  EXPECT_EQ(pod.Next(), "start s");
  EXPECT_EQ(pod.Phase(), "Pending");
  EXPECT_FALSE(HasCondition(pod.Status(), "Initialized"));
  EXPECT_EQ(pod.Up("s"), "start a");
  EXPECT_EQ(pod.Phase(), "Running");
  EXPECT_TRUE(HasCondition(pod.Status(), "Initialized"));
}

TEST(PodLifecycle, SidecarsStopWhenTheContainersHaveEndedTheLastOneFirst) {
  Played pod({Sidecar("s"), Sidecar("t")}, {Plain("a"), Plain("b")});
  pod.Next();
  pod.Next();
  EXPECT_EQ(pod.Next(), "start a b");
  EXPECT_EQ(pod.End("a"), "");
  EXPECT_EQ(pod.End("b"), "stop t");
  EXPECT_EQ(pod.Next(), "");
  EXPECT_EQ(pod.Phase(), "Running");
  EXPECT_EQ(pod.End("t", 143), "stop s");
  EXPECT_FALSE(pod.cycle().over());
  EXPECT_EQ(pod.End("s", 143), "");
  EXPECT_EQ(pod.Phase(), "Succeeded");
}

TEST(PodLifecycle, ASidecarStartsAgainWhateverItsCodeAndHoldsUpNothing) {
  Played pod({Sidecar("s", true), Sidecar("t")}, {Plain("a", Restart::kOnFailure)});
  pod.Next();
  pod.Up("s");
  EXPECT_EQ(pod.Next(), "start a");
  EXPECT_EQ(pod.End("s", 0), "start s");
  EXPECT_EQ(pod.End("s", 1), "again 10");
  EXPECT_EQ(pod.Phase(), "Running");
  EXPECT_EQ(pod.End("t", 1), "start t, again 10");
  EXPECT_EQ(pod.End("a", 1), "start a, again 10");
  EXPECT_TRUE(HasCondition(pod.Status(), "Initialized"));
  EXPECT_EQ(pod.Read().restarts, 1) << "those of sidecars are left out";
  EXPECT_EQ(pod.End("a", 0), "stop t");
  EXPECT_EQ(pod.End("t", 143), "") << "s waits, and does not start again";
  EXPECT_EQ(pod.Phase(), "Succeeded");
}

TEST(PodLifecycle, PausesDoubleTo300SecondsAndStartOverAfterTenMinutes) {
  Played pod({}, {Plain("a", Restart::kAlways)});
  EXPECT_EQ(pod.Next(), "start a");
  EXPECT_EQ(pod.End("a", 1), "start a");
  const auto rise = [&pod](std::initializer_list<int> pauses) {
    for (const int pause : pauses) {
      EXPECT_EQ(pod.End("a", 1), fmt::format("again {}", pause));
      pod.Wait(seconds(pause - 1));
      EXPECT_EQ(pod.Next(), "again 1");
      pod.Wait(seconds(1));
      EXPECT_EQ(pod.Next(), "start a");
    }
  };
  rise({10, 20, 40, 80, 160, 300, 300});
  pod.Wait(seconds(599));
  rise({300});
  pod.Wait(seconds(600));
  EXPECT_EQ(pod.End("a", 0), "start a");
  rise({10, 20});
  EXPECT_EQ(CountField(pod.StatusOf("a"), "restartCount"), 12);
}

TEST(PodLifecycle, TheSoonestPauseCounts) {
  Played pod({}, {Plain("a", Restart::kAlways), Plain("b", Restart::kAlways)});
  pod.Next();
  EXPECT_EQ(pod.End("a", 1), "start a");
  EXPECT_EQ(pod.End("a", 1), "again 10");
  pod.Wait(seconds(4));
  EXPECT_EQ(pod.End("b", 1), "start b, again 6");
  EXPECT_EQ(pod.End("b", 1), "again 6");
}

TEST(PodLifecycle, OneThatRunsAgainIsNotStartedOnceMore) {
  Played pod({Sidecar("s")}, {Plain("a", Restart::kAlways), Plain("b", Restart::kAlways)});
  pod.Next();
  EXPECT_EQ(pod.Next(), "start a b");
  EXPECT_EQ(pod.End("a", 1), "start a");
  EXPECT_EQ(pod.End("s", 1), "start s");
  EXPECT_EQ(pod.Next(), "");
  EXPECT_EQ(pod.End("b", 1), "start b");
  EXPECT_EQ(pod.Next(), "");
}

TEST(PodLifecycle, AContainerStartsAgainByItsRestartPolicy) {
  struct Row {
    Restart restart;
    bool init;
    int code;
    const char *next, *phase;
  };
  for (const Row& row : std::vector<Row>{{Restart::kNever, false, 0, "", "Succeeded"},
                                         {Restart::kNever, false, 1, "", "Failed"},
                                         {Restart::kOnFailure, false, 0, "", "Succeeded"},
                                         {Restart::kOnFailure, false, 1, "start c", "Running"},
                                         {Restart::kAlways, false, 0, "start c", "Running"},
                                         {Restart::kAlways, false, 1, "start c", "Running"},
                                         {Restart::kNever, true, 0, "start a", "Running"},
                                         {Restart::kNever, true, 1, "", "Failed"},
                                         {Restart::kOnFailure, true, 0, "start a", "Running"},
                                         {Restart::kOnFailure, true, 1, "start c", "Pending"},
                                         {Restart::kAlways, true, 0, "start a", "Running"},
                                         {Restart::kAlways, true, 1, "start c", "Pending"}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", static_cast<int>(row.restart), row.init, row.code));
    std::vector<ContainerProgram> init, containers;
    (row.init ? init : containers).push_back(Plain("c", row.restart));
    if (row.init) containers.push_back(Plain("a"));
    Played pod(init, containers);
    EXPECT_EQ(pod.Next(), "start c");
    EXPECT_EQ(pod.End("c", row.code), row.next);
    EXPECT_EQ(pod.Phase(), row.phase);
    EXPECT_EQ(pod.cycle().over(), row.phase != std::string("Running") && row.phase != std::string("Pending"));
  }
}

TEST(PodLifecycle, OneThatFailsAmongOthersFailsThePodOnceAllHaveEnded) {
  Played pod({}, {Plain("a"), Plain("b")});
  pod.Next();
  pod.End("a", 1);
  EXPECT_EQ(pod.Phase(), "Running");
  pod.End("b", 0);
  EXPECT_EQ(pod.Phase(), "Failed");
}

TEST(PodLifecycle, AnInitContainerThatFailsForGoodEndsThePod) {
  Played pod({Sidecar("s"), Plain("i")}, {Plain("a")});
  pod.Next();
  EXPECT_EQ(pod.Next(), "start i");
  EXPECT_EQ(pod.End("i", 3), "stop s");
  EXPECT_EQ(pod.Phase(), "Pending");
  EXPECT_FALSE(pod.cycle().over());
  EXPECT_EQ(pod.End("s", 143), "");
  EXPECT_EQ(pod.Phase(), "Failed");
  EXPECT_TRUE(pod.cycle().over());
  const ObservedPod read = pod.Read();
  ASSERT_THAT(read.ends, SizeIs(2));
  EXPECT_EQ(read.ends[1].exit_code, 3);
  EXPECT_TRUE(read.ends[1].init);
  EXPECT_EQ(read.waiting, "");
  EXPECT_TRUE(pod.StatusOf("s")["state"].contains("terminated")) << pod.StatusOf("s");
  EXPECT_EQ(pod.StatusOf("i")["ready"], false);
}

TEST(PodLifecycle, AFailedProbeStopsAContainerAndItStartsAgainUnlessItNeverDoes) {
  struct Row {
    Restart restart;
    int code;
    const char *next, *phase;
  };
  for (const Row& row : std::vector<Row>{{Restart::kNever, 143, "", "Failed"},
                                         {Restart::kNever, 0, "", "Succeeded"},
                                         {Restart::kOnFailure, 143, "start c", "Running"},
                                         {Restart::kOnFailure, 0, "start c", "Running"},
                                         {Restart::kAlways, 0, "start c", "Running"}}) {
    SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(row.restart), row.code));
    Played pod({}, {Plain("c", row.restart)});
    pod.Next();
    EXPECT_EQ(pod.Fail("c", seconds(5)), "stop c");
    EXPECT_EQ(pod.cycle().Grace(0), seconds(5));
    EXPECT_EQ(pod.Fail("c", seconds(9)), "") << "it is told once";
    EXPECT_EQ(pod.End("c", row.code), row.next);
    EXPECT_EQ(pod.Phase(), row.phase);
  }
}

TEST(PodLifecycle, AfterAFailedProbeTheNextRunIsAnother) {
  Played pod({Sidecar("s")}, {Plain("c", Restart::kOnFailure)});
  pod.Next();
  pod.Next();
  pod.Fail("c", seconds(5));
  EXPECT_EQ(pod.End("c", 0), "start c");
  EXPECT_EQ(pod.cycle().Grace(pod.At("c")), seconds(30)) << "the pod's";
  EXPECT_EQ(pod.Fail("s", std::nullopt), "stop s") << "a sidecar, too";
  EXPECT_EQ(pod.End("s", 0), "start s");
  EXPECT_EQ(pod.End("c", 0), "stop s");
  EXPECT_EQ(pod.End("s", 143), "");
  EXPECT_EQ(pod.Phase(), "Succeeded");
}

TEST(PodLifecycle, DeletedInEachState) {
  const auto make = [] { return Played({Sidecar("s"), Plain("i")}, {Plain("a", Restart::kAlways), Plain("b")}); };
  {
    Played pod = make();
    EXPECT_EQ(pod.Stop(), "") << "nothing has started";
    EXPECT_EQ(pod.Phase(), "Failed");
  }
  {
    Played pod = make();
    pod.Next();
    EXPECT_EQ(pod.Stop(), "stop s") << "a sidecar alone runs";
    EXPECT_EQ(pod.Phase(), "Pending");
    EXPECT_EQ(pod.End("s", 0), "");
    EXPECT_EQ(pod.Phase(), "Failed");
  }
  for (const int code : {0, 143}) {
    Played pod = make();
    pod.Next();
    pod.Next();
    EXPECT_EQ(pod.Stop(), "stop i") << "an init container runs";
    EXPECT_EQ(pod.End("i", code), "stop s");
    EXPECT_FALSE(pod.cycle().over());
    EXPECT_EQ(pod.End("s", 0), "");
    EXPECT_EQ(pod.Phase(), "Failed");
  }
  for (const int code : {0, 143}) {
    Played pod = make();
    pod.Next();
    pod.Next();
    EXPECT_EQ(pod.End("i"), "start a b");
    EXPECT_EQ(pod.Stop(), "stop a b") << "all run";
    EXPECT_EQ(pod.Next(), "") << "it is told once";
    EXPECT_EQ(pod.End("a", code), "");
    EXPECT_EQ(pod.End("b", 0), "stop s");
    EXPECT_EQ(pod.Phase(), "Running");
    EXPECT_EQ(pod.End("s", 143), "");
    EXPECT_EQ(pod.Phase(), code == 0 ? "Succeeded" : "Failed");
  }
}

TEST(PodLifecycle, DeletedInAPauseItStartsNothing) {
  Played pod({}, {Plain("a", Restart::kAlways)});
  pod.Next();
  pod.End("a", 1);
  EXPECT_EQ(pod.End("a", 7), "again 10");
  EXPECT_EQ(pod.Stop(), "");
  EXPECT_EQ(pod.Phase(), "Failed");
  EXPECT_EQ(pod.StatusOf("a")["state"]["terminated"]["exitCode"], 7);
  pod.Wait(seconds(20));
  EXPECT_EQ(pod.Next(), "");
}

TEST(PodLifecycle, StoppedForAReasonItHasFailed) {
  Played pod({}, {Plain("a")});
  pod.Next();
  EXPECT_EQ(pod.Stop("DeadlineExceeded", "it ran too long"), "stop a");
  EXPECT_EQ(pod.Stop("Other", "comes too late"), "");
  EXPECT_EQ(pod.End("a", 0), "");
  const ObservedPod read = pod.Read();
  EXPECT_EQ(read.phase, "Failed");
  EXPECT_EQ(read.reason, "DeadlineExceeded");
  EXPECT_EQ(read.message, "it ran too long");
}

TEST(PodLifecycle, WhatIsOverStaysAsItEnded) {
  Played pod({}, {Plain("a")});
  pod.Next();
  pod.End("a", 0);
  const Json before = pod.Status();
  EXPECT_EQ(pod.Stop("DeadlineExceeded", "it ran too long"), "");
  EXPECT_EQ(pod.Status(), before);
  EXPECT_EQ(pod.Phase(), "Succeeded");
}

TEST(PodLifecycle, OneThatCannotStartHasEnded) {
  Played pod({}, {Plain("a", Restart::kOnFailure)});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(pod.cycle().Next(kNow).start, ElementsAre(0));
    pod.cycle().Ended(0, {.exit_code = 127, .reason = "ContainerCannotRun", .message = "x: no such file"}, kNow);
    EXPECT_EQ(pod.StatusOf("a")["lastState"]["terminated"]["reason"], "ContainerCannotRun");
  }
  EXPECT_EQ(pod.Next(), "again 10");
  const ObservedPod read = pod.Read();
  ASSERT_THAT(read.ends, SizeIs(1));
  EXPECT_EQ(read.ends[0].exit_code, 127);
  EXPECT_EQ(read.ends[0].reason, "ContainerCannotRun");
  EXPECT_EQ(read.ends[0].text, "x: no such file");
  EXPECT_EQ(read.restarts, 1);
}

TEST(PodLifecycle, ReadyByItsProbes) {
  ContainerProgram both = Plain("a"), readiness = Plain("b"), startup = Plain("c");
  both.startup = both.readiness = readiness.readiness = startup.startup = Probe{};
  Played pod({}, {both, readiness, startup, Plain("d")});
  const auto ready = [&pod] {
    std::string names;
    for (const char* name : {"a", "b", "c", "d"}) {
      if (FlagField(pod.StatusOf(name), "ready", false)) names += name;
    }
    return names;
  };
  EXPECT_EQ(ready(), "");
  pod.Next();
  EXPECT_EQ(ready(), "d");
  pod.cycle().Ready(0, true);
  EXPECT_EQ(ready(), "d") << "a has not started";
  pod.Up("a");
  pod.Up("c");
  EXPECT_EQ(ready(), "cd");
  pod.cycle().Ready(1, true);
  EXPECT_FALSE(pod.Read().ready);
  pod.cycle().Ready(0, true);
  EXPECT_EQ(ready(), "abcd");
  EXPECT_TRUE(pod.Read().ready);
  EXPECT_TRUE(HasCondition(pod.Status(), "ContainersReady"));
  pod.cycle().Ready(0, false);
  EXPECT_EQ(ready(), "bcd");
  EXPECT_EQ(pod.StatusOf("a")["started"], true);
  pod.End("b", 0);
  pod.cycle().Ready(1, true);
  pod.cycle().StartupDone(1);
  EXPECT_EQ(ready(), "cd") << "b has ended";
}

TEST(PodLifecycle, ASidecarThatIsNotReadyKeepsThePodFromIt) {
  ContainerProgram sidecar = Sidecar("s");
  sidecar.readiness = Probe{};
  Played pod({sidecar, Plain("i")}, {Plain("a")});
  pod.Next();
  pod.Next();
  EXPECT_EQ(pod.StatusOf("i")["ready"], false);
  EXPECT_EQ(pod.End("i"), "start a");
  EXPECT_EQ(pod.StatusOf("i")["ready"], true);
  EXPECT_FALSE(pod.Read().ready);
  pod.cycle().Ready(0, true);
  EXPECT_TRUE(pod.Read().ready);
}

TEST(PodLifecycle, StatesOfAContainer) {
  Played pod({}, {Plain("a", Restart::kOnFailure)});
  EXPECT_EQ(pod.StatusOf("a")["state"], Json({{"waiting", {{"reason", "PodInitializing"}}}}));
  EXPECT_FALSE(pod.Read().ran);
  EXPECT_EQ(pod.Read().waiting, "");
  pod.Next();
  EXPECT_EQ(pod.StatusOf("a")["state"], Json({{"running", {{"startedAt", IsoMicroTime(kNow)}}}}));
  EXPECT_TRUE(pod.Read().ran);
  pod.Wait(seconds(5));
  pod.cycle().Ended(0, {.exit_code = 137, .oom = true}, pod.now());
  const Json first = {{"terminated",
                       {{"exitCode", 137},
                        {"reason", "OOMKilled"},
                        {"startedAt", IsoMicroTime(kNow)},
                        {"finishedAt", IsoMicroTime(pod.now())}}}};
  EXPECT_EQ(pod.StatusOf("a")["lastState"], first);
  EXPECT_EQ(pod.StatusOf("a")["state"]["waiting"]["reason"], "ContainerCreating");
  EXPECT_EQ(pod.Read().waiting, "") << "it starts again at once";
  ASSERT_THAT(pod.Read().ends, SizeIs(1));
  EXPECT_EQ(pod.Read().ends[0].reason, "OOMKilled");
  EXPECT_EQ(pod.Read().ends[0].finished, pod.now());
  EXPECT_EQ(pod.Next(), "start a");
  EXPECT_EQ(pod.StatusOf("a")["lastState"], first);
  pod.cycle().Ended(0, {.exit_code = 4, .message = "why"}, pod.now());
  EXPECT_EQ(pod.Read().waiting_reason, "CrashLoopBackOff");
  EXPECT_EQ(pod.Read().waiting, "CrashLoopBackOff: container a: back-off 10 s before it starts again");
  EXPECT_EQ(pod.Read().ends[0].exit_code, 4);
  EXPECT_EQ(pod.Read().ends[0].reason, "Error");
  EXPECT_EQ(pod.Read().ends[0].text, "why");
  pod.Wait(seconds(10));
  pod.Next();
  EXPECT_EQ(pod.Read().waiting, "");
  EXPECT_EQ(pod.Read().restarts, 2);
  pod.End("a", 0);
  EXPECT_EQ(pod.StatusOf("a")["state"]["terminated"]["reason"], "Completed");
  EXPECT_EQ(pod.StatusOf("a")["lastState"]["terminated"]["exitCode"], 4);
  EXPECT_EQ(pod.Read().phase, "Succeeded");
}

TEST(PodLifecycle, ATerminationMessageIsReadAgain) {
  Played pod({}, {Plain("a")});
  pod.Next();
  TerminationMessage message{.exit_code = 9, .exit_class = ExitClass::kFatal, .reason = "it could not go on"};
  pod.cycle().Ended(0, {.exit_code = 9, .message = EncodeTerminationMessage(message)}, kNow);
  ASSERT_THAT(pod.Read().ends, SizeIs(1));
  ASSERT_TRUE(pod.Read().ends[0].message.has_value());
  EXPECT_EQ(pod.Read().ends[0].message->reason, "it could not go on");
}

TEST(PodLifecycle, ConditionsKeepTheirTimesUntilTheyChange) {
  Played pod({}, {Plain("a")});
  const Json pending = pod.Status();
  pod.Wait(seconds(5));
  pod.Next();
  const Json running = pod.cycle().Status(pending, pod.now());
  pod.Wait(seconds(5));
  EXPECT_EQ(pod.cycle().Status(running, pod.now()), running);
  std::vector<std::string> times;
  for (const Json& condition : running["conditions"]) {
    const bool is_old = TextField(condition, "lastTransitionTime") == IsoMicroTime(kNow);
    times.push_back(fmt::format("{} {} {}", TextField(condition, "type"), TextField(condition, "status"),
                                is_old ? "as before" : "now"));
  }
  EXPECT_THAT(times, ElementsAre("PodScheduled True as before", "Initialized True as before",
                                 "ContainersReady True now", "Ready True now"));
  pod.End("a", 0);
  EXPECT_FALSE(HasCondition(pod.cycle().Status(running, pod.now()), "Ready"));
  EXPECT_FALSE(pod.Read().ready);
}

TEST(PodLifecycle, TheStatusHasAddressAndStartTime) {
  Played pod({}, {Plain("a")});
  pod.Wait(seconds(5));
  const Json status = pod.Status();
  EXPECT_EQ(status["podIP"], "127.1.0.2");
  EXPECT_EQ(status["hostIP"], "127.1.0.2");
  EXPECT_EQ(status["podIPs"], Json::array({{{"ip", "127.1.0.2"}}}));
  EXPECT_EQ(status["startTime"], IsoMicroTime(kNow));
  EXPECT_FALSE(status.contains("reason"));
  EXPECT_FALSE(status.contains("initContainerStatuses"));
}

}  // namespace
}  // namespace muster::local
