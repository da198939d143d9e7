// SPDX-License-Identifier: Apache-2.0
#include "agent/local_nodes.h"

#include <gmock/gmock.h>

#include "agent/flags/torchrun_flags.h"

namespace muster::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;

const Environment kNoEnvironment;

// The options that node 1 reads from the arguments that it is given.
ParsedRun NodeOf(const std::vector<std::string>& arguments, CalledAs called_as = CalledAs::kRun,
                 std::string_view name = "run") {
  auto parsed = ParseRun(arguments, kNoEnvironment, called_as);
  EXPECT_TRUE(parsed.ok()) << Message(parsed.status());
  auto node = LocalNodeArguments(*parsed, arguments, called_as, 1, 4321);
  EXPECT_EQ(node.front(), name);
  node.erase(node.begin());
  auto again = ParseRun(node, kNoEnvironment, called_as);
  EXPECT_TRUE(again.ok()) << Message(again.status());
  return *again;
}

TEST(LocalNodes, EachNodeJoinsTheOthers) {
  ParsedRun node = NodeOf({"--nodes-on-this-machine", "3", "--nproc-per-node=2", "--rdzv-conf", "last_call_timeout=7",
                           "--log-dir", "logs", "train.py", "--nnodes", "9"});
  const RunOptions& options = node.options;
  EXPECT_EQ(options.job.nodes_on_this_machine, 0);
  EXPECT_EQ(options.job.shared.min_nodes, 3);
  EXPECT_EQ(options.job.shared.max_nodes, 3);
  EXPECT_EQ(options.job.endpoint.host, "127.0.0.1");
  EXPECT_EQ(options.job.endpoint.port, 4321);
  EXPECT_EQ(options.job.is_host, false);
  EXPECT_EQ(options.job.shared.last_call, std::chrono::seconds(7));
  EXPECT_EQ(options.job.node_name, "node-1");
  EXPECT_EQ(options.job.node_rank, 1);
  EXPECT_THAT(options.warnings, testing::IsEmpty());
  EXPECT_EQ(options.logs.dir, "logs/node-1");
  EXPECT_EQ(options.command.script, "train.py");
  EXPECT_THAT(options.command.script_args, ElementsAre("--nnodes", "9"));
}

TEST(LocalNodes, ElasticRangeAndRunIdAreKept) {
  ParsedRun node = NodeOf({"--nnodes", "1:3", "--rdzv-id", "mine", "--nodes-on-this-machine", "2", "train.py"});
  EXPECT_EQ(node.options.job.shared.min_nodes, 1);
  EXPECT_EQ(node.options.job.shared.max_nodes, 3);
  EXPECT_EQ(node.options.job.run_id, "mine");
}

TEST(LocalNodes, TheScriptKeepsItsArguments) {
  struct {
    std::vector<std::string> behind;  // after --nodes-on-this-machine=2
    std::string script;
    std::vector<std::string> script_args;
  } const rows[] = {
      {{"x.py"}, "x.py", {}},
      {{"x.py", "a", "--", "b"}, "x.py", {"a", "--", "b"}},
      {{"x.py", "--", "a", "b"}, "x.py", {"a", "b"}},
      {{"x.py", "--", "--", "a"}, "x.py", {"--", "a"}},
      {{"--", "x.py", "--", "a"}, "x.py", {"--", "a"}},
      {{"--", "-odd.py", "x"}, "-odd.py", {"x"}},
      {{"--role", "x.py", "x.py", "x.py"}, "x.py", {"x.py"}},
      {{"x.py", "--standalone"}, "x.py", {"--standalone"}},
  };
  for (const auto& row : rows) {
    std::vector<std::string> arguments = {"--nodes-on-this-machine=2"};
    arguments.insert(arguments.end(), row.behind.begin(), row.behind.end());
    ParsedRun node = NodeOf(arguments);
    EXPECT_EQ(node.options.job.nodes_on_this_machine, 0) << testing::PrintToString(row.behind);
    EXPECT_EQ(node.options.command.script, row.script) << testing::PrintToString(row.behind);
    EXPECT_EQ(node.options.command.script_args, row.script_args) << testing::PrintToString(row.behind);
  }
}

TEST(LocalNodes, StandaloneIsLeftToTheParent) {
  for (const char* spelled : {"--standalone", "--stand"}) {
    for (const ParsedRun& node :
         {NodeOf({spelled, "--nodes-on-this-machine", "2", "x.py"}),
          NodeOf({"--wire=torch", "--nodes-on-this-machine=2", "--", "torchrun", spelled, "x.py", "--", "a"},
                 CalledAs::kExec, "exec")}) {
      EXPECT_FALSE(node.options.job.standalone);
      EXPECT_EQ(node.options.job.endpoint.port, 4321);
      EXPECT_EQ(node.options.command.script, "x.py");
      EXPECT_THAT(node.options.warnings, testing::IsEmpty());
    }
  }
}

TEST(LocalNodes, WhereTheParentServes) {
  struct {
    std::vector<std::string> flags;
    int port;  // 0: the kernel chooses
  } const rows[] = {
      {{}, 0},
      {{"--standalone"}, 0},
      {{"--rdzv-backend=c10d"}, 0},
      {{"--rdzv-backend=c10d", "--master-port=29501"}, 0},  // --master-port counts for the static backend only
      {{"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29501"}, 29501},
      {{"--rdzv-backend=c10d", "--rdzv-endpoint=localhost"}, 29400},
      {{"--rdzv-endpoint=localhost:29501"}, 29501},
      {{"--master-port=29501"}, 29501},
  };
  for (const auto& row : rows) {
    std::vector<std::string> arguments = row.flags;
    arguments.insert(arguments.end(), {"--nodes-on-this-machine=2", "x.py"});
    auto parsed = ParseRun(arguments, kNoEnvironment, CalledAs::kRun);
    ASSERT_TRUE(parsed.ok()) << Message(parsed.status());
    EXPECT_EQ(parsed->options.job.endpoint.port, row.port) << testing::PrintToString(row.flags);
  }
}

TEST(LocalNodes, CalledAsTheUserCalledIt) {
  RunOptions exec =
      NodeOf({"--wire=torch", "--nodes-on-this-machine=2", "--", "sh", "-c", "x"}, CalledAs::kExec, "exec").options;
  EXPECT_TRUE(exec.command.no_python);
  EXPECT_EQ(exec.command.script, "sh");
  EXPECT_EQ(exec.job.endpoint.port, 4321);
  RunOptions torchrun =
      NodeOf({"--wire=torch", "--nodes-on-this-machine=2", "--", "torchrun", "--role=r", "--", "x.py", "a"},
             CalledAs::kExec, "exec")
          .options;
  EXPECT_EQ(torchrun.job.nodes_on_this_machine, 0);
  EXPECT_EQ(torchrun.job.endpoint.port, 4321);
  EXPECT_EQ(torchrun.command.script, "x.py");
  EXPECT_THAT(torchrun.command.script_args, ElementsAre("a"));
  EXPECT_FALSE(NodeOf({"--use-env", "--nodes-on-this-machine=2", "x.py"}, CalledAs::kLaunch, "launch")
                   .options.command.no_python);
}

}  // namespace
}  // namespace muster::agent
