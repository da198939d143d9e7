// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/text.h"
#include "base/version.h"
#include "rendezvous/rendezvous.pb.h"

namespace muster::rendezvous {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Node SomeNode() {
  Node node;
  node.name = "worker-1";
  node.incarnation = "7f3a";
  node.index = 1;
  node.address = "pod-1.job.example";
  node.slots = 8;
  node.role = "trainer";
  node.host = "pod-1";
  node.pid = 4711;
  node.control_address = "10.0.0.2:29400";
  node.store_host = "10.0.0.2";
  node.store_port = 41234;
  node.measured = {{"memory", 12.5}, {"round trip", 0.25}};
  return node;
}

Assignment SomeAssignment() {
  Assignment assignment;
  assignment.id = {3, 17};
  assignment.restart_count = 2;
  assignment.max_restarts = 5;
  assignment.world_size = 16;
  assignment.node_count = 2;
  assignment.node_rank = 1;
  assignment.seat = {SomeNode(), 8, 8, 16};
  assignment.master_host = "10.0.0.1";
  assignment.master_port = 40000;
  assignment.coordinator_node = "worker-0";
  assignment.successors = {{0, "worker-0", "10.0.0.1:29400"}, {1, "worker-1", "10.0.0.2:29400"}};
  assignment.reason = "worker 3 of worker-0 failed with 1";
  assignment.cause = RoundCause::kFailure;
  return assignment;
}

WorkerFailure SomeFailure() {
  WorkerFailure failure;
  failure.node = "worker-1";
  failure.host = "pod-1";
  failure.rank = 9;
  failure.local_rank = 1;
  failure.pid = 99;
  failure.exit_code = 137;
  failure.signal = 9;
  failure.core_dumped = true;
  failure.oom_killed = true;
  failure.consequence = true;
  failure.late = true;
  failure.message = "out of \xff memory";  // a worker's bytes are sent unchanged
  failure.error_file = "/tmp/error.json";
  failure.stderr_tail = {"one", "two\x80"};
  failure.stderr_reason = "two\x80";
  failure.unix_millis = 1700000000123;
  return failure;
}

JobOptions SomeOptions() {
  JobOptions options;
  options.min_nodes = 2;
  options.max_nodes = 4;
  options.max_restarts = 3;
  options.policy = RestartPolicy::kExitCode;
  options.scale_up = ScaleUp::kAtRestart;
  options.indexed = true;
  options.overrides.retry = {1, 7};
  options.overrides.fatal = {137};
  options.restart_window = std::chrono::hours(1);
  options.no_progress_limit = 4;
  options.join_timeout = milliseconds(1500);
  options.last_call = milliseconds(250);
  options.heartbeat_timeout = milliseconds(2000);
  return options;
}

Report SomeReport() { return {{3, 17}, {SomeFailure(), SomeFailure()}, milliseconds(12345), 900}; }

Hello SomeHello() {
  return {kRendezvousProtocol, "0.1.0",      "job-7", SomeNode(), SomeOptions(), NodeState::kStopping,
          SomeAssignment(),    SomeReport(), 5,       true,       true};
}

Telemetry SomeTelemetry() {
  RankTelemetry rank;
  rank.local_rank = 1;
  rank.pid = 17;
  rank.exit_code = 137;
  rank.cpus = 1.5;
  rank.memory_bytes = int64_t{5} << 30;
  rank.gpu_share = 0.25;
  rank.gpu_memory_bytes = int64_t{7} << 30;
  rank.last_line = "step 7 loss 0.5";
  rank.silent = milliseconds(1500);
  rank.position = 7;
  rank.end = 100;
  rank.epoch = 0.5;
  rank.loss = 0.5;
  rank.in_epochs = true;
  rank.step_time = std::chrono::microseconds(2500);
  return {{3, 17}, {RankTelemetry{}, rank}, {{1, 2.5}, {2, 2.25}}, {{"training", 12.5}}};
}

TEST(Wire, EveryNodeMessageComesBackAsItWas) {
  for (const NodeMessage& message : std::vector<NodeMessage>{SomeHello(),
                                                             Beat{},
                                                             Beat{{1, 2}},
                                                             Beat{{1, 2}, true},
                                                             Beat{{}, false, true, 17},
                                                             Ready{{1, 2}, 4000},
                                                             Ready{{1, 2}, 4000, -7},
                                                             Ready{{1, 2}, 4000, {}, true},
                                                             SomeReport(),
                                                             Report{{0, -1}, {}, {}, {}},
                                                             Leave{"stopped"},
                                                             Leave{"unfit", LeaveCause::kUnhealthy},
                                                             Leave{"preempted", LeaveCause::kPreempted},
                                                             Doubt{},
                                                             Inspect{"job-7", true},
                                                             Inspect{},
                                                             Supersede{"job-7", 4, "10.0.0.2:29400", true},
                                                             Imports{},
                                                             Imports{std::string("a\0b.c", 5)},
                                                             Inspect{"job-7", true, true},
                                                             Telemetry{},
                                                             SomeTelemetry()}) {
    StatusOr<NodeMessage> again = wire::DecodeFromNode(wire::Encode(message));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, message) << message.index();
  }
}

TEST(Wire, EveryCoordinatorMessageComesBackAsItWas) {
  StatusReport status{"job-7", "running", {3, 17}, 1, 3, 2, 4, "all nodes are here", {}};
  status.nodes.push_back({"worker-0", "pod-0", "running", 0, 8, 17, milliseconds(30), "10.0.0.2:29400"});
  status.nodes.push_back({"worker-1", "pod-1", "spare", std::nullopt, 8, 18, milliseconds(0)});
  status.lost.push_back({"worker-2", "pod-2", "10.0.0.3:29400", true, milliseconds(40), milliseconds(70)});
  status.lost.push_back({"worker-3", "", "", false, milliseconds(0), milliseconds(15000)});
  status.cut_off = true;
  status.nodes.back().telemetry = SomeTelemetry();
  status.rounds.push_back(
      {{3, 16}, 2, 4, 1, RoundCause::kFailure, "a worker failed", milliseconds(9000), milliseconds(50), "lost"});
  status.rounds.push_back({{3, 17}, 2, 4, 1, RoundCause::kMembership, "", milliseconds(1)});
  status.heartbeat_timeout = milliseconds(15000);
  Verdict verdict{137, "the budget is gone", SomeFailure(), {SomeFailure()}, true};
  for (const CoordinatorMessage& message :
       std::vector<CoordinatorMessage>{Welcome{3, milliseconds(5000), "0.1.0"},
                                       Welcome{3, milliseconds(5000), "0.1.0", true},
                                       Welcome{3, milliseconds(5000), "0.1.0", true, true, "n0"},
                                       Welcome{3, milliseconds(5000), "", false, false, ""},
                                       Imports{"json"},
                                       Beat{},
                                       Beat{{3, 17}, true},
                                       Beat{{}, false, false, -5, true},
                                       Stop{{3, 17}, "silent", RoundCause::kMembership, false, true},
                                       Notice{"node c waits", true},
                                       Start{SomeAssignment()},
                                       Stop{{3, 17}, "a worker failed"},
                                       Stop{{3, 17}, "a hang", RoundCause::kFailure, true},
                                       Finish{3, verdict},
                                       Finish{1, {}},
                                       Refuse{78, "no"},
                                       Redirect{4, "10.0.0.2:29400"},
                                       Notice{"waiting"},
                                       TelemetryWanted{},
                                       status}) {
    StatusOr<CoordinatorMessage> again = wire::DecodeFromCoordinator(wire::Encode(message));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, message) << message.index();
  }
}

// The bytes of protocol 1. A change here is a new protocol version.
TEST(Wire, ProtocolOneIsTheseBytes) {
  auto bytes = [](const auto& text) { return std::string(text, sizeof text - 1); };
  EXPECT_EQ(wire::Encode(NodeMessage(Beat{})), bytes("\x12\x00"));
  EXPECT_EQ(wire::Encode(NodeMessage(Ready{{2, 5}, 258})), bytes("\x1a\x09\x0a\x04\x08\x02\x10\x05\x10\x82\x02"));
  EXPECT_EQ(wire::Encode(NodeMessage(Leave{"bye"})), bytes("\x2a\x05\x0a\x03"
                                                           "bye"));
  EXPECT_EQ(wire::Encode(NodeMessage(Inspect{"j", true})), bytes("\x32\x05\x0a\x01j\x10\x01"));
  EXPECT_EQ(wire::Encode(NodeMessage(Supersede{"j", 2, "a:1"})), bytes("\x3a\x0a\x0a\x01j\x10\x02\x1a\x03"
                                                                       "a:1"));
  Hello hello;
  hello.protocol = 1;
  hello.run_id = "j";
  hello.node.name = "n";
  EXPECT_EQ(wire::Encode(NodeMessage(hello)).substr(0, 9), bytes("\x0a\x28\x08\x01\x1a\x01j\x22\x0e"));
  EXPECT_EQ(wire::Encode(CoordinatorMessage(Beat{})), bytes("\x12\x00"));
  EXPECT_EQ(wire::Encode(CoordinatorMessage(Welcome{1, std::chrono::seconds(5), "v"})),
            bytes("\x0a\x08\x08\x01\x10\x88'\x1a\x01v"));
  // An agent that does not know the last field sends no Imports.
  EXPECT_EQ(wire::Encode(CoordinatorMessage(Welcome{1, std::chrono::seconds(5), "v", true})),
            bytes("\x0a\x0a\x08\x01\x10\x88'\x1a\x01v\x20\x01"));
  EXPECT_EQ(wire::Encode(NodeMessage(Imports{"a"})), bytes("\x4a\x03\x0a\x01"
                                                           "a"));
  EXPECT_EQ(wire::Encode(CoordinatorMessage(Imports{"a"})), bytes("\x52\x03\x0a\x01"
                                                                  "a"));
  EXPECT_EQ(wire::Encode(CoordinatorMessage(Stop{{1, 0}, "x"})), bytes("\x22\x07\x0a\x02\x08\x01\x12\x01x"));
  // An agent that does not know the last fields ignores them.
  EXPECT_EQ(wire::Encode(CoordinatorMessage(Stop{{1, 0}, "x", RoundCause::kFailure, true})),
            bytes("\x22\x0b\x0a\x02\x08\x01\x12\x01x\x18\x01\x20\x02"));
  EXPECT_EQ(wire::Encode(CoordinatorMessage(Redirect{2, "a:1"})), bytes("\x3a\x07\x08\x02\x12\x03"
                                                                        "a:1"));
  EXPECT_EQ(wire::Encode(CoordinatorMessage(Notice{"hi"})), bytes("\x42\x04\x0a\x02hi"));
}

// Telemetry is bounded, and what is no number in it is left out: it decides nothing.
TEST(Wire, TelemetryIsBounded) {
  Telemetry telemetry = SomeTelemetry();
  telemetry.ranks.resize(wire::kMaxTelemetryRanks + 5);
  telemetry.ranks[0].last_line = std::string(1000, 'x') + "\xff";
  telemetry.ranks[0].cpus = std::numeric_limits<double>::infinity();
  telemetry.ranks[0].position = std::numeric_limits<double>::quiet_NaN();
  telemetry.ranks[0].loss = std::numeric_limits<double>::infinity();
  telemetry.curve.assign(kMaxCurvePoints + 5, {1, 2});
  telemetry.curve[0].loss = std::numeric_limits<double>::quiet_NaN();
  const auto again = wire::DecodeFromNode(wire::Encode(NodeMessage(telemetry)));
  ASSERT_TRUE(again.ok()) << again.status();
  const auto& read = std::get<Telemetry>(*again);
  EXPECT_EQ(read.ranks.size(), wire::kMaxTelemetryRanks);
  EXPECT_EQ(read.ranks[0].last_line, std::string(kMaxLastLine, 'x'));
  EXPECT_EQ(read.ranks[0].cpus, 0);
  EXPECT_EQ(read.ranks[0].position, std::nullopt);
  EXPECT_EQ(read.ranks[0].loss, std::numeric_limits<double>::infinity());
  EXPECT_EQ(read.curve.size(), kMaxCurvePoints - 1);
}

TEST(Wire, GarbageIsAnErrorThatSaysSo) {
  for (std::string bytes : {std::string(), std::string("\xff\xff\xff\xff"), std::string("GET / HTTP/1.1\r\n"),
                            std::string("\x9a\x06\x00", 3) /* an unknown kind */, std::string("\x0a\x7f", 2)}) {
    EXPECT_EQ(wire::DecodeFromNode(bytes).status().code(), absl::StatusCode::kInvalidArgument) << bytes;
    EXPECT_EQ(wire::DecodeFromCoordinator(bytes).status().code(), absl::StatusCode::kInvalidArgument) << bytes;
  }
  EXPECT_THAT(
      std::string(Message(
          wire::DecodeFromNode(wire::Encode(NodeMessage(Imports{std::string(kMaxImports + 1, 'a')}))).status())),
      HasSubstr("imports: 524289 bytes, at most 524288"));
  std::string huge(wire::kMaxFromNode + 1, '\0');
  EXPECT_THAT(std::string(Message(wire::DecodeFromNode(huge).status())), HasSubstr("at most"));
}

// Each row: a wrong field, and a word that the error must contain.
TEST(Wire, AWrongFieldIsNamed) {
  struct Row {
    std::string word;
    std::function<void(v1::Hello&)> spoil;
  };
  std::vector<Row> rows = {
      {"has no name", [](v1::Hello& hello) { hello.mutable_node()->clear_name(); }},
      {"node name", [](v1::Hello& hello) { hello.mutable_node()->set_name(std::string(257, 'x')); }},
      {"run id", [](v1::Hello& hello) { hello.set_run_id(std::string(257, 'x')); }},
      {"UTF-8", [](v1::Hello& hello) { hello.set_run_id("job\xff"); }},
      {"slots", [](v1::Hello& hello) { hello.mutable_node()->set_slots(-1); }},
      {"node index", [](v1::Hello& hello) { hello.mutable_node()->set_index(-2); }},
      {"pid", [](v1::Hello& hello) { hello.mutable_node()->set_pid(-5); }},
      {"store port", [](v1::Hello& hello) { hello.mutable_node()->set_store_port(65536); }},
      {"not a number",
       [](v1::Hello& hello) {
         hello.mutable_node()->add_measured()->set_value(std::numeric_limits<double>::quiet_NaN());
       }},
      {"not a number", [](v1::Hello& hello) { hello.mutable_node()->add_measured()->set_value(-1); }},
      {"measured", [](v1::Hello& hello) { hello.mutable_node()->add_measured()->set_name(std::string(65, 'x')); }},
      {"measured", [](v1::Hello& hello) { hello.mutable_node()->add_measured()->set_name("\xff"); }},
      {"too many measured",
       [](v1::Hello& hello) {
         for (int i = 0; i < 17; ++i) hello.mutable_node()->add_measured()->set_name(fmt::format("{}", i));
       }},
      {"node state", [](v1::Hello& hello) { hello.set_state(4); }},
      {"node state", [](v1::Hello& hello) { hello.set_state(-1); }},
      {"min nodes", [](v1::Hello& hello) { hello.mutable_options()->set_min_nodes(0); }},
      {"max nodes", [](v1::Hello& hello) { hello.mutable_options()->set_max_nodes(1); }},
      {"restart policy", [](v1::Hello& hello) { hello.mutable_options()->set_policy(9); }},
      {"scale-up", [](v1::Hello& hello) { hello.mutable_options()->set_scale_up(2); }},
      {"retry code", [](v1::Hello& hello) { hello.mutable_options()->add_retry_codes(256); }},
      {"fatal code", [](v1::Hello& hello) { hello.mutable_options()->add_fatal_codes(0); }},
      {"join timeout", [](v1::Hello& hello) { hello.mutable_options()->set_join_timeout_ms(-1); }},
      {"last call", [](v1::Hello& hello) { hello.mutable_options()->set_last_call_ms(INT64_MAX); }},
      {"round number", [](v1::Hello& hello) { hello.mutable_resume()->mutable_id()->set_number(-2); }},
      {"term", [](v1::Hello& hello) { hello.set_term(uint64_t{1} << 60); }},
      {"node rank", [](v1::Hello& hello) { hello.mutable_resume()->set_node_rank(2); }},
      {"cause", [](v1::Hello& hello) { hello.mutable_resume()->set_cause(4); }},
      {"exit code", [](v1::Hello& hello) { hello.mutable_report()->mutable_failures(0)->set_exit_code(300); }},
      {"signal", [](v1::Hello& hello) { hello.mutable_report()->mutable_failures(0)->set_signal(-9); }},
      {"rank", [](v1::Hello& hello) { hello.mutable_report()->mutable_failures(0)->set_rank(-2); }},
      {"lifetime", [](v1::Hello& hello) { hello.mutable_report()->set_lived_ms(-1); }},
      {"successors",
       [](v1::Hello& hello) {
         for (int i = 0; i < 40; ++i) hello.mutable_resume()->add_successors()->set_name("n");
       }},
  };
  for (const Row& row : rows) {
    v1::FromNode proto;
    ASSERT_TRUE(proto.ParseFromString(wire::Encode(NodeMessage(SomeHello()))));
    row.spoil(*proto.mutable_hello());
    Status status = wire::DecodeFromNode(proto.SerializeAsString()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.word;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(row.word));
  }
}

TEST(Wire, AnotherProtocolVersionIsReadFarEnoughToRefuseIt) {
  v1::FromNode proto;
  proto.mutable_hello()->set_protocol(99);
  proto.mutable_hello()->mutable_node()->set_name("new");
  proto.mutable_hello()->mutable_options()->set_policy(77);
  StatusOr<NodeMessage> message = wire::DecodeFromNode(proto.SerializeAsString());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(std::get<Hello>(*message).protocol, 99);
  EXPECT_EQ(std::get<Hello>(*message).node.name, "new");
}

TEST(Wire, WorkersOutputIsCutSoThatAReportFits) {
  Report report;
  for (int i = 0; i < 70; ++i) {
    WorkerFailure failure = SomeFailure();
    failure.message = std::string(20'000, 'm');
    failure.stderr_tail.assign(30, std::string(10'000, 's'));
    failure.stderr_tail.back() = "last";
    report.failures.push_back(failure);
  }
  std::string bytes = wire::Encode(NodeMessage(report));
  EXPECT_LE(bytes.size(), wire::kMaxFromNode);
  StatusOr<NodeMessage> again = wire::DecodeFromNode(bytes);
  ASSERT_TRUE(again.ok()) << again.status();
  const auto& cut = std::get<Report>(*again);
  ASSERT_EQ(cut.failures.size(), wire::kMaxFailures);
  EXPECT_EQ(cut.failures[0].message.size(), wire::kMaxText);
  ASSERT_EQ(cut.failures[0].stderr_tail.size(), wire::kMaxTailLines);
  EXPECT_EQ(cut.failures[0].stderr_tail[0].size(), wire::kMaxText);
  EXPECT_EQ(cut.failures[0].stderr_tail.back(), "last");
  EXPECT_EQ(cut.failures[63].exit_code, 137);  // later failures keep their facts

  Verdict verdict{1, "x", report.failures[0], report.failures};
  EXPECT_LE(wire::Encode(CoordinatorMessage(Finish{1, verdict})).size(), wire::kVerdictText + 64 * 512);
}

TEST(Wire, OfALongTracebackTheEndTravels) {
  WorkerFailure failure = SomeFailure();
  failure.message = "Traceback (most recent call last):\n" + std::string(wire::kMaxText, 'f') + "\nValueError: x";
  StatusOr<NodeMessage> again = wire::DecodeFromNode(wire::Encode(NodeMessage(Report{{1, 2}, {failure}, {}, {}})));
  ASSERT_TRUE(again.ok());
  const std::string& message = std::get<Report>(*again).failures[0].message;
  EXPECT_EQ(message.size(), wire::kMaxText);
  EXPECT_TRUE(message.ends_with("ff\nValueError: x"));
}

TEST(Wire, ReasonsAreCutAtACharacter) {
  EXPECT_EQ(wire::Printable("a\xc3\xa4z", 2), "a");
  EXPECT_EQ(wire::Printable("a\xc3\xa4z", 3), "a\xc3\xa4");
  EXPECT_EQ(wire::Printable("a\xc3z\xff\xf0\x9f\x98\x80\xed\xa0\x80", 100), "a?z?\xf0\x9f\x98\x80???");
  StatusOr<NodeMessage> again = wire::DecodeFromNode(wire::Encode(NodeMessage(Leave{"\xfe" + std::string(9000, 'x')})));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(std::get<Leave>(*again).reason.size(), wire::kMaxText);
}

// Truncated and flipped messages never crash and never exceed a limit. tests/fuzz tests more of them.
TEST(Wire, DamagedMessagesAreHarmless) {
  std::string whole = wire::Encode(NodeMessage(SomeHello()));
  for (size_t length = 0; length < whole.size(); ++length) (void)wire::DecodeFromNode(whole.substr(0, length));
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      StatusOr<NodeMessage> message = wire::DecodeFromNode(damaged);
      if (message.ok()) (void)wire::Encode(*message);
      (void)wire::DecodeFromCoordinator(damaged);
    }
  }
}

}  // namespace
}  // namespace muster::rendezvous
