// SPDX-License-Identifier: Apache-2.0
// The command line of `muster exec`: which flags and variables count for a plain command, and which must not.
#include <gmock/gmock.h>

#include <csignal>

#include "agent/flags/flag_usage.h"
#include "agent/flags/inner_environment.h"
#include "agent/flags/torchrun_flags.h"
#include "base/text.h"
#include "tests/agent/variables.h"

namespace muster::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

StatusOr<ParsedRun> Parse(const Words& words, const Environment& environment = {}) {
  return ParseRun(words, environment, CalledAs::kExec);
}
RunOptions Good(const Words& words, const Environment& environment = {}) {
  auto run = Parse(words, environment);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? run->options : RunOptions();
}

TEST(ExecFlags, ACommandIsTakenAsItIs) {
  RunOptions plain = Good({"--", "python", "t.py", "--", "-m", "${local_rank}", "--nnodes", "4"});
  EXPECT_EQ(plain.wire, Wire::kPlain);
  EXPECT_EQ(plain.command.script, "python");
  EXPECT_THAT(plain.command.script_args, ElementsAre("t.py", "--", "-m", "${local_rank}", "--nnodes", "4"));
  EXPECT_EQ(plain.logs.dir, "/dev/null");
  EXPECT_EQ(plain.job.shared.max_nodes, 1);
  EXPECT_TRUE(plain.job.standalone);
  EXPECT_EQ(Good({"sleep", "1"}).command.script, "sleep");
}

TEST(ExecFlags, DefaultsOfAMainProcess) {
  RunOptions plain = Good({"--", "true"});
  EXPECT_EQ(plain.job.shared.policy, rendezvous::RestartPolicy::kExitCode);
  EXPECT_EQ(plain.job.shared.max_restarts, 0);
  EXPECT_EQ(plain.signals.shutdown_timeout, std::chrono::seconds(25));
  EXPECT_EQ(plain.termination_log, "/dev/termination-log");
  EXPECT_THAT(plain.signals.to_handle, ElementsAre(SIGTERM, SIGINT));
  for (int number : {SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGRTMIN, SIGRTMAX}) {
    EXPECT_THAT(plain.signals.to_forward, Contains(number));
  }
  for (int number : {SIGCHLD, SIGPIPE, SIGSEGV, SIGTSTP, SIGTTIN, SIGTTOU, SIGTERM}) {
    EXPECT_THAT(plain.signals.to_forward, Not(Contains(number)));
  }
}

TEST(ExecFlags, WhatATorchCommandIsTold) {
  RunOptions torch = Good({"--wire=torch", "--", "t.py"});
  EXPECT_THAT(torch.signals.to_handle, ElementsAre(SIGTERM, SIGINT, SIGHUP, SIGQUIT));
  for (int number : {SIGUSR1, SIGUSR2, SIGWINCH, SIGRTMIN}) EXPECT_THAT(torch.signals.to_forward, Contains(number));
  for (int number : {SIGHUP, SIGQUIT, SIGTERM}) EXPECT_THAT(torch.signals.to_forward, Not(Contains(number)));
  torch = Good({"--wire=torch", "--signals-to-handle=SIGTERM,SIGUSR1", "--", "t.py"});
  EXPECT_THAT(torch.signals.to_forward, Not(Contains(SIGUSR1)));
  EXPECT_THAT(torch.signals.to_forward, Contains(SIGHUP));
}

TEST(ExecFlags, TheGraceOfAPod) {
  using std::chrono::seconds;
  const Environment pod = {{"MUSTER_SHUTDOWN_TIMEOUT", "50"}};
  EXPECT_EQ(Good({"--", "true"}, pod).signals.shutdown_timeout, seconds(50));
  EXPECT_EQ(Good({"--serve-rsh"}, pod).signals.shutdown_timeout, seconds(50));
  EXPECT_EQ(Good({"--wire=torch", "--", "t.py"}, pod).signals.shutdown_timeout, seconds(50));
  EXPECT_EQ(Good({"--shutdown-timeout=9", "--", "true"}, pod).signals.shutdown_timeout, seconds(9));
  const Environment inside = {{"MUSTER_SHUTDOWN_TIMEOUT", "50"}, {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "48"}};
  EXPECT_EQ(Good({"--", "true"}, inside).signals.shutdown_timeout, seconds(50));
  EXPECT_EQ(Good({"--wire=torch", "--", "t.py"}, inside).signals.shutdown_timeout, seconds(48));
  EXPECT_THAT(std::string(Message(Parse({"--", "true"}, {{"MUSTER_SHUTDOWN_TIMEOUT", "1h"}}).status())),
              HasSubstr("MUSTER_SHUTDOWN_TIMEOUT=1h: want whole seconds"));
}

TEST(ExecFlags, WhereTheRemoteShellListens) {
  EXPECT_FALSE(Good({"--serve-rsh"}).rsh.listen);
  EXPECT_FALSE(Good({"--serve-rsh"}, {{"MUSTER_RSH_LISTEN", ""}}).rsh.listen);
  struct {
    std::string text, host;
    int port;
  } const rows[] = {
      {":7", "", 7}, {"localhost:7", "127.0.0.1", 7}, {"[::1]:0", "::1", 0}, {"10.0.0.1", "10.0.0.1", kNoPort}};
  for (const auto& row : rows) {
    const std::optional<Endpoint> listen = Good({"--serve-rsh", "--rsh-listen", row.text}).rsh.listen;
    ASSERT_TRUE(listen) << row.text;
    EXPECT_EQ(listen->host, row.host) << row.text;
    EXPECT_EQ(listen->port, row.port) << row.text;
  }
  EXPECT_THAT(std::string(Message(Parse({"--serve-rsh"}, {{"MUSTER_RSH_LISTEN", "pod:7"}}).status())),
              HasSubstr("MUSTER_RSH_LISTEN=pod:7: 'pod' is not a numeric address"));
  EXPECT_THAT(std::string(Message(Parse({"--serve-rsh", "--rsh-listen=:x"}).status())), HasSubstr("--rsh-listen=:x: "));
}

TEST(ExecFlags, TorchrunsVariablesAreForATorchrunInside) {
  const Environment environment = {{"PET_NNODES", "garbage"},       {"PET_MAX_RESTARTS", "9"},
                                   {"PET_LOG_DIR", "/logs"},        {"PET_RDZV_BACKEND", "etcd"},
                                   {"PET_SHUTDOWN_TIMEOUT", "1"},   {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "2"},
                                   {"MUSTER_TERMINATION_LOG", "x"}, {"MUSTER_RETRY_CODES", "3"}};
  RunOptions plain = Good({"--", "true"}, environment);
  EXPECT_EQ(plain.job.shared.max_restarts, 0);
  EXPECT_EQ(plain.logs.dir, "/dev/null");
  EXPECT_EQ(plain.signals.shutdown_timeout, std::chrono::seconds(25));
  EXPECT_EQ(plain.termination_log, "x");
  EXPECT_TRUE(plain.job.shared.overrides.retry.contains(3));
}

TEST(ExecFlags, TheHttpPortIsOffUnlessGivenOrUnderKubernetes) {
  EXPECT_FALSE(Good({"--", "true"}).http.on);
  HttpListen in_cluster = Good({"--", "true"}, {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}).http;
  EXPECT_TRUE(in_cluster.on);
  EXPECT_FALSE(in_cluster.required);
  EXPECT_EQ(in_cluster.port, kHttpPortUnderKubernetes);
  for (const char* off : {"off", ""}) {
    EXPECT_FALSE(Good({"--", "true"}, {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"MUSTER_HTTP_PORT", off}}).http.on);
  }
  HttpListen given = Good({"--http-port", "0", "--", "true"}, {{"MUSTER_HTTP_PORT", "off"}}).http;
  EXPECT_TRUE(given.on && given.required);
  EXPECT_EQ(given.host, "");
  EXPECT_EQ(given.port, 0);
}

TEST(ExecFlags, WiredAsTorch) {
  const Environment environment = {{"MUSTER_WIRE", "torch"}, {"PET_NPROC_PER_NODE", "3"}, {"PET_MAX_RESTARTS", "9"}};
  RunOptions torch = Good({"--", "python", "t.py"}, environment);
  EXPECT_EQ(torch.wire, Wire::kTorch);
  EXPECT_TRUE(torch.command.no_python);
  EXPECT_EQ(torch.workers.nproc, 3);
  EXPECT_EQ(torch.job.shared.max_restarts, 9);
  EXPECT_EQ(torch.job.shared.policy, rendezvous::RestartPolicy::kExitCode);
  EXPECT_EQ(torch.signals.shutdown_timeout, std::chrono::seconds(25));
  // A flag wins over its variable.
  EXPECT_EQ(Good({"--wire", "plain", "--", "true"}, environment).wire, Wire::kPlain);
}

TEST(ExecFlags, WiredAsMpiWhereTheHostsAreTold) {
  EXPECT_EQ(Good({"--wire", "mpi", "--", "mpirun"}).wire, Wire::kMpi);
  const Environment environment = {{"MUSTER_MPI_HOSTS", "a,b"}};
  EXPECT_EQ(Good({"--", "mpirun"}, environment).wire, Wire::kMpi);
  EXPECT_EQ(Good({"--", "mpirun"}, {{"MUSTER_MPI_HOSTS", ""}}).wire, Wire::kPlain);
  EXPECT_EQ(Good({"--wire=plain", "--", "mpirun"}, environment).wire, Wire::kPlain);
  EXPECT_EQ(Good({"--", "mpirun"}, {{"MUSTER_MPI_HOSTS", "a"}, {"MUSTER_WIRE", "torch"}}).wire, Wire::kTorch);
}

TEST(ExecFlags, ARangeOfNodesIsElastic) {
  Environment environment = {{"MUSTER_WIRE", "torch"},
                             {"PET_NNODES", "1:4"},
                             {"PET_MASTER_ADDR", "job-node-0-0.job"},
                             {"PET_MASTER_PORT", "29500"},
                             {"PET_NODE_RANK", "2"}};
  RunOptions elastic = Good({"--", "python", "t.py"}, environment);
  EXPECT_EQ(elastic.job.backend, Backend::kC10d);
  EXPECT_EQ(elastic.job.shared.min_nodes, 1);
  EXPECT_EQ(elastic.job.shared.max_nodes, 4);
  EXPECT_EQ(elastic.job.endpoint.host, "job-node-0-0.job");
  EXPECT_EQ(elastic.job.endpoint.port, 29500);

  environment.Set("PET_NNODES", "4");
  RunOptions fixed = Good({"--", "python", "t.py"}, environment);
  EXPECT_EQ(fixed.job.backend, Backend::kStatic);
  EXPECT_EQ(fixed.job.node_rank, 2);
  environment.Set("PET_NNODES", "1:4");
  environment.Set("PET_RDZV_BACKEND", "static");
  EXPECT_EQ(Good({"--", "python", "t.py"}, environment).job.backend, Backend::kStatic);
}

TEST(ExecFlags, APodsIndexIsItsRank) {
  Environment environment = {
      {"MUSTER_WIRE", "torch"}, {"PET_NNODES", "4"}, {"PET_MASTER_ADDR", "m"}, {"JOB_COMPLETION_INDEX", "3"}};
  EXPECT_EQ(Good({"--", "true"}, environment).job.node_rank, 3);
  environment.Set("PET_NODE_RANK", "1");
  EXPECT_EQ(Good({"--", "true"}, environment).job.node_rank, 1);
  environment.Unset("PET_NODE_RANK");
  environment.Set("PET_NNODES", "1");  // many pods that do not meet
  EXPECT_EQ(Good({"--", "true"}, environment).job.node_rank, std::nullopt);
  environment.Set("PET_NNODES", "2");
  auto run = Parse({"--", "true"}, environment);
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(std::string(run.status().message()), HasSubstr("JOB_COMPLETION_INDEX=3"));
}

// docs/torchrun-flags.md: flags over PET_* over TRAINER_*.
TEST(ExecFlags, ThePodsOwnNamesCountLast) {
  const Environment pod = {{"TRAINER_NNODES", "4"},
                           {"TRAINER_NPROC_PER_NODE", "3"},
                           {"TRAINER_NODE_0_HOSTNAME", "job-node-0-0.job"},
                           {"TRAINER_JOB_ID", "uid"},
                           {"JOB_COMPLETION_INDEX", "2"}};
  auto tell = [](const RunOptions& o) {
    return fmt::format("{}x{} {} {}:{} {}", o.job.shared.max_nodes, o.workers.nproc, *o.job.node_rank,
                       o.job.endpoint.host, o.job.endpoint.port, o.job.run_id);
  };
  const struct {
    Words flags;
    Environment more;
    std::string expected;
  } rows[] = {
      {{}, {}, "4x3 2 job-node-0-0.job:29500 uid"},
      {{}, {{"PET_NNODES", "5"}}, "5x3 2 job-node-0-0.job:29500 uid"},
      {{}, {{"PET_NPROC_PER_NODE", "7"}, {"PET_NODE_RANK", "1"}}, "4x7 1 job-node-0-0.job:29500 uid"},
      {{}, {{"PET_MASTER_ADDR", "m"}, {"PET_MASTER_PORT", "29400"}, {"PET_RDZV_ID", "r"}}, "4x3 2 m:29400 r"},
      {{"--nnodes=6", "--nproc-per-node=1"}, {{"PET_NNODES", "5"}}, "6x1 2 job-node-0-0.job:29500 uid"},
      {{"--master-addr=h", "--rdzv-id=i"}, {}, "4x3 2 h:29500 i"},
      {{}, {{"TRAINER_NPROC_PER_NODE", " "}}, "4x1 2 job-node-0-0.job:29500 uid"},
      {{}, {{"TRAINER_NNODES", "x"}, {"PET_NNODES", "5"}}, "5x3 2 job-node-0-0.job:29500 uid"},
      {{}, {{"TRAINER_NNODES", "1:4"}}, "4x3 2 job-node-0-0.job:29500 uid"},
  };
  for (const auto& row : rows) {
    const Environment environment = Joined(row.more, pod);
    Words words = row.flags;
    words.insert(words.end(), {"--wire=torch", "--", "true"});
    EXPECT_EQ(tell(Good(words, environment)), row.expected);
  }
  EXPECT_EQ(
      Good({"--wire=torch", "--", "true"}, {{"TRAINER_NNODES", "1"}, {"TRAINER_NODE_0_HOSTNAME", "h"}}).job.standalone,
      true);
  RunOptions plain = Good({"--", "true"}, pod);  // the variables are for a torchrun inside
  EXPECT_EQ(plain.job.shared.max_nodes, 1);
  EXPECT_EQ(plain.workers.nproc, 1);
}

// Wired as jax or xgboost: how the agents of several pods meet.
TEST(ExecFlags, PodsOfOtherFrameworksMeetBesideTheirOwnPort) {
  const Environment jax = {{"MUSTER_WIRE", "jax"},
                           {"JAX_NUM_PROCESSES", "3"},
                           {"JAX_PROCESS_ID", "2"},
                           {"JAX_COORDINATOR_ADDRESS", "n0:29500"}};
  const Environment xgboost = {
      {"MUSTER_WIRE", "xgboost"}, {"DMLC_NUM_WORKER", "3"}, {"DMLC_TASK_ID", "2"}, {"DMLC_TRACKER_URI", "n0"}};
  auto tell = [](const RunOptions& o) {
    return fmt::format("{}/{} {}:{} {} {} {}", *o.job.node_rank, o.job.shared.max_nodes, o.job.endpoint.host,
                       o.job.endpoint.port, o.job.run_id, o.job.is_host.value_or(false) ? "serves" : "dials",
                       o.job.shared.max_restarts);
  };
  const struct {
    Words flags;
    Environment more;
    std::string expected;
  } rows[] = {
      {{}, {}, "2/3 n0:29400 exec dials 0"},
      {{"--node-rank=0"}, {}, "0/3 n0:29400 exec serves 0"},
      {{"--nnodes=2", "--node-rank=1", "--max-restarts=7"}, {}, "1/2 n0:29400 exec dials 7"},
      {{}, {{"PET_MAX_RESTARTS", "6"}, {"PET_NODE_RANK", "1"}}, "2/3 n0:29400 exec dials 6"},
      {{}, {{"TRAINER_JOB_ID", "uid"}, {"TRAINER_NODE_0_HOSTNAME", "first"}}, "2/3 first:29400 uid dials 0"},
      {{}, {{"PET_RDZV_ID", "r"}, {"TRAINER_JOB_ID", "uid"}}, "2/3 n0:29400 r dials 0"},
      {{"--rdzv-id=i", "--rdzv-endpoint=h:1"}, {{"PET_RDZV_ID", "r"}}, "2/3 h:1 i dials 0"},
      {{"--rdzv-endpoint=h"}, {}, "2/3 h:29400 exec dials 0"},
      {{}, {{"PET_RDZV_ENDPOINT", "[fd00::1]:5"}}, "2/3 fd00::1:5 exec dials 0"},
      {{"--rdzv-conf=is_host=1"}, {}, "2/3 n0:29400 exec serves 0"},
      {{"--node-rank=0"}, {{"PET_RDZV_CONF", "is_host=0"}}, "0/3 n0:29400 exec dials 0"},
  };
  for (const Environment& pod : {jax, xgboost}) {
    for (const auto& row : rows) {
      const Environment environment = Joined(row.more, pod);
      Words words = row.flags;
      words.insert(words.end(), {"--", "true"});
      RunOptions options = Good(words, environment);
      EXPECT_EQ(tell(options), row.expected) << Join(words, " ");
      EXPECT_TRUE(options.job.shared.indexed);
      EXPECT_EQ(options.job.shared.min_nodes, options.job.shared.max_nodes);
      EXPECT_EQ(options.job.shared.max_nodes, options.job.shared.max_nodes);
      EXPECT_FALSE(options.job.standalone);
      EXPECT_EQ(options.workers.framework_env.size(), 1U);
    }
  }
}

TEST(ExecFlags, HowPodsOfOtherFrameworksWaitForEachOther) {
  const Environment pod = {{"PET_NNODES", "2"},
                           {"PET_NODE_RANK", "0"},
                           {"PET_MASTER_ADDR", "n0"},
                           {"PET_MASTER_PORT", "29400"},
                           {"MUSTER_TOKEN_FILE", "/token"}};
  RunOptions jax = Good({"--wire=jax", "--rdzv-conf=join_timeout=7,tls_ca=/ca", "--", "true"}, pod);
  EXPECT_EQ(jax.job.endpoint.port, 29401) << "29400 is JAX's here";
  EXPECT_EQ(jax.job.shared.join_timeout, std::chrono::seconds(7));
  EXPECT_EQ(jax.job.credentials.token, "/token");
  EXPECT_EQ(jax.job.credentials.tls_ca, "/ca");
  EXPECT_THAT(Good({"--wire=jax", "--rdzv-conf=x=1", "--", "true"}, pod).warnings, Contains(HasSubstr("x=1")));
  EXPECT_EQ(Good({"--wire=xgboost", "--", "true"}, pod).job.endpoint.port, 29408) << "8 of them are the tracker's";
  for (const char* wire : {"--wire=jax", "--wire=xgboost"}) {
    RunOptions alone = Good({wire, "--nnodes=1", "--", "true"}, pod);
    EXPECT_TRUE(alone.job.standalone);
    EXPECT_EQ(alone.job.run_id, "exec");
    EXPECT_EQ(alone.job.shared.max_nodes, 1);
    EXPECT_FALSE(alone.job.shared.indexed);
    EXPECT_EQ(alone.job.credentials.token, "");
    const struct {
      Words flags;
      std::string_view says;
    } rows[] = {
        {{"--rdzv-endpoint=n0:29400"}, "--rdzv-endpoint=n0:29400: the command itself listens there"},
        {{"--rdzv-endpoint=n0:x"}, "--rdzv-endpoint=n0:x: the port must be"},
        {{"--rdzv-conf=join_timeout=x"}, "--rdzv-conf=join_timeout=x: join_timeout=x"},
        {{"--rdzv-conf=join_timeout"}, "'join_timeout' has no value"},
        {{"--nnodes=1:2"}, "--nnodes=1:2: want a whole number"},
        {{"--node-rank=2"}, "--node-rank=2"},
        {{"--master-port=5"}, "--master-port means nothing"},
        {{"--rdzv-backend=c10d"}, "--rdzv-backend means nothing"},
    };
    for (const auto& row : rows) {
      Words words = {wire};
      words.insert(words.end(), row.flags.begin(), row.flags.end());
      words.insert(words.end(), {"--", "true"});
      auto run = Parse(words, pod);
      ASSERT_FALSE(run.ok()) << Join(words, " ");
      EXPECT_THAT(std::string(run.status().message()), HasSubstr(std::string(row.says)));
    }
  }
  auto overruled = Parse({"--wire=jax", "--nnodes=3", "--", "true"}, pod);
  ASSERT_TRUE(overruled.ok());
  EXPECT_EQ(Describe(overruled->overruled), "flags win over the environment: --nnodes=3 over PET_NNODES=2");
}

TEST(ExecFlags, WhatAnAgentAroundHasSetIsNobodysWish) {
  auto overruled = [](const Environment& environment) {
    auto run = ParseRun({"--restart-policy=on-failure", "--http-port=9000", "t.py"}, environment);
    EXPECT_TRUE(run.ok()) << run.status();
    Words variables;
    for (const Overruled& one : run->overruled) variables.emplace_back(one.variable);
    return variables;
  };
  const Environment set = {{"MUSTER_RESTART_POLICY", "exit-code"}, {"MUSTER_HTTP_PORT", "off"}};
  EXPECT_THAT(overruled(set), ElementsAre("MUSTER_RESTART_POLICY", "MUSTER_HTTP_PORT"));
  Environment environment = {{"PATH", "/bin"}, {"MUSTER_HTTP_PORT", "8"}};
  PutForInside("MUSTER_RESTART_POLICY", "exit-code", &environment);
  PutForInside("MUSTER_HTTP_PORT", "off", &environment);
  PutForInside("MUSTER_HTTP_PORT", "off", &environment);  // set by one more agent
  EXPECT_EQ(environment.entries().size(), 4U);
  EXPECT_EQ(environment.Get(kFromOutside), "MUSTER_RESTART_POLICY=exit-code MUSTER_HTTP_PORT=off");
  EXPECT_THAT(overruled(environment), ElementsAre());
  environment.Set("MUSTER_RESTART_POLICY", "never");  // set by the command itself
  EXPECT_THAT(overruled(environment), ElementsAre("MUSTER_RESTART_POLICY"));
}

TEST(ExecFlags, APlainCommandMeetsNobody) {
  const Environment pod = {{"PET_NNODES", "2"},
                           {"PET_NODE_RANK", "0"},
                           {"PET_MASTER_ADDR", "n0"},
                           {"MUSTER_TOKEN_FILE", "/token"},
                           {"PET_RDZV_CONF", "nonsense"}};
  for (const char* wire : {"--wire=plain", "--wire=mpi"}) {
    RunOptions alone = Good({wire, "--", "true"}, pod);
    EXPECT_TRUE(alone.job.standalone);
    EXPECT_EQ(alone.job.shared.max_nodes, 1);
    EXPECT_EQ(alone.job.credentials.token, "");
    EXPECT_FALSE(Parse({wire, "--rdzv-endpoint=h:1", "--", "true"}, pod).ok());
  }
}

TEST(ExecFlags, ATorchrunWiredAsTorchIsReadAsOurOwn) {
  const struct {
    Words command;
    std::string launcher;
    bool module = false, no_python = false, launch = false;
  } rows[] = {
      {{"torchrun", "--nproc-per-node=2", "t.py", "--nnodes", "9"}, "torchrun"},
      {{"/venv/bin/torchrun", "--nproc_per=2", "-m", "t.py", "--nnodes", "9"}, "/venv/bin/torchrun", true},
      {{"torchrun", "--no-python", "--nproc-per-node", "2", "--", "t.py", "--nnodes", "9"}, "torchrun", false, true},
      {{"python", "-m", "torch.distributed.run", "--nproc-per-node=2", "t.py", "--nnodes", "9"}, "python"},
      {{"/v/python3.12", "-u", "-X", "dev", "-mtorch.distributed.launch", "--nproc-per-node=2", "t.py", "--nnodes",
        "9"},
       "/v/python3.12",
       false,
       false,
       true},
  };
  for (const auto& row : rows) {
    Words words = {"--nproc-per-node=5", "--max-restarts=3", "--"};
    words.insert(words.end(), row.command.begin(), row.command.end());
    SCOPED_TRACE(Join(words, " "));
    RunOptions run = Good(words, {{"MUSTER_WIRE", "torch"}, {"PET_NPROC_PER_NODE", "4"}});
    EXPECT_EQ(run.workers.nproc, 2);
    EXPECT_EQ(run.job.shared.max_restarts, 3);
    EXPECT_EQ(run.job.shared.policy, rendezvous::RestartPolicy::kExitCode);
    EXPECT_EQ(run.job.shared.max_nodes, 1);
    EXPECT_EQ(run.command.script, "t.py");
    EXPECT_THAT(run.command.script_args, ElementsAre("--nnodes", "9"));
    EXPECT_EQ(run.command.launcher, row.launcher);
    EXPECT_EQ(run.command.module, row.module);
    EXPECT_EQ(run.command.no_python, row.no_python);
    EXPECT_EQ(run.command.local_rank_argument, row.launch);
  }
  // A command that is not a torchrun, or is not wired as torch, stays a command.
  for (const Words& command :
       {Words{"python", "t.py", "-m", "torch.distributed.run"}, Words{"python", "-m", "torch.distributed.runner"},
        Words{"python", "-m"}, Words{"python", "-c", "1"}, Words{"sh", "-c", "torchrun t.py"}, Words{"python"},
        Words{"my-torchrun", "t.py"}}) {
    Words words = {"--wire=torch", "--"};
    words.insert(words.end(), command.begin(), command.end());
    RunOptions run = Good(words);
    EXPECT_TRUE(run.command.no_python);
    EXPECT_EQ(run.command.script, command.front());
    EXPECT_EQ(run.command.script_args.size(), command.size() - 1);
  }
  EXPECT_EQ(Good({"--", "torchrun", "t.py"}).command.script, "torchrun");
  EXPECT_THAT(Good({"--", "sh", "-c", "torchrun t.py"}).warnings, testing::IsEmpty());
  auto help = Parse({"--wire=torch", "--", "torchrun", "--help"});
  ASSERT_TRUE(help.ok());
  EXPECT_THAT(help->text, HasSubstr("usage: muster run"));
}

TEST(ExecFlags, ATorchrunForEachWorkerIsWarnedOf) {
  const struct {
    Words command;
    bool warned;
  } rows[] = {
      {{"sh", "-c", "torchrun t.py"}, true},
      {{"bash", "-ec", "pip install x&&(/venv/bin/torchrun t.py)"}, true},
      {{"sh", "-c", "exec python -m torch.distributed.run t.py"}, true},
      {{"env", "A=B", "torchrun", "t.py"}, true},
      {{"sh", "-c", "python t.py --note my-torchrun torchrun.py"}, false},
      {{"python", "t.py", "--launcher", "torchrun"}, false},
      {{"torchrun", "t.py", "torchrun"}, false},
      {{"torchrun.sh"}, false},
      {{"sh", "-c", ""}, false},
  };
  for (const auto& row : rows) {
    Words words = {"--wire=torch", "--"};
    words.insert(words.end(), row.command.begin(), row.command.end());
    EXPECT_THAT(Good(words).warnings, row.warned ? testing::Contains(HasSubstr("use --wire=plain"))
                                                 : testing::Matcher<Words>(testing::IsEmpty()))
        << Join(words, " ");
  }
}

TEST(ExecFlags, WhatIsWrongIsNamed) {
  const struct {
    Words words;
    Environment environment;
    std::string_view says;
  } rows[] = {
      {{}, {}, "the command is missing"},
      {{"--"}, {}, "the command is missing"},
      {{"--", ""}, {}, "the command is missing"},
      {{"--nnodes", "2", "--", "true"}, {}, "--nnodes means nothing with --wire=plain"},
      {{"--standalone", "--", "true"}, {}, "--standalone means nothing"},
      {{"--wire", "tensorflow", "--", "true"}, {}, "choose one of plain, torch, jax, mpi, xgboost"},
      {{"--", "true"},
       {{"MUSTER_WIRE", "tensorflow"}},
       "MUSTER_WIRE=tensorflow: choose one of plain, torch, jax, mpi, xgboost"},
      {{"--wire=torch", "--", "torchrun"}, {}, "the script (training_script) is missing"},
      {{"--wire=torch", "--", "torchrun", "--nproc-per-node=x", "t.py"}, {}, "--nproc-per-node=x"},
      {{"--wire=torch", "--", "torchrun", "--rdzv-backend=etcd", "t.py"}, {}, "use --wire=plain with that torchrun"},
      {{"--wire=torch", "--rdzv-backend=etcd", "--", "true"}, {}, "use --wire=plain"},
      {{"--wire=torch", "--", "true"}, {{"TRAINER_NNODES", "many"}}, "TRAINER_NNODES=many"},
      {{"--wire=torch", "--", "true"}, {{"TRAINER_NPROC_PER_NODE", "0"}}, "TRAINER_NPROC_PER_NODE=0"},
      {{"--", "mpirun"}, {{"MUSTER_MPI_HOSTS", "a,b:x"}}, "MUSTER_MPI_HOSTS: line 1, 'b:x'"},
      {{"--wire=mpi", "--", "mpirun"}, {{"MUSTER_MPI_SLOTS", "0"}}, "MUSTER_MPI_SLOTS=0"},
      {{"--wire=mpi", "--nproc-per-node=2", "--", "mpirun"}, {}, "means nothing with --wire=mpi"},
      {{"--shutdown-timeout", "soon", "--", "true"}, {}, "--shutdown-timeout=soon"},
      {{"--restart-policy", "sometimes", "--", "true"}, {}, "--restart-policy=sometimes"},
      {{"--module", "--wire=torch", "--", "true"}, {}, "contradict"},
  };
  for (const auto& row : rows) {
    auto run = Parse(row.words, row.environment);
    ASSERT_FALSE(run.ok()) << Join(row.words, " ");
    EXPECT_THAT(std::string(run.status().message()), HasSubstr(std::string(row.says)));
  }
}

TEST(ExecFlags, WhatCanBeReadOfAWrongCommandLine) {
  const struct {
    Words words;
    std::string log;  // --termination-log
  } rows[] = {
      {{"--nosuch", "x", "--termination-log", "F", "--", "cmd"}, "F"},
      {{"-Z", "x", "--termination-log=F", "--", "cmd"}, "F"},
      {{"--nosuch", "--termination-log", "F", "--", "cmd"}, "F"},
      {{"--nosuch", "x", "--other", "y", "--termination-log", "F", "--", "cmd"}, "F"},
      // The flag is the command's own, or may be.
      {{"--nosuch", "cmd", "--termination-log", "F"}, ""},
      {{"--nosuch", "cmd", "t.py", "--termination-log", "F", "--", "x"}, ""},
      {{"--nosuch=1", "cmd", "--termination-log", "F", "--", "x"}, ""},
      {{"--nosuch", "x", "--", "cmd", "--termination-log", "F"}, ""},
  };
  for (const auto& row : rows) {
    CommandLine line = SplitWhatCanBeRead(row.words, CalledAs::kExec);
    auto log = line.values.find("termination-log");
    EXPECT_EQ(log == line.values.end() ? "" : log->second, row.log) << Join(row.words, " ");
  }
}

TEST(ExecFlags, HangsAreLookedForWhenAskedFor) {
  auto off = Parse({"--", "true"});
  ASSERT_TRUE(off.ok());
  EXPECT_FALSE(off->options.hang.on());
  EXPECT_EQ(off->options.logs.dir, "/dev/null");
  auto on = Parse({"--hang-timeout=5m", "--hang-log-timeout", "1h", "--hang-signal", "USR1", "--", "true"});
  ASSERT_TRUE(on.ok()) << on.status();
  EXPECT_EQ(on->options.hang.step_timeout, std::chrono::minutes(5));
  EXPECT_EQ(on->options.hang.log_timeout, std::chrono::hours(1));
  EXPECT_EQ(on->options.hang.signal, SIGUSR1);
  EXPECT_EQ(on->options.logs.dir, std::nullopt) << "evidence and heartbeats need a folder";
  auto zero = Parse({"--hang-timeout=0", "--", "true"});
  ASSERT_TRUE(zero.ok());
  EXPECT_FALSE(zero->options.hang.on());
}

TEST(ExecFlags, VariablesAboutHangsAreForATorchrunInsideAPlainCommand) {
  const Environment environment = {{"MUSTER_HANG_TIMEOUT", "30"}, {"MUSTER_HANG_SIGNAL", "nonsense"}};
  auto plain = Parse({"--", "torchrun", "train.py"}, environment);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_FALSE(plain->options.hang.on());
  auto torch = Parse({"--wire=torch", "--", "train.py"}, environment);
  ASSERT_FALSE(torch.ok());
  EXPECT_THAT(std::string(torch.status().message()), HasSubstr("MUSTER_HANG_SIGNAL=nonsense"));
  auto nowhere = Parse({"--hang-timeout=3", "--log-dir=/dev/null", "--", "true"});
  ASSERT_TRUE(nowhere.ok());
  EXPECT_THAT(nowhere->options.warnings, testing::Contains(HasSubstr("--hang-timeout has no effect")));
  auto wrong = Parse({"--hang-timeout=soon", "--", "true"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("--hang-timeout=soon"));
}

TEST(ExecFlags, HelpNamesItsOwnDefaults) {
  auto run = Parse({"--help"});
  ASSERT_TRUE(run.ok());
  EXPECT_THAT(run->text, HasSubstr("muster exec [flags] -- COMMAND"));
  EXPECT_THAT(run->text, HasSubstr("default exit-code"));
  EXPECT_THAT(run->text, HasSubstr("--wire"));
  EXPECT_THAT(HelpText(CalledAs::kRun), Not(HasSubstr("--wire")));
}

}  // namespace
}  // namespace muster::agent
