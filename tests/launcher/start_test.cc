// SPDX-License-Identifier: Apache-2.0
// Tests what a worker inherits, and the errors if it cannot be started.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "launcher/process.h"
#include "tests/launcher/harness.h"

namespace muster::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class StartTest : public Harness {
 protected:
  std::string Script(const std::string& name, const std::string& text, mode_t mode = 0755) const {
    std::ofstream(Path(name)) << text;
    chmod(Path(name).c_str(), mode);
    return Path(name);
  }
};

TEST_F(StartTest, ExitCodeAndOutputArrive) {
  ExitRecord record = RunOne(Shell("echo hello; echo oops >&2; exit 3", 5));
  EXPECT_EQ(record.exit_code, 3);
  EXPECT_EQ(record.signal, 0);
  EXPECT_EQ(record.local_rank, 5);
  EXPECT_EQ(record.pid, group_->pids()[0]);
  EXPECT_FALSE(record.after_stop);
  EXPECT_EQ(exits_.size(), 1u);
  EXPECT_FALSE(group_->running());
  EXPECT_EQ(Out(5), "hello\n");
  EXPECT_EQ(Err(5), "oops\n");
}

TEST_F(StartTest, EveryExitCodeIsKept) {
  std::vector<WorkerSpec> specs;
  for (int code : {0, 1, 2, 64, 126, 127, 128, 200, 255}) specs.push_back(Shell(fmt::format("exit {}", code), code));
  ASSERT_TRUE(Start(specs).ok());
  ASSERT_TRUE(UntilGone());
  ASSERT_EQ(group_->records().size(), specs.size());
  for (const ExitRecord& record : group_->records()) EXPECT_EQ(record.exit_code, record.local_rank);
}

TEST_F(StartTest, SignalsAreKept) {
  ExitRecord record = RunOne(Shell("kill -USR1 $$"));
  EXPECT_EQ(record.signal, SIGUSR1);
  EXPECT_EQ(record.exit_code, 128 + SIGUSR1);
  EXPECT_FALSE(record.core_dumped);
}

TEST_F(StartTest, UsageIsMeasured) {
  ExitRecord record = RunOne(Probe({"work"}));
  EXPECT_EQ(record.exit_code, 0);
  EXPECT_GE(record.max_rss_bytes, 64 << 20);
  EXPECT_GT(record.cpu_time.count(), 0);
  EXPECT_GT(record.lived.count(), 0);
}

TEST_F(StartTest, EnvironmentIsExact) {
  WorkerSpec spec = Spec({"env", "-0"});
  setenv("MUSTER_TEST_LEAK", "1", 1);
  spec.environment = {"PATH=/usr/bin:/bin", "B=x y=z", "EMPTY=", "A=\xff"};
  RunOne(spec);
  std::string expected;
  for (const std::string& entry : spec.environment) expected += entry + '\0';
  EXPECT_EQ(Out(), expected);
}

TEST_F(StartTest, ArgumentsAreExact) {
  RunOne(Spec({"printf", "[%s]", "", "a b", "$x", "*"}));
  EXPECT_EQ(Out(), "[][a b][$x][*]");
}

TEST_F(StartTest, SignalsAreRestored) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGTTOU, SIG_IGN);
  signal(SIGUSR2, [](int) {});
  struct {
    void (*handler)(int) = SIG_IGN;
    char rest[56] = {};
  } ignore;  // the kernel's struct sigaction: glibc does not let its own two signals be set
  for (int number : {32, 33}) syscall(SYS_rt_sigaction, number, &ignore, nullptr, NSIG / 8);
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &all, &before);
  RunOne(Probe({"signals"}));
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, &before, &after);
  EXPECT_TRUE(sigismember(&after, SIGTERM));  // the mask of this process is unchanged
  EXPECT_EQ(Out(), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_F(StartTest, OwnSessionAndGroupAndDeathSignal) {
  RunOne(Probe({"identity"}));
  EXPECT_EQ(Out(), "leader=1 session=1 death_signal=9\n");
}

TEST_F(StartTest, NoDescriptorLeaks) {
  int leak = open("/dev/null", O_RDONLY);  // without close-on-exec
  ASSERT_TRUE(Start({Probe({"descriptors"}, 0), Probe({"descriptors"}, 1)}).ok());
  ASSERT_TRUE(UntilGone());
  close(leak);
  EXPECT_EQ(Out(0), "0 1 2 \n");
  EXPECT_EQ(Out(1), "0 1 2 \n");
}

TEST_F(StartTest, AWorkerStartsInItsWorkingDirectory) {
  WorkerSpec spec = Spec({"pwd"});
  spec.working_directory = "/proc";
  RunOne(spec);
  EXPECT_EQ(Out(), "/proc\n");

  spec.working_directory = Path("missing");
  Status status = Start({spec});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(status)), HasSubstr(spec.working_directory));
}

TEST_F(StartTest, RelativeCommandsCountFromTheWorkingDirectory) {
  Script("here", "#!/bin/sh\necho here\n");
  WorkerSpec spec = Spec({"./here"});
  spec.working_directory = folder_;
  RunOne(spec);
  EXPECT_EQ(Out(), "here\n");
  spec.argv = {"here"};
  spec.environment = {"PATH=:/usr/bin"};
  RunOne(spec);
  EXPECT_EQ(Out(), "here\n");
}

TEST_F(StartTest, PathOfTheWorkerIsSearched) {
  std::filesystem::create_directory(Path("bin"));
  std::filesystem::create_directory(Path("denied"));
  Script("bin/tool", "#!/bin/sh\necho mine\n");
  Script("denied/tool", "#!/bin/sh\necho denied\n", 0644);
  WorkerSpec spec = Spec({"tool"});
  spec.environment = {"PATH=" + Path("denied") + ":" + Path("bin")};
  RunOne(spec);
  EXPECT_EQ(Out(), "mine\n");
}

std::vector<std::string> LongInSum() {
  std::vector<std::string> words(101, std::string(99'999, 'x'));
  words[0] = "echo";
  return words;
}

TEST_F(StartTest, ACommandThatCannotStartIsNamed) {
  struct {
    std::string name;
    std::vector<std::string> argv;
    absl::StatusCode code;
    std::string says;
  } rows[] = {
      {"not in PATH",
       {"no-such-tool"},
       absl::StatusCode::kNotFound,
       "'no-such-tool' was not found in PATH (/usr/bin:/bin)"},
      {"no such file", {Path("nothing")}, absl::StatusCode::kNotFound, "nothing' was not found"},
      {"not executable",
       {Script("plain", "#!/bin/sh\n", 0644)},
       absl::StatusCode::kPermissionDenied,
       "cannot be executed"},
      {"a directory", {folder_}, absl::StatusCode::kPermissionDenied, "cannot be executed"},
      {"no format", {Script("text", "hello\n")}, absl::StatusCode::kPermissionDenied, "exec format error"},
      {"no interpreter", {Script("odd", "#!/no/such/shell\n")}, absl::StatusCode::kNotFound, "interpreter"},
      {"a long argument",
       {"echo", "a", std::string(4 << 20, 'x')},
       absl::StatusCode::kPermissionDenied,
       "its argument 2 is too long (4194304 bytes, at most 131071); pass it in a file"},
      {"long in sum", LongInSum(), absl::StatusCode::kPermissionDenied,
       "its arguments (10000005 bytes) and environment"},
      {"empty", {""}, absl::StatusCode::kNotFound, "empty"},
      {"nothing", {}, absl::StatusCode::kInvalidArgument, "empty"},
  };
  for (const auto& row : rows) {
    Status status = Start({Shell("exec sleep 1000", 0), Spec(row.argv, 1)});
    EXPECT_EQ(status.code(), row.code) << row.name << status;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(row.says)) << row.name;
    EXPECT_THAT(std::string(Message(status)), HasSubstr("local rank 1")) << row.name;
    EXPECT_FALSE(group_->running()) << row.name;
  }
  // The first worker of each group was killed.
  EXPECT_TRUE(Until([&] { return reaper_->watched().empty(); }));
}

TEST_F(StartTest, AStartWithoutDescriptorsLeavesNoWorker) {
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  std::vector<WorkerSpec> specs;
  for (int i = 0; i < 32; ++i) {
    specs.push_back(Shell("exec sleep 1000", i));
    specs.back().output.err = {.console = false, .keep_tail = true};
  }
  // Raises the limit until the start succeeds, so that the steps of the start fail one after the other.
  int failures = 0;
  for (rlim_t limit = OpenDescriptors() + 2; limit < 120; limit += 3) {
    rlimit low{limit, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    Status status = Start(specs);
    setrlimit(RLIMIT_NOFILE, &before);
    if (status.ok()) break;
    ++failures;
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    ASSERT_TRUE(Until([&] { return reaper_->watched().empty(); }));
  }
  EXPECT_GT(failures, 5);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), group_->running() ? 0 : -1);
}

TEST_F(StartTest, SixtyFourWorkersStartAndEnd) {
  std::vector<WorkerSpec> specs;
  for (int i = 0; i < 64; ++i) specs.push_back(Shell(fmt::format("echo {0}; exit {0}", i), i));
  ASSERT_TRUE(Start(specs).ok());
  ASSERT_TRUE(UntilGone());
  EXPECT_EQ(exits_.size(), 64u);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(Out(i), fmt::format("{}\n", i));
}

TEST_F(StartTest, FiftyRoundsLeakNothing) {
  size_t before = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<WorkerSpec> specs;
    for (int i = 0; i < 4; ++i) {
      specs.push_back(Shell("echo line; exec sleep 1000", i));
      specs.back().output.err = {.prefix = "[x]:", .keep_tail = true};
    }
    ASSERT_TRUE(Start(specs).ok());
    group_->Stop(SIGTERM, std::chrono::seconds(30));
    ASSERT_TRUE(UntilGone());
    EXPECT_TRUE(exits_.empty());
    EXPECT_EQ(group_->records().size(), 4u);
    group_.reset();
    loop_.poll();
    if (round == 0) before = OpenDescriptors();
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(StartTest, OrderOfDeathsIsKept) {
  // All workers end while the loop does not run.
  std::vector<WorkerSpec> specs;
  for (int i = 0; i < 4; ++i) specs.push_back(Shell("exec sleep 1000", i));
  ASSERT_TRUE(Start(specs).ok());
  loop_.poll();
  for (int i : {2, 0, 3, 1}) {
    siginfo_t info{};
    pid_t pid = static_cast<pid_t>(group_->pids()[i]);
    kill(pid, SIGKILL);
    waitid(P_PID, pid, &info, WEXITED | WNOWAIT);
  }
  ASSERT_TRUE(UntilGone());
  std::vector<int> order;
  for (const ExitRecord& record : exits_) order.push_back(record.local_rank);
  EXPECT_THAT(order, ElementsAre(2, 0, 3, 1));
}

TEST(ProcessTest, WorkersDieWithTheirLauncher) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  pid_t launcher = fork();
  if (launcher == 0) {
    dup2(ends[1], 1);
    boost::asio::io_context loop;
    Reaper reaper(loop);
    Console console(loop);
    WorkerGroup group(loop, reaper, console, {});
    WorkerSpec spec;
    spec.argv = {"sh", "-c", "trap '' TERM HUP; echo up; exec sleep 1000"};
    spec.environment = {"PATH=/usr/bin:/bin"};
    if (!group.Start({spec, spec}).ok()) _exit(1);
    loop.run();
    _exit(0);
  }
  const Killed killed{launcher};
  close(ends[1]);
  std::string seen;
  char buffer[64];
  while (seen != "up\nup\n") {
    ssize_t got = read(ends[0], buffer, sizeof buffer);
    ASSERT_GT(got, 0);
    seen.append(buffer, got);
  }
  kill(launcher, SIGKILL);
  EXPECT_EQ(read(ends[0], buffer, sizeof buffer), 0);  // no process holds the writing end
  close(ends[0]);
}

}  // namespace
}  // namespace muster::launcher
