// SPDX-License-Identifier: Apache-2.0
// Every row of torchrun's command line: flag x spelling x variable x bad value.
#include "agent/flags/torchrun_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <map>

#include "agent/flags/flag_usage.h"
#include "agent/flags/flag_values.h"
#include "agent/flags/torchrun_flag_table.h"
#include "agent/progress/progress_pattern.h"
#include "base/text.h"
#include "tests/agent/parse_run.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One flag with a value: its spellings, its variable, a good value and what is read from it, a bad value.
struct Row {
  std::string flag;
  std::string variable;
  std::string value;
  std::function<std::string(const RunOptions&)> read;
  std::string expected;
  std::string bad;  // empty: every text is good
};
const std::vector<Row>& Rows() {
  auto nothing = [](const RunOptions&) { return std::string("accepted"); };
  static const std::vector<Row> rows = {
      {"nnodes", "PET_NNODES", "2:4",
       [](auto& o) { return fmt::format("{}:{}", o.job.shared.min_nodes, o.job.shared.max_nodes); }, "4:4", "1:2:3"},
      {"nproc-per-node", "PET_NPROC_PER_NODE", "8", [](auto& o) { return fmt::format("{}", o.workers.nproc); }, "8",
       "0"},
      {"rdzv-endpoint", "PET_RDZV_ENDPOINT", "h:77", [](auto& o) { return o.job.endpoint.host; }, "h", "h:x"},
      {"rdzv-id", "PET_RDZV_ID", "job7", [](auto& o) { return o.job.run_id; }, "job7", ""},
      {"rdzv-conf", "PET_RDZV_CONF", "join_timeout=7",
       [](auto& o) { return fmt::format("{}", o.job.shared.join_timeout / seconds(1)); }, "7", "join_timeout"},
      {"max-restarts", "PET_MAX_RESTARTS", "3", [](auto& o) { return fmt::format("{}", o.job.shared.max_restarts); },
       "3", "-1"},
      {"monitor-interval", "PET_MONITOR_INTERVAL", "2.5", nothing, "accepted", "0"},
      {"start-method", "PET_START_METHOD", "fork", nothing, "accepted", ""},
      {"event-log-handler", "PET_EVENT_LOG_HANDLER", "console", nothing, "accepted", ""},
      {"role", "PET_ROLE", "trainer", [](auto& o) { return o.workers.role; }, "trainer", ""},
      {"log-dir", "PET_LOG_DIR", "/logs", [](auto& o) { return o.logs.dir.value_or("-"); }, "/logs", ""},
      {"redirects", "PET_REDIRECTS", "0:3,1:1",
       [](auto& o) {
         return fmt::format("{}{}{}", o.logs.redirects.For(0), o.logs.redirects.For(1), o.logs.redirects.For(2));
       },
       "310", "4"},
      {"tee", "PET_TEE", "3", [](auto& o) { return fmt::format("{}", o.logs.tee.For(9)); }, "3", "0:4"},
      {"log-line-prefix-template", "PET_LOG_LINE_PREFIX_TEMPLATE", "[${rank}]",
       [](auto& o) { return o.logs.line_prefix_template; }, "[${rank}]", ""},
      {"local-ranks-filter", "PET_LOCAL_RANKS_FILTER", "0, 2",
       [](auto& o) { return fmt::format("{}", fmt::join(o.logs.local_ranks_filter, "|")); }, "0|2", "0,x"},
      {"duplicate-stdout-filters", "PET_DUPLICATE_STDOUT_FILTERS", "loss,a,,b",
       [](auto& o) { return fmt::format("{}", fmt::join(o.logs.duplicate_stdout_filters, "|")); }, "loss|a,b", ""},
      {"duplicate-stderr-filters", "PET_DUPLICATE_STDERR_FILTERS", "x",
       [](auto& o) { return fmt::format("{}", fmt::join(o.logs.duplicate_stderr_filters, "|")); }, "x", ""},
      {"node-rank", "PET_NODE_RANK", "3", [](auto& o) { return fmt::format("{}", *o.job.node_rank); }, "3", "one"},
      {"master-addr", "PET_MASTER_ADDR", "::1", [](auto& o) { return o.job.endpoint.host; }, "::1", "a b"},
      {"master-port", "PET_MASTER_PORT", "1234", [](auto& o) { return fmt::format("{}", o.job.endpoint.port); }, "1234",
       "70000"},
      {"local-addr", "PET_LOCAL_ADDR", "10.0.0.1", [](auto& o) { return o.job.local_addr; }, "10.0.0.1", "bad host"},
      {"numa-binding", "", "node", [](auto& o) { return o.command.numa_binding; }, "node", "here"},
      {"signals-to-handle", "PET_SIGNALS_TO_HANDLE", "SIGTERM,SIGUSR1",
       [](auto& o) { return fmt::format("{}", fmt::join(o.signals.to_handle, "|")); }, "15|10", "SIGNO"},
      {"shutdown-timeout", "PET_SHUTDOWN_TIMEOUT", "5",
       [](auto& o) { return fmt::format("{}", o.signals.shutdown_timeout / seconds(1)); }, "5", "-2"},
      {"node-name", "MUSTER_NODE", "n1", [](auto& o) { return o.job.node_name; }, "n1", ""},
      {"hang-timeout", "MUSTER_HANG_TIMEOUT", "5m",
       [](auto& o) { return fmt::format("{}", *o.hang.step_timeout / seconds(1)); }, "300", "soon"},
      {"hang-log-timeout", "MUSTER_HANG_LOG_TIMEOUT", "1h30m",
       [](auto& o) { return fmt::format("{}", *o.hang.log_timeout / seconds(1)); }, "5400", "never"},
      {"hang-signal", "MUSTER_HANG_SIGNAL", "USR1", [](auto& o) { return fmt::format("{}", o.hang.signal); }, "10",
       "USR9"},
      {"standby-workers", "MUSTER_STANDBY_WORKERS", "auto", [](auto& o) { return o.standby.wanted ? "auto" : "off"; },
       "auto", "always"},
      {"standby-delay", "MUSTER_STANDBY_DELAY", "1m30s",
       [](auto& o) { return fmt::format("{}", o.standby.delay / seconds(1)); }, "90", "soon"},
      {"standby-imports", "MUSTER_STANDBY_IMPORTS", "torch, a.b_c,",
       [](auto& o) { return fmt::format("{}", fmt::join(o.standby.imports, "|")); }, "torch|a.b_c", "torch,a/b"},
      {"progress", "MUSTER_PROGRESS", "off", [](auto& o) { return o.progress.read ? "auto" : "off"; }, "off", "on"},
      {"progress-pattern", "MUSTER_PROGRESS_PATTERN", R"(at (?P<step>\d+))",
       [](auto& o) { return fmt::format("{}", *o.progress.pattern->Read("at 7")->step); }, "7", "at (?P<stp>x)"},
      {"checkpoint-dir", "MUSTER_CHECKPOINT_DIR", "/x", [](auto& o) { return o.progress.checkpoint_dir; }, "/x", ""},
      {"http-port", "MUSTER_HTTP_PORT", "[::1]:80",
       [](auto& o) { return fmt::format("{} {} {}", o.http.required, o.http.host, o.http.port); }, "true ::1 80", "x"},
      {"http-token-file", "MUSTER_HTTP_TOKEN_FILE", "/x", [](auto& o) { return o.http.token_file; }, "/x", ""},
      {"node-check", "MUSTER_NODE_CHECK", "x --y", [](auto& o) { return o.check.command; }, "x --y", ""},
      {"node-check-timeout", "MUSTER_NODE_CHECK_TIMEOUT", "1m30s",
       [](auto& o) { return fmt::format("{}", o.check.timeout / seconds(1)); }, "90", "0"},
      {"nodes-file", "MUSTER_NODES_FILE", "/x", [](auto& o) { return o.watched.nodes_file; }, "/x", ""},
      {"preempt-file", "MUSTER_PREEMPT_FILE", "/x", [](auto& o) { return o.watched.preempt_file; }, "/x", ""},
      {"preempt-interval", "MUSTER_PREEMPT_INTERVAL", "1m",
       [](auto& o) { return fmt::format("{}", o.watched.preempt_interval / seconds(1)); }, "60", "0"},
      {"termination-log", "MUSTER_TERMINATION_LOG", "/x", [](auto& o) { return o.termination_log; }, "/x", ""},
      {"nodes-on-this-machine", "", "3", [](auto& o) { return fmt::format("{}", o.job.nodes_on_this_machine); }, "3",
       "many"},
      {"log-format", "MUSTER_LOG_FORMAT", "json",
       [](auto& o) { return o.log.format == log::Format::kJson ? "json" : "text"; }, "json", "xml"},
      {"log-level", "MUSTER_LOG_LEVEL", "error",
       [](auto& o) { return o.log.level == log::Level::kError ? "error" : "?"; }, "error", "loud"},
      {"restart-policy", "MUSTER_RESTART_POLICY", "exit-code",
       [](auto& o) { return o.job.shared.policy == rendezvous::RestartPolicy::kExitCode ? "exit-code" : "?"; },
       "exit-code", "maybe"},
      {"retry-codes", "MUSTER_RETRY_CODES", "3,5-6",
       [](auto& o) { return fmt::format("{}", fmt::join(o.job.shared.overrides.retry, "|")); }, "3|5|6", "0"},
      {"fatal-codes", "MUSTER_FATAL_CODES", "137",
       [](auto& o) { return fmt::format("{}", fmt::join(o.job.shared.overrides.fatal, "|")); }, "137", "300"},
      {"restart-window", "MUSTER_RESTART_WINDOW", "1h30m",
       [](auto& o) { return fmt::format("{}", *o.job.shared.restart_window / seconds(1)); }, "5400", "soon"},
      {"no-progress-limit", "MUSTER_NO_PROGRESS_LIMIT", "4",
       [](auto& o) { return fmt::format("{}", o.job.shared.no_progress_limit); }, "4", "-1"},
      {"scale-up", "MUSTER_SCALE_UP", "at-restart",
       [](auto& o) { return o.job.shared.scale_up == rendezvous::ScaleUp::kAtRestart ? "later" : "now"; }, "later",
       "never"},
  };
  return rows;
}

// Static with four nodes, so that no row is decided by the implicit standalone.
Words Frame(const Words& words, const std::string& flag) {
  Words framed = {"--master-port=29501", "--nnodes=4"};
  if (flag == "nnodes") framed.pop_back();
  if (flag == "master-port") framed.erase(framed.begin());
  framed.insert(framed.end(), words.begin(), words.end());
  framed.push_back("x.py");
  return framed;
}
std::string Underscored(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

TEST(TorchrunFlags, EveryValueInEverySpelling) {
  for (const Row& row : Rows()) {
    SCOPED_TRACE(row.flag);
    for (const std::string& name : {row.flag, Underscored(row.flag)}) {
      EXPECT_EQ(row.read(Good(Frame({"--" + name, row.value}, row.flag))), row.expected);
      EXPECT_EQ(row.read(Good(Frame({"--" + name + "=" + row.value}, row.flag))), row.expected);
    }
    if (row.variable.empty()) continue;
    EXPECT_EQ(row.read(Good(Frame({}, row.flag), {{row.variable, row.value}})), row.expected) << row.variable;
    if (!row.bad.empty()) {  // the command line wins: the variable is not read
      EXPECT_EQ(row.read(Good(Frame({"--" + row.flag, row.value}, row.flag), {{row.variable, row.bad}})), row.expected);
    }
  }
}

TEST(TorchrunFlags, EveryBadValueNamesFlagOrVariableAndValue) {
  for (const Row& row : Rows()) {
    if (row.bad.empty()) continue;
    SCOPED_TRACE(row.flag);
    std::string flag_error = Error(Frame({"--" + row.flag + "=" + row.bad}, row.flag));
    EXPECT_THAT(flag_error, HasSubstr("--" + row.flag + "=" + row.bad));
    EXPECT_GT(flag_error.size(), row.flag.size() + row.bad.size() + 8) << "a remedy is missing: " << flag_error;
    if (row.variable.empty()) continue;
    EXPECT_THAT(Error(Frame({}, row.flag), {{row.variable, row.bad}}), HasSubstr(row.variable + "=" + row.bad));
  }
}

TEST(TorchrunFlags, EveryTorchrunFlagHasARowHere) {
  for (const Flag& flag : FlagTable()) {
    if (flag.kind != FlagKind::kValue || flag.owner == FlagOwner::kExec) continue;
    bool covered = flag.name == "rdzv-backend" || flag.name == "logs-specs" || flag.name == "print-completion";
    for (const Row& row : Rows()) {
      if (row.flag != flag.name) continue;
      covered = true;
      EXPECT_EQ(row.variable, flag.variable) << flag.name;
    }
    EXPECT_TRUE(covered) << flag.name;
  }
}

TEST(TorchrunFlags, ASwitchIsReadFromFlagAndVariable) {
  struct {
    std::string flag, variable;
    std::function<bool(const RunOptions&)> read;
  } const rows[] = {
      {"module", "PET_MODULE", [](auto& o) { return o.command.module; }},
      {"no-python", "PET_NO_PYTHON", [](auto& o) { return o.command.no_python; }},
      {"run-path", "PET_RUN_PATH", [](auto& o) { return o.command.run_path; }},
      {"virtual-local-rank", "PET_VIRTUAL_LOCAL_RANK", [](auto& o) { return o.workers.virtual_local_rank; }},
      {"standalone", "PET_STANDALONE", [](auto& o) { return o.job.standalone; }}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.flag);
    Words port = {"--master-port=1"};
    EXPECT_FALSE(row.read(Good(port)));
    EXPECT_TRUE(row.read(Good({"--master-port=1", "--" + row.flag})));
    EXPECT_TRUE(row.read(Good({"--master-port=1", "--" + Underscored(row.flag)})));
    EXPECT_TRUE(row.read(Good(port, {{row.variable, "1"}})));
    EXPECT_TRUE(row.read(Good(port, {{row.variable, " -2 "}})));
    EXPECT_FALSE(row.read(Good(port, {{row.variable, "0"}})));
    EXPECT_TRUE(row.read(Good({"--master-port=1", "--" + row.flag}, {{row.variable, "0"}})));
    for (const char* bad : {"true", "", "1.0"}) {
      EXPECT_THAT(Error({"--master-port=1", "x.py"}, {{row.variable, bad}}), HasSubstr(row.variable + "=" + bad));
    }
    EXPECT_THAT(Error({"--" + row.flag + "=1", "x.py"}), HasSubstr("takes no value"));
  }
}

TEST(TorchrunFlags, ShortFlags) {
  EXPECT_EQ(Good({"-r", "3"}).logs.redirects.all, 3);
  EXPECT_EQ(Good({"-r3"}).logs.redirects.all, 3);
  EXPECT_EQ(Good({"-r=3"}).logs.redirects.all, 3);
  EXPECT_EQ(Good({"-t", "0:3"}).logs.tee.For(0), 3);
  EXPECT_TRUE(Good({"-m"}).command.module);
  RunOptions both = Good({"-mr2"});
  EXPECT_TRUE(both.command.module);
  EXPECT_EQ(both.logs.redirects.all, 2);
  EXPECT_THAT(Error({"-mfoo"}), HasSubstr("-m takes no value"));
  EXPECT_THAT(Error({"-x", "x.py"}), HasSubstr("unknown flag -x"));
  EXPECT_THAT(Error({"-r"}), HasSubstr("-r needs a value"));
}

TEST(TorchrunFlags, AnAbbreviationIsReadUnlessAmbiguous) {
  EXPECT_EQ(Good({"--redirect=3"}).logs.redirects.all, 3);  // from PyTorch's own test
  EXPECT_EQ(Good({"--nproc=2"}).workers.nproc, 2);
  EXPECT_EQ(Good({"--nproc=+10"}).workers.nproc_per_node, "10")
      << "as Python's int reads it, for whoever reads it next";
  EXPECT_EQ(Good({"--nproc_per=2"}).workers.nproc, 2);
  EXPECT_EQ(Good({"--max", "2"}).job.shared.max_restarts, 2);  // two spellings of one flag are no ambiguity
  std::string error = Error({"--rdzv=1", "x.py"});
  for (const char* name : {"--rdzv is ambiguous", "--rdzv-backend", "--rdzv-endpoint", "--rdzv-id", "--rdzv-conf"}) {
    EXPECT_THAT(error, HasSubstr(name));
  }
  EXPECT_THAT(Error({"--master", "h", "x.py"}), HasSubstr("--master-addr, --master-port"));
  // Muster's flags do not make torchrun's abbreviations ambiguous.
  EXPECT_EQ(Good({"--node", "2", "--nnodes=4", "--master-port=1"}).job.node_rank, 2);
  EXPECT_EQ(Good({"--log-l", "P"}).logs.line_prefix_template, "P");
  EXPECT_EQ(Good({"--signals=SIGTERM"}).signals.to_handle.size(), 1u);
  EXPECT_EQ(Good({"--nodes-on", "2"}).job.nodes_on_this_machine, 2);
  EXPECT_EQ(Good({"--restart-p=never"}).job.shared.policy, rendezvous::RestartPolicy::kNever);
  EXPECT_THAT(Error({"--restart=never", "x.py"}), HasSubstr("--restart-policy, --restart-window"));
  EXPECT_THAT(Error({"--nope", "x.py"}), HasSubstr("unknown flag --nope"));
  EXPECT_THAT(Error({"--use-env", "x.py"}), HasSubstr("unknown flag --use-env"));
}

// Every abbreviation that is unique among torchrun's flags keeps its meaning although Muster's flags are in the table.
TEST(TorchrunFlags, OwnFlagsMakeNothingAmbiguous) {
  std::vector<std::string_view> names;
  for (const Flag& flag : FlagTable()) {
    if (flag.owner == FlagOwner::kTorchrun) names.push_back(flag.name);
  }
  for (std::string_view name : names) {
    for (size_t length = 1; length <= name.size(); ++length) {
      std::string_view prefix = name.substr(0, length);
      int matches = 0;
      for (std::string_view other : names) matches += other.starts_with(prefix) ? 1 : 0;
      if (matches != 1) continue;
      auto found = FindFlag(prefix, CalledAs::kRun);
      ASSERT_TRUE(found.ok()) << prefix;
      EXPECT_EQ((*found)->name, name);
    }
  }
}

TEST(TorchrunFlags, ScriptAndTheRestVerbatim) {
  RunOptions run = Good({"--nproc-per-node", "2", "train.py", "--nnodes", "9", "-m", "--", "x.py"});
  EXPECT_EQ(run.command.script, "train.py");
  EXPECT_EQ(run.workers.nproc, 2);
  EXPECT_EQ(run.job.shared.max_nodes, 1);
  EXPECT_THAT(run.command.script_args, ElementsAre("--nnodes", "9", "-m", "--", "x.py"));
  // argparse drops the first "--", before or just after the script.
  run = Good({"--", "--odd.py", "--", "a", "x.py"});
  EXPECT_EQ(run.command.script, "--odd.py");
  EXPECT_THAT(run.command.script_args, ElementsAre("--", "a", "x.py"));
  run = Good({"s.py", "--", "--", "x.py"});
  EXPECT_THAT(run.command.script_args, ElementsAre("--", "x.py"));
  EXPECT_EQ(Good({"-", "x.py"}).command.script, "-");
  EXPECT_THAT(Error({}), HasSubstr("training_script"));
  EXPECT_THAT(Error({"--nnodes=1"}), HasSubstr("training_script"));
  EXPECT_THAT(Error({"--nnodes"}), HasSubstr("--nnodes needs a value"));
  EXPECT_THAT(Error({"--nnodes", "--", "2"}), HasSubstr("--nnodes needs a value"));
  EXPECT_THAT(Error({"--role", "--tee", "3", "x.py"}), HasSubstr("--role needs a value"));
  EXPECT_THAT(Error({"--node-rank", "-1", "x.py"}), HasSubstr("--node-rank=-1"));
  EXPECT_EQ(Good({"--role", "-a b"}).workers.role, "-a b");
  EXPECT_EQ(Good({"--role="}).workers.role, "");
  EXPECT_EQ(Good({"--role", "a", "--role", "b"}).workers.role, "b");
}

TEST(TorchrunFlags, NnodesIsANumberOrARange) {
  for (const char* bad : {"0", "-1", "2:1", "0:1", "a", "", "1:", ":2", "1:2:3", "1.5", "99999999999"}) {
    EXPECT_THAT(Error({std::string("--nnodes=") + bad, "x.py"}), HasSubstr(fmt::format("--nnodes={}: want", bad)));
  }
  RunOptions elastic = Good({"--rdzv-backend=c10d", "--nnodes= 1 : 4"});
  EXPECT_EQ(elastic.job.shared.min_nodes, 1);
  EXPECT_EQ(elastic.job.shared.max_nodes, 4);
  EXPECT_FALSE(elastic.job.shared.indexed);
  RunOptions fixed = Good({"--nnodes=1:4", "--node-rank=3"});
  EXPECT_EQ(fixed.job.shared.min_nodes, 4);
  EXPECT_TRUE(fixed.job.shared.indexed);
  EXPECT_THAT(Error({"--nnodes=2", "--node-rank=2", "x.py"}), HasSubstr("--node-rank=2: node ranks go from 0 to 1"));
}

TEST(TorchrunFlags, NprocWords) {
  for (const char* word : {"auto", "cpu", "gpu", "xpu"}) {
    EXPECT_EQ(Good({"--nproc-per-node", word}).workers.nproc_per_node, word);
  }
  for (const char* bad : {"0", "-3", "gpus", "", "1.5", "AUTO"}) {
    EXPECT_THAT(Error({std::string("--nproc-per-node=") + bad, "x.py"}),
                HasSubstr(std::string("--nproc-per-node=") + bad));
  }
}

TEST(TorchrunFlags, FlagsThatOverruleVariables) {
  const struct {
    Words words;
    Environment environment;
    std::string says;  // empty: nothing
    CalledAs as = CalledAs::kRun;
  } rows[] = {
      {{"--nproc-per-node=2"}, {{"PET_NPROC_PER_NODE", "3"}}, "--nproc-per-node=2 over PET_NPROC_PER_NODE=3"},
      {{"--master_port", "29611", "--nnodes=2"},
       {{"PET_MASTER_PORT", "abc"}, {"PET_NNODES", "3"}, {"PET_MASTER_ADDR", "h"}},
       "--nnodes=2 over PET_NNODES=3, --master-port=29611 over PET_MASTER_PORT=abc"},
      {{"-r", "3"}, {{"PET_REDIRECTS", "0:1"}}, "--redirects=3 over PET_REDIRECTS=0:1"},
      {{"--role=a", "--role=b"}, {{"PET_ROLE", "a"}}, "--role=b over PET_ROLE=a"},
      {{"--role="}, {{"PET_ROLE", "a"}}, "--role= over PET_ROLE=a"},
      {{"--standalone"}, {{"PET_STANDALONE", "0"}}, "--standalone over PET_STANDALONE=0"},
      {{"--standalone"}, {{"PET_STANDALONE", "yes"}}, "--standalone over PET_STANDALONE=yes"},
      {{"--log-format=json"}, {{"MUSTER_LOG_FORMAT", "text"}}, "--log-format=json over MUSTER_LOG_FORMAT=text"},
      // No contradiction: the same value in another spelling; no flag; a variable of another flag.
      {{"--nproc-per-node=2"}, {{"PET_NPROC_PER_NODE", " 2 "}}, ""},
      {{"--nnodes=2:2", "--master-port=1"}, {{"PET_NNODES", "2"}}, ""},
      {{"--standalone"}, {{"PET_STANDALONE", "1"}}, ""},
      {{"--nproc-per-node=2"}, {{"PET_NNODES", "1"}, {"PET_MAX_RESTARTS", "3"}}, ""},
      {{"--numa-binding=node"}, {{"PET_NUMA_BINDING", "socket"}}, ""},
      // A variable that the agent of a plain command does not read contradicts nothing.
      {{"--max-restarts=1", "--hang-timeout=5m"},
       {{"PET_MAX_RESTARTS", "2"}, {"MUSTER_HANG_TIMEOUT", "30"}},
       "",
       CalledAs::kExec},
      {{"--node-check=builtin"},
       {{"MUSTER_NODE_CHECK", "true"}},
       "--node-check=builtin over MUSTER_NODE_CHECK=true",
       CalledAs::kExec},
      {{"--wire=torch", "--max-restarts=1", "--hang-timeout=5m"},
       {{"PET_MAX_RESTARTS", "2"}, {"MUSTER_HANG_TIMEOUT", "30"}, {"MUSTER_WIRE", "jax"}},
       "--max-restarts=1 over PET_MAX_RESTARTS=2, --hang-timeout=5m over MUSTER_HANG_TIMEOUT=30, --wire=torch over "
       "MUSTER_WIRE=jax",
       CalledAs::kExec},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(Join(row.words, " "));
    Words words = row.words;
    words.push_back("x.py");
    auto run = Parse(words, row.environment, row.as);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->overruled.empty() ? "" : Describe(run->overruled),
              row.says.empty() ? "" : "flags win over the environment: " + row.says);
  }
}

TEST(TorchrunFlags, HandOver) {
  for (const Words& words :
       {Words{"--rdzv-backend=etcd"}, Words{"--rdzv-backend=etcd-v2"}, Words{"--rdzv-backend", "mine"},
        Words{"--logs-specs=my_logs"}, Words{"--event-log-handler=my_events"}, Words{"--nproc-per-node=npu"},
        Words{"--rdzv-backend=c10d", "--rdzv-conf=store_type=file"}, Words{"--print-completion", "bash"}}) {
    auto run = Parse(words);  // even without a script: the real torchrun reports that
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->outcome, ParsedRun::Outcome::kHandOver);
    EXPECT_THAT(run->text, HasSubstr("only the real torchrun has"));
  }
  auto run = Parse({"x.py"}, {{"PET_RDZV_BACKEND", "etcd"}});
  ASSERT_TRUE(run.ok());
  EXPECT_THAT(run->text, HasSubstr("PET_RDZV_BACKEND=etcd"));
  EXPECT_EQ(Good({"--logs-specs=default", "--event-log-handler=dynamic_rendezvous"}).warnings.size(), 0u);
  EXPECT_THAT(Good({"--event-log-handler=console"}).warnings,
              ElementsAre(HasSubstr("--event-log-handler=console: muster prints no events")));
}

TEST(TorchrunFlags, HandOverLeavesMustersOwnFlagsOut) {
  const struct {
    Words words, torchruns, left_out;
  } rows[] = {
      {{"--rdzv-backend=etcd", "x.py", "--node-name=y"}, {"--rdzv-backend=etcd", "x.py", "--node-name=y"}, {}},
      {{"--node-name", "a", "--nnodes", "2", "--log-format=json", "--rdzv-backend", "etcd", "--hang-t", "5m", "--",
        "x"},
       {"--nnodes", "2", "--rdzv-backend", "etcd", "--", "x"},
       {"--node-name", "--log-format", "--hang-timeout"}},
      {{"-mr3", "--rdzv_backend=etcd", "--termination_log=/t", "x"},
       {"-mr3", "--rdzv_backend=etcd", "x"},
       {"--termination-log"}},
  };
  for (const auto& row : rows) {
    auto run = Parse(row.words);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->outcome, ParsedRun::Outcome::kHandOver);
    EXPECT_EQ(run->torchruns.arguments, row.torchruns);
    EXPECT_EQ(run->torchruns.left_out, row.left_out);
  }
  auto run = Parse({"--rdzv-backend=etcd", "--log-format=json", "x.py"}, {{"MUSTER_TERMINATION_LOG", "/t"}});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->options.log.format, log::Format::kJson);
  EXPECT_EQ(run->options.termination_log, "/t");
  EXPECT_THAT(Error({"--rdzv-backend=etcd", "--log-format=xml", "x.py"}), HasSubstr("--log-format=xml"));
  EXPECT_THAT(Error({"--rdzv-backend=etcd", "--nodes-on-this-machine=2", "x.py"}),
              HasSubstr("--nodes-on-this-machine=2"));
}

// Variables that are set and empty, as torchrun reads them: some count as not set, some are wrong values.
TEST(TorchrunFlags, EmptyVariables) {
  for (const char* wrong : {"PET_RDZV_BACKEND", "PET_EVENT_LOG_HANDLER", "PET_NNODES", "PET_NPROC_PER_NODE",
                            "PET_REDIRECTS", "PET_TEE", "PET_MAX_RESTARTS", "PET_STANDALONE"}) {
    EXPECT_THAT(Error({"x.py"}, {{wrong, ""}}), HasSubstr(fmt::format("{}=: ", wrong)));
  }
  for (const char* nothing : {"PET_LOG_DIR", "PET_RDZV_ENDPOINT", "PET_RDZV_ID", "PET_RDZV_CONF", "PET_LOCAL_ADDR",
                              "PET_ROLE", "PET_SIGNALS_TO_HANDLE", "PET_START_METHOD"}) {
    EXPECT_EQ(Good({}, {{nothing, ""}}).logs.dir, std::nullopt) << nothing;
  }
}

TEST(TorchrunFlags, LocalAddr) {
  for (const char* good : {"h", "node-1.svc_x", "10.0.0.1", "::1", "fe80::1%eth0", "", " h "}) {
    EXPECT_EQ(Good({fmt::format("--local-addr={}", good)}).job.local_addr, Strip(good));
  }
  for (const std::string& bad :
       {std::string("a b"), std::string("h:29400"), std::string("[::1]"), std::string("a/b"), std::string(300, 'h')}) {
    EXPECT_THAT(Error({"--local-addr=" + bad, "x.py"}), HasSubstr("--local-addr=" + bad + ": want a host name"));
  }
}

TEST(TorchrunFlags, HelpNamesEachFlagAndVariable) {
  for (const Words& words : {Words{"-h"}, Words{"--help"}, Words{"--he", "--nonsense"}, Words{"-mh"}}) {
    auto run = Parse(words);
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->outcome, ParsedRun::Outcome::kHelp);
    for (const Flag& flag : FlagTable()) {
      if (flag.owner == FlagOwner::kLegacy || flag.owner == FlagOwner::kExec) continue;
      EXPECT_THAT(run->text, HasSubstr(fmt::format("--{}", flag.name)));
      EXPECT_THAT(run->text, HasSubstr(std::string(flag.variable)));
    }
  }
  EXPECT_THAT(HelpText(CalledAs::kLaunch), HasSubstr("--use-env"));
}

TEST(TorchrunFlags, LegacyLaunch) {
  RunOptions run = Good({"--nproc_per_node=2"}, {}, CalledAs::kLaunch);
  EXPECT_TRUE(run.command.local_rank_argument);
  EXPECT_THAT(run.warnings, ElementsAre(HasSubstr("deprecated")));
  EXPECT_FALSE(Good({"--use_env"}, {}, CalledAs::kLaunch).command.local_rank_argument);
  EXPECT_TRUE(Good({"--use-env", "--no-python"}, {}, CalledAs::kLaunch).command.no_python);
  EXPECT_THAT(Error({"--no-python", "x.py"}, {}, CalledAs::kLaunch), HasSubstr("--use-env"));
}

TEST(TorchrunFlags, ContradictionsAreRefused) {
  EXPECT_THAT(Error({"-m", "--no-python", "x.py"}), HasSubstr("contradict"));
  EXPECT_TRUE(Good({"-m", "--no-python", "--run-path"}).command.run_path);
  EXPECT_THAT(Error({"--retry-codes=3", "--fatal-codes=2-4", "x.py"}), HasSubstr("3 is in --fatal-codes too"));
  EXPECT_THAT(Error({"--start-method=thread", "x.py"}), HasSubstr("spawn, fork, forkserver"));
  Good({}, {{"PET_START_METHOD", "thread"}});  // argparse checks flags only
  EXPECT_THAT(Error({"--signals-to-handle=SIGKILL", "x.py"}), HasSubstr("SIGKILL cannot be passed on"));
}

TEST(TorchrunFlags, VariablesOfTheEnvironmentAreRead) {
  EXPECT_EQ(Good({}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}}).signals.shutdown_timeout, seconds(7));
  EXPECT_EQ(Good({"--shutdown-timeout=8"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}}).signals.shutdown_timeout,
            seconds(8));
  EXPECT_THAT(Error({"x.py"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "x"}}),
              HasSubstr("TORCH_ELASTIC_SHUTDOWN_TIMEOUT=x"));
  EXPECT_EQ(Good({}, {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "E"}}).logs.line_prefix_template, "E");
  EXPECT_EQ(Good({"--log-line-prefix-template=F"}, {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "E"}})
                .logs.line_prefix_template,
            "F");
  EXPECT_EQ(Good({}, {{"LOGLEVEL", "WARNING"}}).log.level, log::Level::kWarning);
  EXPECT_EQ(Good({"--log-level=debug"}, {{"LOGLEVEL", "WARNING"}}).log.level, log::Level::kDebug);
  EXPECT_EQ(Good({}, {{"LOGLEVEL", "loud"}}).warnings.size(), 1u);
  EXPECT_EQ(Good({}).signals.to_handle_text, "SIGTERM,SIGINT,SIGHUP,SIGQUIT");
  EXPECT_THAT(Good({}).signals.to_handle, ElementsAre(SIGTERM, SIGINT, SIGHUP, SIGQUIT));
  // As Kubeflow Trainer sets them.
  RunOptions pod = Good({}, {{"PET_NNODES", "3"},
                             {"PET_NPROC_PER_NODE", "2"},
                             {"PET_NODE_RANK", "1"},
                             {"PET_MASTER_ADDR", "job-node-0-0.job"},
                             {"PET_MASTER_PORT", "29400"}});
  EXPECT_EQ(pod.job.backend, Backend::kStatic);
  EXPECT_EQ(pod.job.endpoint.host, "job-node-0-0.job");
  EXPECT_EQ(pod.job.node_rank, 1);
}

// Ranks are in the order of the indexes; without an index they are in torchrun's order.
TEST(TorchrunFlags, TheNodesIndex) {
  const struct {
    Words flags;
    Environment environment;
    std::optional<int> index;
  } rows[] = {
      {{"--nnodes=3", "--node-rank=2"}, {}, 2},
      {{"--nnodes=3"}, {}, 0},
      {{"--nnodes=3", "--rdzv-backend=c10d"}, {}, std::nullopt},
      {{"--nnodes=3", "--rdzv-backend=c10d", "--node-rank=0"}, {}, 0},
      {{"--nnodes=3", "--rdzv-backend=c10d"}, {{"PET_NODE_RANK", "7"}}, 7},  // not a rank, only an order
      {{"--nnodes=1:3", "--rdzv-backend=c10d"}, {{"JOB_COMPLETION_INDEX", "1"}}, 1},
      {{"--nnodes=3", "--rdzv-backend=c10d", "--node-rank=2"}, {{"JOB_COMPLETION_INDEX", "1"}}, 2},
      {{"--nnodes=1", "--rdzv-backend=c10d"}, {{"JOB_COMPLETION_INDEX", "1"}}, std::nullopt},
  };
  for (const auto& row : rows) {
    RunOptions options = Good(row.flags, row.environment);
    EXPECT_EQ(options.job.node_rank, row.index) << Join(row.flags, " ");
    EXPECT_THAT(options.warnings, testing::IsEmpty()) << Join(row.flags, " ");
  }
}

TEST(TorchrunFlags, NodesOnThisMachine) {
  RunOptions run = Good({"--nodes-on-this-machine=3"});
  EXPECT_EQ(run.job.shared.min_nodes, 3);
  EXPECT_EQ(run.job.shared.max_nodes, 3);
  EXPECT_EQ(run.job.backend, Backend::kC10d);
  EXPECT_FALSE(run.job.standalone);
  EXPECT_EQ(run.job.endpoint.port, 0);
  run = Good({"--nodes-on-this-machine=3", "--nnodes=1:3", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:5000"});
  EXPECT_EQ(run.job.shared.min_nodes, 1);
  EXPECT_EQ(run.job.endpoint.port, 5000);
}

// True if `text` has `name`, not only a longer name that begins with it.
bool Names(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const char next = at + name.size() < text.size() ? text[at + name.size()] : ' ';
    if (std::isalnum(static_cast<unsigned char>(next)) == 0 && next != '-' && next != '_') return true;
  }
  return false;
}

TEST(TorchrunFlags, TheDocumentationNamesEveryFlagAndVariable) {
  auto read = [](const char* path) {
    std::ifstream page(path);
    return std::string(std::istreambuf_iterator<char>(page), {});
  };
  const std::string torchrun = read("docs/torchrun-flags.md"), agent = read("docs/agent.md");
  for (const Flag& flag : FlagTable()) {
    const bool own = flag.owner == FlagOwner::kMuster || flag.owner == FlagOwner::kExec;
    const std::string& page = own ? agent : torchrun;
    EXPECT_TRUE(Names(page, fmt::format("--{}", flag.name))) << flag.name;
    EXPECT_TRUE(flag.variable.empty() || Names(page, std::string(flag.variable))) << flag.variable;
    EXPECT_TRUE(flag.owner == FlagOwner::kExec || Names(torchrun, fmt::format("--{}", flag.name))) << flag.name;
  }
}

}  // namespace
}  // namespace muster::agent
