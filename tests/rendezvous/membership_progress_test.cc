// SPDX-License-Identifier: Apache-2.0
// Restarts that the budget alone does not decide about: those without progress, and those that cost nothing.
#include "tests/rendezvous/stage.h"

namespace muster::rendezvous {
namespace {

using testing::HasSubstr;

TEST(NoProgress, StopsAfterSoManyRestartsInARow) {
  JobOptions options = Job(1, 1, 100);
  options.no_progress_limit = 2;
  Stage s(options);
  s.Join("a");
  for (int life : {10, 9, 20, 21}) {  // 9 and 21 are no real gain over 10 and 20
    s.Fails("a", 3, false, seconds(life));
    s.Ready("a");
    ASSERT_FALSE(s.End("a")) << life;
  }
  s.Fails("a", 3, false, seconds(5));
  s.Ready("a");
  ASSERT_TRUE(s.End("a"));
  EXPECT_EQ(s.End("a")->exit_code, 93);
  EXPECT_THAT(s.End("a")->reason, HasSubstr("no progress over 2 restarts in a row"));
}

TEST(NoProgress, ALifeOfTenMinutesIsProgressHoweverLongAnotherWas) {
  JobOptions options = Job(1, 1, 100);
  options.no_progress_limit = 1;
  Stage s(options);
  s.Join("a");
  for (int life : {36000, 601, 600}) {
    s.Fails("a", 3, false, seconds(life));
    s.Ready("a");
    ASSERT_FALSE(s.End("a")) << life;
  }
  s.Fails("a", 3, false, seconds(599));
  s.Ready("a");
  EXPECT_EQ(s.End("a")->exit_code, 93);
}

TEST(NoProgress, AReportedStepCountsMoreThanALongerLife) {
  JobOptions options = Job(1, 1, 100);
  options.no_progress_limit = 1;
  Stage s(options);
  s.Join("a");
  s.Fails("a", 3, false, seconds(10), 100);
  s.Ready("a");
  s.Fails("a", 3, false, seconds(1), 101);
  s.Ready("a");
  ASSERT_FALSE(s.End("a"));
  s.Fails("a", 3, false, seconds(99), 101);
  s.Ready("a");
  EXPECT_EQ(s.End("a")->exit_code, 93);
}

TEST(NoProgress, TheStepOfANodeThatWasStoppedCountsToo) {  // often only rank 0 reports steps
  JobOptions options = Job(2, 2, 100);
  options.no_progress_limit = 1;
  Stage s(options);
  s.Join("a");
  s.Join("b");
  for (int step : {100, 101, 102}) {
    s.Fails("b", 3, false, seconds(5));
    s.Ready("b");
    s.Ready("a", step);
    ASSERT_FALSE(s.End("b")) << step;
  }
  s.Fails("b", 3, false, seconds(99));
  s.Ready("b");
  s.Ready("a", 102);
  ASSERT_TRUE(s.End("b"));
  EXPECT_EQ(s.End("b")->exit_code, 93);
}

// An MPI launcher is the only node of its run.
TEST(LostPods, OfAnMpiLauncherAreNotChargedAsOftenAsTheBudgetAllows) {
  const struct {
    const char* what;
    int code;
    int64_t pid;
    RestartPolicy policy;
    bool free;
  } rows[] = {{"the connection was lost", 202, 0, RestartPolicy::kExitCode, true},
              {"the pod is being stopped", 143, 0, RestartPolicy::kOnFailure, true},
              {"its daemon ended with that code", 203, 0, RestartPolicy::kExitCode, false},
              {"a worker ended with that code", 202, 7, RestartPolicy::kExitCode, false}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    JobOptions options = Job(1, 1, 2);
    options.policy = row.policy;
    Stage s(options);
    s.Join("a");
    const auto fails = [&] {
      WorkerFailure failure = Failure(row.code, 0, false);
      failure.pid = row.pid;
      s.Says("a", Report{s.state.round.id, {failure}, seconds(5), {}});
      s.Ready("a");
    };
    for (int restart = 1; restart <= 4; ++restart) {
      fails();
      const bool ends = !row.free && restart == 3;
      ASSERT_EQ(s.End("a").has_value(), ends);
      if (ends) break;
      EXPECT_EQ(s.Seat("a").restart_count, row.free ? std::max(0, restart - 2) : restart);
    }
    if (!row.free) continue;
    fails();
    EXPECT_EQ(s.End("a")->exit_code, row.code);
  }
  JobOptions never = Job(1, 1, 2);
  never.policy = RestartPolicy::kNever;
  Stage s(never);
  s.Join("a");
  WorkerFailure lost = Failure(202, 0, false);
  lost.pid = 0;
  s.Says("a", Report{s.state.round.id, {lost}, seconds(5), {}});
  s.Ready("a");
  EXPECT_EQ(s.End("a")->exit_code, 202);
}

}  // namespace
}  // namespace muster::rendezvous
