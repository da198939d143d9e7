// SPDX-License-Identifier: Apache-2.0
// The messages between nodes and coordinator, as plain values. wire.h maps them to rendezvous.proto.
//
//   node                         coordinator
//   Hello ---------------------> (first message on a stream)
//         <--------------------- Welcome | Refuse | Redirect
//         <--------------------- Notice            (why no round starts, which nodes are missing)
//         <--------------------- Start(Assignment)      start the workers
//   Report --------------------> my workers have ended
//         <--------------------- Stop(round)       stop your workers, then say Ready
//   Report --------------------> these workers failed by themselves after the Stop (late; only if any did)
//   Ready ---------------------> no worker of mine is left; here is my store for the next round
//         <--------------------- Start(next) | Finish(Verdict)
//   Leave ---------------------> I am going (SIGTERM): do not wait for me
//   Doubt ---------------------> I do not hear you: I look for another coordinator
//   Imports -------------------> what the script imports; empty: I wait for a round, and want to know
//         <--------------------- Imports           once, when a node has said it
//         <--------------------- TelemetryWanted   somebody looks at the run
//   Telemetry -----------------> of my workers, once a second for kTelemetryTime from then on
//   Beat <---------------------> nothing new, I live; the coordinator answers each with a Beat
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "rendezvous/round.h"
#include "rendezvous/telemetry.h"

namespace muster::rendezvous {

// What the node is doing when it says Hello.
enum class NodeState {
  kIdle,       // no worker: ready for a round
  kRunning,    // workers of `resume` are running
  kSucceeded,  // its workers of `resume` have all ended with 0
  kStopping,   // workers of `resume` are being stopped (failed, or told to)
};

struct Hello {
  int protocol = 0;     // kRendezvousProtocol of the node
  std::string version;  // of the binary, for people
  std::string run_id;
  Node node;
  JobOptions options;
  NodeState state = NodeState::kIdle;
  std::optional<Assignment> resume;  // the last round this node was in: a coordinator without memory re-forms it
  std::optional<Report> report;      // if its workers of `resume` have ended and no answer to that came
  uint64_t term = 0;                 // the highest it has heard of: two stand-ins must not claim the same term
  // It makes standby workers, and they are not ready yet: a round that is to stop for a newcomer had better wait. Its
  // beats say so, too, and one says at once when that changes.
  bool preparing = false;
  bool tells_telemetry = false;  // it knows TelemetryWanted
  bool operator==(const Hello&) const = default;
};
struct Beat {
  // From a node: the last round it knows (a Start may be lost). From the coordinator: none, unless `silent`.
  RoundId round;
  // From a node: its workers in that round have written nothing for the limit (--hang-log-timeout). From the
  // coordinator: that holds for every node of the round whose workers still run.
  bool silent = false;
  bool preparing = false;  // from a node: as in Hello
  int64_t stamp = 0;  // from a node: its clock when it sent the beat. From the coordinator: that of the beat it answers
  // From the coordinator: it decides about the node's round. No round starts without the node for the heartbeat limit
  // from `stamp` on.
  bool lease = false;
  bool operator==(const Beat&) const = default;
};
// No worker of this node is left; it can start the next round, with this store.
struct Ready {
  RoundId round;  // the round it comes from
  int store_port = 0;
  std::optional<int64_t> progress;  // highest step that the stopped workers reported, if any
  bool cut_off = false;             // the node stopped them since no coordinator answered it
  bool operator==(const Ready&) const = default;
};
enum class LeaveCause {
  kAsked,      // a person or program stopped it
  kPreempted,  // its machine is taken away
  kUnhealthy,  // its node check failed: the node is to blame for its workers' failures in this round
};
struct Leave {
  std::string reason;  // "preempted: SIGTERM", "stopped by SIGINT"
  LeaveCause cause = LeaveCause::kAsked;
  bool operator==(const Leave&) const = default;
};
// This node has not heard the coordinator for the heartbeat limit and looks for another one. The end of the connection
// does not mean that the node is dead.
struct Doubt {
  bool operator==(const Doubt&) const = default;
};
// What the script imports, as a worker of one node has shown: standby workers of nodes that wait import it, too. A node
// sends it only if the Welcome allows it, since older coordinators do not know it.
inline constexpr size_t kMaxImports = size_t{512} << 10;
struct Imports {
  std::string names;  // joined by NUL, at most kMaxImports bytes; the receiver checks them
  bool operator==(const Imports&) const = default;
};
// From `muster status`, which is not a node. The answer is a StatusReport: one, or with `follow` one at every change.
struct Inspect {
  std::string run_id;  // empty: the only run there is
  bool follow = false;
  // The report has the nodes' telemetry, too. With `follow` one comes each second.
  bool telemetry = false;
  bool operator==(const Inspect&) const = default;
};
// From a stand-in to the agent that listens at the job's endpoint: run `run_id` is coordinated at `address` now.
struct Supersede {
  std::string run_id;
  uint64_t term = 0;
  std::string address;
  bool waits = false;  // it has decided nothing yet: it waits for most of the round's nodes
  bool operator==(const Supersede&) const = default;
};

using NodeMessage = std::variant<Hello, Beat, Ready, Report, Leave, Doubt, Inspect, Supersede, Imports, Telemetry>;

struct Welcome {
  uint64_t term = 0;
  Duration beat_interval{};  // how often the node must be heard
  std::string coordinator;   // version, for people
  bool imports = false;      // it takes Imports and passes them on
  bool leases = false;       // its beats say lease
  // The node whose agent the coordinator lives in; empty: none. nullopt: it does not say.
  std::optional<std::string> node = std::nullopt;
  bool operator==(const Welcome&) const = default;
};
struct Start {
  Assignment assignment;
  bool operator==(const Start&) const = default;
};
struct Stop {
  RoundId round;
  std::string reason;
  RoundCause cause = RoundCause::kMembership;
  bool keep_evidence = false;  // the job hangs: the node notes what its workers are doing before it stops them
  bool at_once = false;        // another round may begin elsewhere: the workers get a tenth of the heartbeat limit
  bool operator==(const Stop&) const = default;
};
struct Finish {
  uint64_t term = 0;
  Verdict verdict;
  bool operator==(const Finish&) const = default;
};
struct Refuse {
  int exit_code = kExitBadConfiguration;
  std::string reason;  // names both values, and says what to do
  bool operator==(const Refuse&) const = default;
};
struct Redirect {
  uint64_t term = 0;
  std::string address;
  bool operator==(const Redirect&) const = default;
};
struct Notice {
  std::string text;
  bool prepare = false;  // a node waits to join the round: make the standby workers now
  bool operator==(const Notice&) const = default;
};
// Somebody looks at the run.
struct TelemetryWanted {
  bool operator==(const TelemetryWanted&) const = default;
};
inline constexpr Duration kTelemetryTime = std::chrono::seconds(15);
struct StatusLine {
  std::string node;
  std::string host;
  std::string state;  // waiting, running, succeeded, stopping, preparing, spare, leaving, lost
  std::optional<int> rank;
  int slots = 0;
  int64_t pid = 0;
  Duration last_heard{};
  std::string control_address;  // where it would coordinate as a stand-in; empty: it cannot stand in
  std::string remark;           // "slow: memory 3.1 GB/s, the others 12.4 GB/s"; usually empty
  std::optional<Telemetry> telemetry = std::nullopt;  // the newest, if it was asked for and the node has told any
  bool operator==(const StatusLine&) const = default;
};
inline constexpr size_t kMostLost = 256;
// A node that the coordinator has lost, while neither it nor another one in its place has come.
struct LostNode {
  std::string node;
  std::string host;             // empty: not known, since another coordinator attended it
  std::string control_address;  // as in Node; empty: not known
  bool closed = false;          // its connection closed: its process is gone. Else it fell silent, and may live
  Duration lost{};              // for how long
  Duration last_heard{};
  bool operator==(const LostNode&) const = default;
};
struct StatusReport {
  std::string run_id;
  std::string phase;  // gathering, re-forming, running, stopping, finished
  RoundId round;
  int restart_count = 0;
  int max_restarts = 0;
  int min_nodes = 0;
  int max_nodes = 0;
  std::string reason;  // of the last change
  std::vector<StatusLine> nodes;
  std::optional<WorkerFailure> overcome;  // the root cause of the last failure that a restart was made for
  std::vector<LostNode> lost;             // at most kMostLost
  // More than half of a round's nodes fell silent: this side may be the one that is cut off, and the lost nodes live.
  bool cut_off = false;
  Duration heartbeat_timeout{};   // after so much silence a node is lost
  std::vector<RoundMark> rounds;  // with telemetry: in the order of their beginning
  bool operator==(const StatusReport&) const = default;
};

using CoordinatorMessage =
    std::variant<Welcome, Beat, Start, Stop, Finish, Refuse, Redirect, Notice, StatusReport, Imports, TelemetryWanted>;

}  // namespace muster::rendezvous
