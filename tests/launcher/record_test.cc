// SPDX-License-Identifier: Apache-2.0
// Tests exit records: error files, the OOM counter, the core flag.
#include "launcher/exit_record.h"

#include <sys/wait.h>

#include "launcher/oom_counter.h"
#include "tests/launcher/harness.h"

namespace muster::launcher {
namespace {

TEST(ErrorFileTest, ReadsEachFormOfPyTorchsErrorFiles) {
  struct {
    std::string text;
    std::string message;
    std::string callstack;
    int64_t seconds;
  } rows[] = {
      {R"({"message": {"message": "ValueError: boom", "extraInfo": {"py_callstack": "Traceback\n x", "timestamp": "1700000000"}}})",
       "ValueError: boom", "Traceback\n x", 1700000000},
      {R"({"message": "gone", "timestamp": 1700000001})", "gone", "", 1700000001},
      {R"({"message": "gone", "timestamp": "1700000001.75"})", "gone", "", 1700000001},
      {R"({"message": {"message": "m", "errorCode": 3}})", "m", "", 0},
      {R"({"message": {"extraInfo": {"timestamp": "soon"}}})", "", "", 0},
      {R"({"message": "x", "timestamp": -1e300})", "x", "", 0},
      {R"({"message": {"message": 5, "extraInfo": []}})", "", "", 0},
  };
  for (const auto& row : rows) {
    auto file = ParseErrorFile(row.text);
    ASSERT_TRUE(file.ok()) << row.text << file.status();
    EXPECT_EQ(file->message, row.message) << row.text;
    EXPECT_EQ(file->callstack, row.callstack) << row.text;
    EXPECT_EQ(file->unix_seconds, row.seconds) << row.text;
  }
}

TEST(ErrorFileTest, AnythingElseIsRefused) {
  for (const char* text : {"", "{", "[]", "3", "null", R"({"msg": "x"})", R"({"message": 3})", R"({"message": null})",
                           "{\"message\": \"\xff\"}"}) {
    EXPECT_EQ(ParseErrorFile(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

class RecordTest : public Harness {
 protected:
  // Makes a tree with `cgroup` in /proc/self/cgroup, and one file.
  std::string Tree(const std::string& name, const std::string& cgroup, const std::string& file,
                   const std::string& content) {
    std::string root = Path(name);
    Put(root + "/proc/self/cgroup", cgroup);
    Put(root + file, content);
    return root;
  }
  static void Put(const std::string& path, const std::string& content) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
  }
};

TEST_F(RecordTest, ErrorFileOfAWorker) {
  WorkerSpec spec =
      Shell(R"(echo '{"message": {"message": "boom", "extraInfo": {"py_callstack": "T"}}}' > error.json; exit 1)");
  spec.working_directory = folder_;
  spec.error_file = Path("error.json");
  ExitRecord record = RunOne(spec);
  EXPECT_EQ(record.error_file, spec.error_file);
  EXPECT_EQ(record.error_message, "boom");
  EXPECT_EQ(record.error_callstack, "T");
}

TEST_F(RecordTest, NoErrorFileAndOddOnes) {
  WorkerSpec spec = Shell("exit 1");
  spec.error_file = Path("none.json");
  EXPECT_EQ(RunOne(spec).error_file, "");

  spec = Shell("echo garbage > " + Path("bad.json"));
  spec.error_file = Path("bad.json");
  ExitRecord record = RunOne(spec);
  EXPECT_EQ(record.error_file, spec.error_file);
  EXPECT_EQ(record.error_message, "");

  spec = Shell("mkfifo " + Path("fifo.json"));
  spec.error_file = Path("fifo.json");
  EXPECT_EQ(RunOne(spec).error_message, "");
}

TEST_F(RecordTest, CoreFlagIsTheKernels) {
  pid_t pid = fork();
  if (pid == 0) {
    if (chdir(folder_.c_str()) == 0) execl(LAUNCHER_PROBE, LAUNCHER_PROBE, "core", nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  WorkerSpec spec = Probe({"core"});
  spec.working_directory = folder_;
  ExitRecord record = RunOne(spec);
  EXPECT_EQ(record.signal, SIGABRT);
  EXPECT_EQ(record.exit_code, 134);
  EXPECT_EQ(record.core_dumped, static_cast<bool>(WCOREDUMP(status)));
}

TEST_F(RecordTest, OomCounterIsFound) {
  const std::string v2 = "low 0\nhigh 0\nmax 3\noom 2\noom_kill 7\noom_group_kill 1\n";
  const std::string v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n";
  EXPECT_EQ(OomCounter(Tree("a", "0::/\n", "/sys/fs/cgroup/memory.events", v2)).Read(), 7);
  EXPECT_EQ(OomCounter(Tree("b", "0::/kubepods/pod1\n", "/sys/fs/cgroup/kubepods/pod1/memory.events", v2)).Read(), 7);
  // A container sees the host's path.
  EXPECT_EQ(OomCounter(Tree("c", "0::/kubepods/pod1\n", "/sys/fs/cgroup/memory.events", v2)).Read(), 7);
  EXPECT_EQ(OomCounter(Tree("d", "12:cpu,cpuacct:/x\n4:memory:/x\n", "/sys/fs/cgroup/memory/x/memory.oom_control", v1))
                .Read(),
            5);
  EXPECT_EQ(OomCounter(Tree("e", "4:memory:/x\n0::/y\n", "/sys/fs/cgroup/memory/memory.oom_control", v1)).Read(), 5);
  EXPECT_EQ(OomCounter(Tree("f", "0::/\n", "/sys/fs/cgroup/other", v2)).Read(), std::nullopt);
  EXPECT_EQ(OomCounter(Tree("g", "garbage\n:\n", "/sys/fs/cgroup/memory.events", v2)).Read(), std::nullopt);
  EXPECT_EQ(OomCounter(Tree("h", "0::/\n", "/sys/fs/cgroup/memory.events", "max 1\n")).Read(), std::nullopt);
  EXPECT_EQ(OomCounter(Path("missing")).Read(), std::nullopt);
}

TEST_F(RecordTest, OneRiseExplainsOneDeath) {
  const std::string root = Tree("tree", "0::/\n", "/sys/fs/cgroup/memory.events", "oom_kill 3\n");
  const std::string counter = root + "/sys/fs/cgroup/memory.events";
  std::vector<ExitRecord> records;
  WorkerGroupEvents events;
  events.worker_exited = [&](const ExitRecord& record) { records.push_back(record); };
  group_ = std::make_unique<WorkerGroup>(loop_, *reaper_, *console_, events, OomCounter(root));
  ASSERT_TRUE(
      group_->Start({Shell("exec sleep 1000", 0), Shell("exec sleep 1000", 1), Shell("exec sleep 1000", 2)}).ok());
  Put(counter, "oom_kill 4\n");
  for (int i : {1, 0, 2}) {
    size_t before = records.size();
    kill(static_cast<pid_t>(group_->pids()[i]), i == 1 ? SIGTERM : SIGKILL);
    ASSERT_TRUE(Until([&] { return records.size() > before; }));
  }
  EXPECT_FALSE(records[0].oom_killed);  // the OOM killer uses another signal
  EXPECT_TRUE(records[1].oom_killed);
  EXPECT_FALSE(records[2].oom_killed);  // the increment is explained already
}

TEST_F(RecordTest, MemoryThatEndedAChildOfTheWorker) {
  const std::string root = Tree("tree", "0::/\n", "/sys/fs/cgroup/memory.events", "oom_kill 3\n");
  const std::string counter = root + "/sys/fs/cgroup/memory.events";
  struct Row {
    std::string script;
    int code;
    bool oom_killed;
  };
  for (const Row& row : {Row{"exit 137", 137, true}, Row{"exit 1", 1, true}, Row{"exit 0", 0, false},
                         Row{"kill -ABRT $$", 134, false}}) {
    Put(counter, "oom_kill 3\n");
    std::vector<ExitRecord> records;
    WorkerGroupEvents events;
    events.worker_exited = [&](const ExitRecord& record) { records.push_back(record); };
    group_ = std::make_unique<WorkerGroup>(loop_, *reaper_, *console_, events, OomCounter(root));
    const std::string script = fmt::format("echo 'oom_kill 4' > {}; {}", counter, row.script);
    ASSERT_TRUE(group_->Start({Shell(script, 0)}).ok());
    ASSERT_TRUE(Until([&] { return !records.empty(); }));
    EXPECT_EQ(records[0].exit_code, row.code);
    EXPECT_EQ(records[0].oom_killed, row.oom_killed) << row.script;
  }
  // Without an increment the record does not say OOM.
  std::vector<ExitRecord> records;
  WorkerGroupEvents events;
  events.worker_exited = [&](const ExitRecord& record) { records.push_back(record); };
  group_ = std::make_unique<WorkerGroup>(loop_, *reaper_, *console_, events, OomCounter(root));
  ASSERT_TRUE(group_->Start({Shell("exit 137", 0)}).ok());
  ASSERT_TRUE(Until([&] { return !records.empty(); }));
  EXPECT_FALSE(records[0].oom_killed);
}

}  // namespace
}  // namespace muster::launcher
