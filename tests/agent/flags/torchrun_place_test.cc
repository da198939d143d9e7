// SPDX-License-Identifier: Apache-2.0
// Where torchrun's flags put the rendezvous: alone, static, c10d; --rdzv-conf, credentials.
#include <gmock/gmock.h>

#include "agent/flags/flag_values.h"
#include "tests/agent/parse_run.h"

namespace muster::agent {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TorchrunPlace, OneNodeWithoutAPlaceIsStandalone) {
  RunOptions plain = Good({});  // implicit
  EXPECT_TRUE(plain.job.standalone);
  EXPECT_EQ(plain.job.backend, Backend::kC10d);
  EXPECT_EQ(plain.job.endpoint.host, "localhost");
  EXPECT_EQ(plain.job.endpoint.port, 0);
  EXPECT_THAT(plain.job.run_id,
              testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(plain.job.run_id, Good({}).job.run_id);
  EXPECT_FALSE(plain.job.shared.indexed);
  EXPECT_THAT(plain.warnings, IsEmpty());
  RunOptions asked = Good({"--standalone", "--rdzv-backend=etcd", "--rdzv-endpoint=h:1", "--rdzv-id=i"});
  EXPECT_TRUE(asked.job.standalone);
  EXPECT_EQ(asked.job.endpoint.host, "localhost");
  EXPECT_NE(asked.job.run_id, "i");
  // Not implicit: a port by flag or variable, an endpoint, several nodes, another backend.
  EXPECT_FALSE(Good({"--master-port=29500"}).job.standalone);
  EXPECT_FALSE(Good({}, {{"PET_MASTER_PORT", "29500"}}).job.standalone);
  EXPECT_FALSE(Good({"--rdzv-endpoint=h:1"}).job.standalone);
  EXPECT_FALSE(Good({"--nnodes=2"}).job.standalone);
  EXPECT_FALSE(Good({"--rdzv-backend=c10d"}).job.standalone);
  EXPECT_EQ(Good({"--standalone", "--nnodes=2"}).warnings.size(), 1u);
}

TEST(FlagValues, WhereToListen) {
  struct Row {
    std::string text;
    std::string host;
    int port;
  };
  const Row rows[] = {
      {"127.0.0.1:5", "127.0.0.1", 5}, {"127.0.0.1", "127.0.0.1", 7}, {":0", "", 0},     {"[::]:5", "", 5},
      {"localhost:5", "127.0.0.1", 5}, {"[::1]:5", "::1", 5},         {"::1", "::1", 7}, {"0.0.0.0:5", "0.0.0.0", 5}};
  for (const Row& row : rows) {
    auto listen = ParseListen(row.text, 7);
    ASSERT_TRUE(listen.ok()) << row.text << ": " << listen.status();
    EXPECT_EQ(listen->host, row.host) << row.text;
    EXPECT_EQ(listen->port, row.port) << row.text;
  }
  for (const char* bad : {"", "nohost", "nohost:1", ":x", ":99999", "127.0.0.1:-1", "1.2.3:4"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseListen(bad, 7).status())) << bad;
  }
}

TEST(TorchrunPlace, StaticEndpoint) {
  RunOptions run = Good({"--nnodes=2", "--master-addr=10.0.0.1", "--master-port=1234"});
  EXPECT_EQ(run.job.backend, Backend::kStatic);
  EXPECT_EQ(run.job.endpoint.host, "10.0.0.1");
  EXPECT_EQ(run.job.endpoint.port, 1234);
  EXPECT_EQ(run.job.run_id, "none");
  run = Good({"--nnodes=2"});
  EXPECT_EQ(fmt::format("{}:{}", run.job.endpoint.host, run.job.endpoint.port), "127.0.0.1:29500");
  EXPECT_EQ(run.job.shared.join_timeout, seconds(900));
  run = Good({"--nnodes=2", "--rdzv-endpoint=[fd00::1]:7", "--master-addr=ignored"});
  EXPECT_EQ(fmt::format("{}|{}", run.job.endpoint.host, run.job.endpoint.port), "fd00::1|7");
  EXPECT_EQ(Good({"--nnodes=2", "--master-addr=[::1]"}).job.endpoint.host, "::1");
  EXPECT_THAT(Error({"--nnodes=2", "--rdzv-endpoint=host", "x.py"}), HasSubstr("needs a port"));
  // The flag or variable that gave the port, for the error if it cannot be served.
  EXPECT_EQ(Good({"--nnodes=2"}).job.port_origin, "--master-port");
  EXPECT_EQ(Good({"--nnodes=2", "--master-port=7"}).job.port_origin, "--master-port");
  EXPECT_EQ(Good({"--nnodes=2"}, {{"PET_MASTER_PORT", "7"}}).job.port_origin, "PET_MASTER_PORT");
  EXPECT_EQ(Good({"--nnodes=2", "--rdzv-endpoint=h:7"}).job.port_origin, "--rdzv-endpoint");
  EXPECT_EQ(Good({"--nnodes=2"}, {{"PET_RDZV_ENDPOINT", "h:7"}}).job.port_origin, "PET_RDZV_ENDPOINT");
}

TEST(TorchrunPlace, C10dEndpoint) {
  struct {
    std::string text, host;
    int port;
  } const rows[] = {{"", "localhost", 29400},    {"h", "h", 29400},          {"h:1", "h", 1},
                    {" h:65535 ", "h", 65535},   {"[::1]", "::1", 29400},    {"[::1]:9", "::1", 9},
                    {"fd00::a:9", "fd00::a", 9}, {"a_b.c-d:0", "a_b.c-d", 0}};
  for (const auto& row : rows) {
    RunOptions run = Good({"--rdzv-backend=c10d", "--rdzv-endpoint=" + row.text});
    EXPECT_EQ(run.job.endpoint.host, row.host) << row.text;
    EXPECT_EQ(run.job.endpoint.port, row.port) << row.text;
  }
  for (const char* bad : {"h:65536", "h:", "h:-1", "h:1x", ":1", "h/a:1", "[]:1", "a b:1", "h:000001", "h\xff:1"}) {
    EXPECT_THAT(Error({"--rdzv-backend=c10d", std::string("--rdzv-endpoint=") + bad, "x.py"}),
                HasSubstr(std::string("--rdzv-endpoint=") + bad + ":"));
  }
  EXPECT_EQ(Good({"--rdzv-backend=c10d", "--master-addr=h"}).warnings.size(), 1u);
  const RunOptions ranked = Good({"--rdzv-backend=c10d", "--node-rank=1"});
  EXPECT_THAT(ranked.warnings, testing::IsEmpty());
  EXPECT_EQ(ranked.job.node_rank, 1);
  EXPECT_EQ(Good({"--rdzv-backend=c10d"}).job.node_rank, std::nullopt);
  EXPECT_THAT(Good({"--rdzv-backend=c10d", "--rdzv-id="}).job.run_id, testing::SizeIs(36));
}

TEST(TorchrunPlace, RdzvConf) {
  auto conf = [](const std::string& text) { return Good({"--rdzv-backend=c10d", "--rdzv-conf", text}); };
  rendezvous::JobOptions defaults = Good({"--rdzv-backend=c10d"}).job.shared;
  EXPECT_EQ(defaults.join_timeout, seconds(600));
  EXPECT_EQ(defaults.last_call, seconds(30));
  EXPECT_EQ(defaults.heartbeat_timeout, seconds(15));
  rendezvous::JobOptions job =
      conf(" join_timeout = 5 , last_call_timeout=0,close_timeout=1,heartbeat_timeout=1,read_timeout=9").job.shared;
  EXPECT_EQ(job.join_timeout, seconds(5));
  EXPECT_EQ(job.last_call, seconds(0));
  EXPECT_EQ(job.heartbeat_timeout, seconds(1));
  EXPECT_EQ(conf("keep_alive_interval=2,keep_alive_max_attempt=4").job.shared.heartbeat_timeout, seconds(8));
  EXPECT_EQ(conf("keep_alive_max_attempt=2").job.shared.heartbeat_timeout, seconds(10));
  EXPECT_EQ(conf("keep_alive_interval=2,heartbeat_timeout=7").job.shared.heartbeat_timeout, seconds(7));
  EXPECT_EQ(conf("is_host=Yes").job.is_host, true);
  EXPECT_EQ(conf("is_host=f").job.is_host, false);
  EXPECT_EQ(conf("store_type=tcp").job.is_host, std::nullopt);
  EXPECT_EQ(conf("join_timeout=1,join_timeout=2").job.shared.join_timeout, seconds(2));
  EXPECT_THAT(conf("rank=3,timeout=3").warnings, IsEmpty());
  EXPECT_EQ(conf("timeout=3").job.shared.join_timeout, seconds(600));  // c10d ignores it
  EXPECT_EQ(Good({"--nnodes=2", "--rdzv-conf=timeout=3"}).job.shared.join_timeout, seconds(3));
  EXPECT_EQ(Good({"--nnodes=2", "--rdzv-conf=timeout=3,join_timeout=4"}).job.shared.join_timeout, seconds(4));
  EXPECT_THAT(conf("colour=red").warnings, ElementsAre(HasSubstr("colour=red is not understood")));
  struct {
    std::string text, part;
  } const bad[] = {{"a", "'a' has no value"},
                   {"a=", "'a' has no value"},
                   {"=1", "want KEY=VALUE"},
                   {"a=1,", "want KEY=VALUE"},
                   {"heartbeat_timeout=0.5", "want at least 1 s"},
                   {"join_timeout=x", "join_timeout=x"},
                   {"join_timeout=-1", "join_timeout=-1"},
                   {"is_host=perhaps", "is_host=perhaps"},
                   {"store_type=tape", "store_type=tape"},
                   {"keep_alive_max_attempt=0", "keep_alive_max_attempt=0"}};
  for (const auto& row : bad) {
    std::string error = Error({"--rdzv-backend=c10d", "--rdzv-conf=" + row.text, "x.py"});
    EXPECT_THAT(error, HasSubstr(row.part));
    EXPECT_THAT(error, HasSubstr("--rdzv-conf="));
  }
}

TEST(TorchrunPlace, RdzvConfOfTheOtherBackendIsNoError) {
  struct {
    std::string backend, conf;
    std::vector<std::string> warned;  // parts of warnings; empty: no warning
    std::string error;                // part of the error; empty: no error
  } const rows[] = {
      // As in PyTorch's own launcher test, with its quotes.
      {"c10d", "'join_timeout=5,last_call_timeout=1,timeout=5'", {"'join_timeout=5 is not understood"}, ""},
      {"c10d", "timeout=x,rank=y", {}, ""},
      {"static", "'join_timeout=5,last_call_timeout=1,timeout=5'", {}, "timeout=5': want a duration"},
      {"static", "join_timeout=x,last_call_timeout=-1", {"join_timeout=x has no effect", "last_call_timeout=-1"}, ""},
      {"static", "close_timeout=x,read_timeout=0.x", {}, ""},
      {"static", "keep_alive_interval=x,keep_alive_max_attempt=y", {"keep_alive_interval=x", "max_attempt=y"}, ""},
      {"static", "is_host=perhaps,store_type=tape", {"is_host=perhaps has no effect", "store_type=tape has"}, ""},
      {"static", "heartbeat_timeout=x", {}, "heartbeat_timeout=x"},
      {"static", "rank=y", {}, ""},
  };
  for (const auto& row : rows) {
    const Words words = {"--nnodes=2", "--rdzv-backend=" + row.backend, "--rdzv-endpoint=h:1",
                         "--rdzv-conf=" + row.conf};
    if (!row.error.empty()) {
      Words whole = words;
      whole.push_back("x.py");
      EXPECT_THAT(Error(whole), HasSubstr(row.error)) << row.conf;
      continue;
    }
    const RunOptions run = Good(words);
    ASSERT_EQ(run.warnings.size(), row.warned.size()) << row.conf;
    for (size_t i = 0; i < row.warned.size(); ++i) EXPECT_THAT(run.warnings[i], HasSubstr(row.warned[i])) << row.conf;
  }
  EXPECT_EQ(Good({"--nnodes=2", "--rdzv-conf=timeout=7,join_timeout=x"}).job.shared.join_timeout, seconds(7));
}

TEST(TorchrunPlace, RdzvConfOverrulesVariablesOfCredentials) {
  Environment environment = {
      {"MUSTER_TOKEN_FILE", "/t"}, {"MUSTER_TLS_CERT", "/c"}, {"MUSTER_TLS_KEY", "/k"}, {"MUSTER_TLS_CA", "/a"}};
  auto files = Good({}, environment).job.credentials;
  EXPECT_EQ(files.token + files.tls_cert + files.tls_key + files.tls_ca, "/t/c/k/a");
  files = Good({"--rdzv-conf=token_file=/T,tls_cert=/C,tls_key=/K,tls_ca=/A"}, environment).job.credentials;
  EXPECT_EQ(files.token + files.tls_cert + files.tls_key + files.tls_ca, "/T/C/K/A");
}

}  // namespace
}  // namespace muster::agent
