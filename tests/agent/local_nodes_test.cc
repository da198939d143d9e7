#include "agent/local_nodes.h"

#include <gmock/gmock.h>

#include "agent/torchrun_flags.h"

namespace muster::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;

std::optional<std::string> NoEnvironment(std::string_view) { return std::nullopt; }

// What node 1 makes of the arguments it is given.
ParsedRun NodeOf(const std::vector<std::string>& arguments, CalledAs called_as = CalledAs::kRun,
                 std::string_view name = "run") {
  auto parsed = ParseRun(arguments, NoEnvironment, called_as);
  EXPECT_TRUE(parsed.ok()) << Message(parsed.status());
  auto node = LocalNodeArguments(parsed->options, arguments, called_as, 1, 4321);
  EXPECT_EQ(node.front(), name);
  node.erase(node.begin());
  auto again = ParseRun(node, NoEnvironment, called_as);
  EXPECT_TRUE(again.ok()) << Message(again.status());
  return *again;
}

TEST(LocalNodes, EachNodeJoinsTheOthers) {
  ParsedRun node = NodeOf({"--nodes-on-this-machine", "3", "--nproc-per-node=2", "--rdzv-conf", "last_call_timeout=7",
                           "--log-dir", "logs", "train.py", "--nnodes", "9"});
  const RunOptions& options = node.options;
  EXPECT_EQ(options.nodes_on_this_machine, 0);
  EXPECT_EQ(options.min_nodes, 3);
  EXPECT_EQ(options.max_nodes, 3);
  EXPECT_EQ(options.endpoint_host, "127.0.0.1");
  EXPECT_EQ(options.endpoint_port, 4321);
  EXPECT_EQ(options.is_host, false);
  EXPECT_EQ(options.job.last_call, std::chrono::seconds(7));
  EXPECT_EQ(options.node_name, "node-1");
  EXPECT_EQ(options.log_dir, "logs/node-1");
  EXPECT_EQ(options.script, "train.py");
  EXPECT_THAT(options.script_args, ElementsAre("--nnodes", "9"));
}

TEST(LocalNodes, ElasticRangeAndRunIdAreKept) {
  ParsedRun node = NodeOf({"--nnodes", "1:3", "--rdzv-id", "mine", "--nodes-on-this-machine", "2", "train.py"});
  EXPECT_EQ(node.options.min_nodes, 1);
  EXPECT_EQ(node.options.max_nodes, 3);
  EXPECT_EQ(node.options.run_id, "mine");
}

TEST(LocalNodes, AScriptThatLooksLikeAFlag) {
  ParsedRun node = NodeOf({"--nodes-on-this-machine", "2", "--", "-odd.py", "x"});
  EXPECT_EQ(node.options.script, "-odd.py");
  EXPECT_THAT(node.options.script_args, ElementsAre("x"));
}

TEST(LocalNodes, CalledAsTheUserCalledIt) {
  RunOptions exec =
      NodeOf({"--wire=torch", "--nodes-on-this-machine=2", "--", "sh", "-c", "x"}, CalledAs::kExec, "exec").options;
  EXPECT_TRUE(exec.no_python);
  EXPECT_EQ(exec.script, "sh");
  EXPECT_EQ(exec.endpoint_port, 4321);
  RunOptions torchrun =
      NodeOf({"--wire=torch", "--nodes-on-this-machine=2", "--", "torchrun", "--role=r", "--", "x.py", "a"},
             CalledAs::kExec, "exec")
          .options;
  EXPECT_EQ(torchrun.nodes_on_this_machine, 0);
  EXPECT_EQ(torchrun.endpoint_port, 4321);
  EXPECT_EQ(torchrun.script, "x.py");
  EXPECT_THAT(torchrun.script_args, ElementsAre("a"));
  EXPECT_FALSE(
      NodeOf({"--use-env", "--nodes-on-this-machine=2", "x.py"}, CalledAs::kLaunch, "launch").options.no_python);
}

}  // namespace
}  // namespace muster::agent
