// SPDX-License-Identifier: Apache-2.0
// The terms of the rendezvous: node, round, seat, report, verdict. Passive data, no I/O.
//
// A round is one life of the worker group on all nodes: who is in it, with which ranks, and where the store is.
// Rounds are ordered by (term, number). The term grows when another node becomes the coordinator. The number grows with
// every new round of a run, whichever coordinator makes it. A message of an older round changes nothing.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "base/worker_failure.h"

namespace muster::rendezvous {

struct RoundId {
  uint64_t term = 0;
  int64_t number = -1;  // -1: before the first round
  auto operator<=>(const RoundId&) const = default;
};

inline constexpr size_t kMaxMeasured = 16;      // figures of one node
inline constexpr size_t kMaxMeasuredName = 64;  // bytes

// One agent, as it introduces itself. `name` outlives a restart of the agent, `incarnation` does not.
struct Node {
  std::string name;
  std::string incarnation;   // unique per agent process
  std::optional<int> index;  // from --node-rank or the pod's index, if there is one; decides the order of ranks
  int slots = 1;             // workers this node runs (local world size)
  std::string role = "default";
  std::string host;     // host name, for people
  std::string address;  // --local-addr, else the full host name: what torchrun orders nodes by
  int64_t pid = 0;
  std::string control_address;             // "ip:port" of this agent's own gRPC port; empty: it serves none
  std::string store_host;                  // MASTER_ADDR of a round in which this node has node rank 0
  int store_port = 0;                      // of the store that this node has opened for its next round
  std::map<std::string, double> measured;  // by its node check, at most kMaxMeasured figures: outliers.h
  bool operator==(const Node&) const = default;
};

// The order in which torchrun gives ranks to nodes (_NodeDesc): by address as text, then by process id. Pure.
bool InTorchrunsOrder(const Node& a, const Node& b);

// A node's place in a round.
struct Seat {
  Node node;
  int first_rank = 0;       // global rank of its local rank 0
  int first_role_rank = 0;  // rank among the workers of its role
  int role_world_size = 0;
  bool operator==(const Seat&) const = default;
};

// Why a round was made or ends, for programs. The reason beside it says the same to people.
enum class RoundCause {
  kMembership = 0,  // nodes came, left or were lost; also the first round
  kPreemption = 1,  // a node left because its machine is taken away
  kFailure = 2,     // a worker failed: uses the budget
  kSuccess = 3,     // all workers succeeded and the policy is "always": uses the budget
};
inline bool UsesBudget(RoundCause cause) { return cause == RoundCause::kFailure || cause == RoundCause::kSuccess; }

// A whole round, as the coordinator knows it.
struct Round {
  RoundId id;
  int restart_count = 0;  // restarts charged to the budget so far; TORCHELASTIC_RESTART_COUNT on every node
  int max_restarts = 0;
  int world_size = 0;
  std::vector<Seat> seats;       // by node rank; seats[0] hosts the store
  std::string coordinator_node;  // name of the node whose agent coordinates; empty: `muster coordinator`
  std::string reason;            // why this round was made, one sentence
  RoundCause cause = RoundCause::kMembership;
  bool operator==(const Round&) const = default;

  // Node rank of `name`, or nullopt.
  std::optional<int> RankOf(const std::string& name) const {
    for (size_t rank = 0; rank < seats.size(); ++rank) {
      if (seats[rank].node.name == name) return static_cast<int>(rank);
    }
    return std::nullopt;
  }
};

// A node that may stand in for the coordinator: one of the first kMaxSuccessors nodes of a round, by rank.
struct Successor {
  int node_rank = 0;
  std::string name;
  std::string control_address;
  bool operator==(const Successor&) const = default;
};
inline constexpr size_t kMaxSuccessors = 32;

// A round as one of its nodes knows it. Its size does not depend on the number of nodes, so telling N nodes costs O(N).
// The assignments of all nodes together hold the whole round: a coordinator without memory re-forms it from them.
struct Assignment {
  RoundId id;
  int restart_count = 0;
  int max_restarts = 0;
  int world_size = 0;
  int node_count = 0;
  int node_rank = 0;
  Seat seat;                // this node's own
  std::string master_host;  // store of node rank 0
  int master_port = 0;
  std::string coordinator_node;  // as in Round
  std::vector<Successor> successors;
  std::string reason;
  RoundCause cause = RoundCause::kMembership;
  bool operator==(const Assignment&) const = default;
};

// The view of the node with `node_rank`.
Assignment AssignmentFor(const Round& round, int node_rank);

// How a node's workers ended in a round. A late report has the failures that came after the Stop or after an earlier
// report. They decide nothing, but the verdict names them.
struct Report {
  RoundId round;
  std::vector<WorkerFailure> failures;  // empty: all of its workers ended with 0. Own failures come first.
  Duration lived{};                     // from start of the workers to their end
  std::optional<int64_t> progress;      // highest step the workers reported, if any
  bool late() const { return !failures.empty() && failures.front().late; }
  bool operator==(const Report&) const = default;
};

// The reason of a node's success that took part in no end of the run (Wanted in membership.h).
inline constexpr char kRunIsOver[] =
    "the run has succeeded on other nodes, which have ended: nothing is left to do here";

// How the job ended: the same on every node.
struct Verdict {
  int exit_code = 0;
  std::string reason;                       // one sentence
  std::optional<WorkerFailure> root_cause;  // after a success: that of the last failure that caused a restart
  std::vector<WorkerFailure> failures;      // all that were reported in the last round, root cause first
  bool budget_used = false;                 // a restart would have followed, but all that were allowed are used up
  bool operator==(const Verdict&) const = default;
};

enum class RestartPolicy { kNever, kOnFailure, kAlways, kExitCode };  // docs/exit-codes.md
enum class ScaleUp { kNow, kAtRestart };

// Settings that all nodes of a job must share: the first node's. A node with others is refused, with both values named.
struct JobOptions {
  int min_nodes = 1;
  int max_nodes = 1;
  int max_restarts = 0;
  RestartPolicy policy = RestartPolicy::kOnFailure;
  ScaleUp scale_up = ScaleUp::kNow;
  bool indexed = false;  // static: every node brings its index in [0, max_nodes), and all max_nodes must be there
  ExitCodeOverrides overrides;
  std::optional<Duration> restart_window;  // only restarts younger than this count against max_restarts
  int no_progress_limit = 0;               // 0: off
  Duration join_timeout = std::chrono::seconds(600);
  Duration last_call = std::chrono::seconds(30);
  Duration heartbeat_timeout = std::chrono::seconds(15);  // silence after which a node counts as lost
  bool operator==(const JobOptions& other) const {
    return min_nodes == other.min_nodes && max_nodes == other.max_nodes && max_restarts == other.max_restarts &&
           policy == other.policy && scale_up == other.scale_up && indexed == other.indexed &&
           overrides.retry == other.overrides.retry && overrides.fatal == other.overrides.fatal &&
           restart_window == other.restart_window && no_progress_limit == other.no_progress_limit &&
           join_timeout == other.join_timeout && last_call == other.last_call &&
           heartbeat_timeout == other.heartbeat_timeout;
  }
};

}  // namespace muster::rendezvous
