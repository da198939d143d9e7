// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/lease.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kPodA[] = "host=pod-a pid=7 boot=x id=1 locked=1 beat=3\n";
constexpr char kLaterBeat[] = "host=pod-a pid=7 boot=x id=1 locked=1 beat=4\n";

TEST(LeaseHolder, IsNamed) {
  EXPECT_EQ(LeaseHolderText(kPodA), "pod-a (process 7)");
  for (const char* text : {"", "\n", "nonsense", "host= pid=7", "hostess=x"})
    EXPECT_EQ(LeaseHolderText(text), "somebody");
}

TEST(LeaseDecision, TakesAFreeSilentOrDeadLease) {
  struct Look {
    seconds at;
    LeaseSight sight;
    std::optional<uint64_t> take;
    std::string reason;
  };
  struct Case {
    std::string name;
    std::vector<Look> looks;
  };
  const std::vector<Case> cases = {
      {"nobody has it", {{seconds(0), {}, 1, ""}}},
      {"beats are waited for",
       {{seconds(0), {4, kPodA, false}, {}, ""},
        {seconds(29), {4, kPodA, false}, {}, ""},
        {seconds(30), {4, kLaterBeat, false}, {}, ""},
        {seconds(59), {4, kLaterBeat, false}, {}, ""}}},
      {"a silent one is taken over",
       {{seconds(0), {4, kPodA, false}, {}, ""},
        {seconds(30), {4, kPodA, false}, 5, "pod-a (process 7) has been silent for 30 s"}}},
      {"a dead one at once",
       {{seconds(0), {4, kPodA, true}, 5, "pod-a (process 7) has ended without releasing the folder"}}},
      {"another number begins anew",
       {{seconds(0), {4, kPodA, false}, {}, ""},
        {seconds(20), {5, kPodA, false}, {}, ""},
        {seconds(40), {5, kPodA, false}, {}, ""},
        {seconds(50), {5, kPodA, false}, 6, "pod-a (process 7) has been silent for 30 s"}}},
      {"given back", {{seconds(0), {4, kPodA, false}, {}, ""}, {seconds(3), {}, 1, ""}}},
      {"one that was killed before it wrote",
       {{seconds(0), {1, "", false}, {}, ""}, {seconds(31), {1, "", false}, 2, "somebody has been silent for 31 s"}}},
  };
  for (const Case& row : cases) {
    LeaseWatch watch;
    for (const Look& look : row.looks) {
      SCOPED_TRACE(fmt::format("{} at {} s", row.name, look.at.count()));
      LeaseDecision decision = Decide(&watch, look.sight, LeaseRules(), TimePoint(look.at));
      EXPECT_EQ(decision.take, look.take);
      EXPECT_EQ(decision.reason, look.reason);
    }
  }
}

// Real files and locks. Several holders in one process act like several processes: flock is per open file.
class LeaseFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "muster-lease-XXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    folder_ = path;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  struct Holder {
    std::unique_ptr<Lease> lease;
    bool held = false;
    Status lost, unwritable;
    std::vector<std::string> said;
  };
  std::unique_ptr<Holder> Start(LeaseRules rules) {
    auto holder = std::make_unique<Holder>();
    Lease::Events events;
    events.held = [at = holder.get()] { at->held = true; };
    events.lost = [at = holder.get()](Status status) { at->lost = std::move(status); };
    events.unwritable = [at = holder.get()](Status status) { at->unwritable = std::move(status); };
    events.say = [at = holder.get()](const std::string& text) { at->said.push_back(text); };
    Descriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    holder->lease = std::make_unique<Lease>(loop_, std::move(folder), folder_, rules, std::move(events));
    holder->lease->Begin();
    return holder;
  }
  bool RunUntil(const std::function<bool()>& condition) {
    const TimePoint deadline = MonotonicClock::now() + seconds(60);
    while (!condition() && MonotonicClock::now() < deadline) loop_.run_one_for(milliseconds(500));
    return condition();
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) names.push_back(entry.path().filename());
    return names;
  }
  void Write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }

  asio::io_context loop_;
  std::string folder_;
  const LeaseRules quick_{milliseconds(20), milliseconds(200), milliseconds(10)};
  const LeaseRules patient_{milliseconds(20), seconds(3600), milliseconds(10)};
};

TEST_F(LeaseFolder, OneAfterTheOther) {
  auto first = Start(patient_);
  ASSERT_TRUE(RunUntil([&] { return first->held; }));
  auto second = Start(patient_);
  ASSERT_TRUE(RunUntil([&] { return !second->said.empty(); }));
  EXPECT_FALSE(second->held);
  EXPECT_NE(second->said[0].find(fmt::format("(process {}), which is filling", getpid())), std::string::npos);
  EXPECT_TRUE(first->lease->StillHeld().value_or(false));
  first.reset();
  ASSERT_TRUE(RunUntil([&] { return second->held; }));
  EXPECT_EQ(Files(), std::vector<std::string>{"lease.1"});
  second.reset();
  EXPECT_TRUE(Files().empty());
}

TEST_F(LeaseFolder, ADeadHolderOnThisMachineIsTakenOverAtOnce) {
  const std::string boot = [] {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string text;
    file >> text;
    return text;
  }();
  if (boot.empty()) GTEST_SKIP() << "this machine tells no boot id";
  Write("lease.3", fmt::format("host=old pid=1 boot={} id=2 locked=1 beat=9\n", boot));
  auto next = Start(patient_);
  ASSERT_TRUE(RunUntil([&] { return next->held; }));
  EXPECT_EQ(next->said,
            std::vector<std::string>{"old (process 1) has ended without releasing the folder; taking over"});
  EXPECT_EQ(Files(), std::vector<std::string>{"lease.4"});
}

TEST_F(LeaseFolder, ASilentHolderElsewhereIsTakenOver) {
  Write("lease.3", "host=old pid=1 boot=another id=2 locked=1 beat=9\n");
  auto next = Start(quick_);
  ASSERT_TRUE(RunUntil([&] { return next->held; }));
  EXPECT_EQ(Files(), std::vector<std::string>{"lease.4"});
}

TEST_F(LeaseFolder, APipeInPlaceOfALeaseIsASilentHolder) {
  ASSERT_EQ(mkfifo((folder_ + "/lease.3").c_str(), 0600), 0);
  auto next = Start(quick_);
  ASSERT_TRUE(RunUntil([&] { return next->held; }));
  EXPECT_EQ(Files(), std::vector<std::string>{"lease.4"});
}

TEST_F(LeaseFolder, WhoWasTakenOverIsTold) {
  auto first = Start(quick_);
  ASSERT_TRUE(RunUntil([&] { return first->held; }));
  Write("lease.2", "host=other pid=1 boot=another id=2 locked=1 beat=1\n");
  EXPECT_FALSE(first->lease->StillHeld().value_or(true));
  ASSERT_TRUE(RunUntil([&] { return !first->lost.ok(); }));
  EXPECT_EQ(first->lost.code(), absl::StatusCode::kUnavailable);
  first.reset();
  EXPECT_EQ(Files().size(), 2u) << "what is not ours any more is not touched";
}

TEST_F(LeaseFolder, BeatsWhileTheLoopIsKeptAndIsTold) {
  auto holder = Start(quick_);
  ASSERT_TRUE(RunUntil([&] { return holder->held; }));
  const auto text = [this] {
    std::ifstream file(folder_ + "/lease.1");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto without_the_loop = [](const std::function<bool()>& condition) {
    const TimePoint deadline = MonotonicClock::now() + seconds(60);
    while (!condition() && MonotonicClock::now() < deadline) {
    }
    return condition();
  };
  const std::string before = text();
  EXPECT_TRUE(without_the_loop([&] { return holder->lease->StayHeld().ok() && text() != before; }));
  Write("lease.2", "host=other pid=1 boot=another id=2 locked=1 beat=1\n");
  EXPECT_TRUE(without_the_loop([&] { return absl::IsUnavailable(holder->lease->StayHeld()); }));
}

// The process has no free descriptors, so no folder can be opened.
TEST_F(LeaseFolder, AFolderThatCannotBeReadIsLookedAtAgain) {
  auto holder = Start(patient_);
  ASSERT_TRUE(RunUntil([&] { return holder->held; }));
  auto waiter = Start(patient_);
  ASSERT_TRUE(RunUntil([&] { return !waiter->said.empty(); }));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto held = holder->lease->StillHeld();
  for (int turn = 0; turn < 20; ++turn) loop_.run_one();  // beats of the holder, looks of the waiter
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(held.status().code(), absl::StatusCode::kResourceExhausted) << held.status();
  EXPECT_TRUE(holder->lost.ok()) << holder->lost;
  EXPECT_TRUE(waiter->lost.ok()) << waiter->lost;
  EXPECT_FALSE(waiter->held);
  EXPECT_TRUE(holder->lease->StillHeld().value_or(false));
  EXPECT_EQ(Files(), std::vector<std::string>{"lease.1"});
}

TEST_F(LeaseFolder, AmongManyOneHoldsItAtATime) {
  std::vector<std::unique_ptr<Holder>> holders;
  for (int i = 0; i < 8; ++i) holders.push_back(Start(patient_));
  int done = 0;
  while (done < 8) {
    ASSERT_TRUE(RunUntil([&] {
      return std::any_of(holders.begin(), holders.end(), [](const auto& holder) { return holder && holder->held; });
    }));
    int now = 0;
    for (auto& holder : holders) now += holder && holder->held;
    ASSERT_EQ(now, 1);
    for (auto& holder : holders) {
      if (holder && holder->held) holder.reset();
    }
    ++done;
  }
}

TEST_F(LeaseFolder, AFolderThatCannotBeWrittenIsNobodys) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  chmod(folder_.c_str(), 0555);
  auto holder = Start(quick_);
  ASSERT_TRUE(RunUntil([&] { return !holder->unwritable.ok(); }));
  EXPECT_TRUE(holder->lost.ok());
  EXPECT_NE(Message(holder->unwritable).find("lease.1"), std::string_view::npos);
}

}  // namespace
}  // namespace muster::initializers
