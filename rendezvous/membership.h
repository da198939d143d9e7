// SPDX-License-Identifier: Apache-2.0
// The coordinator's decisions for one run, as a pure state machine:
//
//     Apply(state, event, now) -> effects (messages to send, the reason, when to look again)
//
// No I/O, no clock, no thread, no randomness: the same events give the same effects. The driver (coordinator.h) owns
// one State per run. It calls Apply for everything that happens, sends the resulting messages, and calls Apply with
// Tick at `look_again`. docs/rendezvous.md and docs/exit-codes.md tell the rules to a user.
//
// Invariants (tests/sim checks them):
//  - Ranks are contiguous and unique.
//  - A round id has one roster, the same for all its nodes. Round ids only grow.
//  - No Start is sent while a living node of the round before may still run workers, unless that node is leaving.
//  - restart_count is never above max_restarts (within the window).
//  - After Finish nothing but Finish is sent.
//  - The job makes progress while min nodes live.
//
// A leaving node: no round waits for it. Its workers may take their time (for a checkpoint), in a round that is over.
// The node gets no seat and no store any more. It keeps its name and its index until its stream ends.
//
// Cost: a beat O(1), a join O(log n), a restart O(n log n), for n nodes.
//
// Early Hellos: a node that has lost its coordinator dials its successors, maybe before they have noticed the loss. The
// successor keeps such a Hello, without an answer, until StandIn comes. Then it welcomes the node. The node counts from
// its next message on, since it may have gone to another coordinator meanwhile.
//
// Two halves: a node whose stream closed is gone. A node that fell silent may live on behind a cut of the network. When
// more than half of a round's nodes fell silent, they may have a stand-in of their own, by majority. Then this side
// starts nothing until enough of them are back, or all of them are known to be gone. After join_timeout the job ends.
// The rule holds for the current round and for the one before: a Start may have been lost on its way, so a node counts
// for every round that may be the last one it knows. A new process with the name of a silent node proves that the old
// process is gone now. It does not prove that the old process joined no other coordinator before.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "rendezvous/messages.h"
#include "rendezvous/silent_nodes.h"

namespace muster::rendezvous {

// A stream of one node. The driver gives the number; later streams have higher numbers.
using PeerId = uint64_t;

enum class Phase {
  kGathering,  // no round runs; waiting for nodes
  kReforming,  // this coordinator has no memory (it came back, or it stands in) and collects the living nodes' reports
  kRunning,    // a round runs
  kStopping,   // Stop was sent; waiting until every living node of the round is ready
  kFinished,   // the verdict is known
};

struct Member {
  Node node;
  PeerId peer = 0;  // 0: no stream now
  NodeState state = NodeState::kIdle;
  uint64_t arrival = 0;  // grows with every arrival; if there are too many nodes, the earliest take part
  TimePoint last_heard{};
  bool in_round = false;             // has a seat in `State::round`
  bool leaving = false;              // said Leave: never seated again, forgotten when its stream ends
  bool ready = false;                // no worker is left; may be seated
  bool preparing = false;            // as in Hello
  bool hurried = false;              // told to prepare, in this round
  std::optional<Report> report;      // for the current round
  std::optional<int64_t> progress;   // of its workers in that round, if they were stopped (Ready)
  int rank = -1;                     // node rank in `State::round`; -1: not in it
  RoundId runs;                      // the round its workers belong to; once it is ready: belonged to
  bool quiet = false;                // its workers in the round write nothing
  RoundId knows;                     // the newest round it is known to have heard of
  std::optional<TimePoint> lost_at;  // stream closed while reforming: it may come back until the heartbeat limit
  // A second Hello that claims this member's name, or its index, while nobody knows whether the member lives. It
  // replaces the member if that one turns out to be dead (no beat within the heartbeat limit, or its stream closes). It
  // is refused at the member's next message, unless it is the pod that replaces the member's: it waits for that one's
  // end then. Kubernetes has deleted the member's pod, but its machine may not have heard of it yet.
  std::optional<std::pair<PeerId, Hello>> contender;
  bool told_contender = false;  // that it waits
};

// Why a round ends or begins.
struct Why {
  std::string reason;  // one sentence; empty: nothing has happened
  RoundCause cause = RoundCause::kMembership;
};

struct State {
  // What the driver says of this coordinator. A stand-in keeps it.
  struct Given {
    std::string run_id;
    std::string self_node;            // the node whose agent this coordinator lives in; empty: none
    std::optional<int> wanted_nodes;  // how many nodes there are meant to be now (Wanted); empty: not known
    std::string endpoint_hint;        // added when nodes are missing; EndpointHint() in base/host_names.h
    bool in_pods = false;             // the nodes are pods of Kubernetes: two never have one host name
    bool on_call = false;             // this agent does not serve the job's endpoint: it coordinates only after StandIn
    std::string hidden;               // why no other node finds this coordinator yet; empty: they can
    std::string taken_endpoint;       // this agent serves it since nobody listened there; empty: it has not taken it
  };
  Given given;
  std::optional<JobOptions> options;  // of the first Hello
  Phase phase = Phase::kGathering;
  uint64_t term = 1;
  Round round;                            // the current or last one; id.number == -1 before the first
  bool own_round = false;                 // this coordinator made `round`; false: a node reported it
  std::map<std::string, Member> members;  // by node name
  uint64_t arrivals = 0;
  std::optional<TimePoint> last_arrival;
  std::string last_refusal;  // since the last round began; the refused node may be the missing one
  bool abandoned = false;    // a node has said Leave at some time
  std::optional<Verdict> verdict;
  std::string reason;  // the last decision's sentence

  // Of the whole run.
  struct Restarts {
    int count = 0;
    std::vector<TimePoint> charged;  // when restarts were charged (for restart_window)
    int without_progress = 0;        // restarts in a row without a longer life or a higher step
    int lost_pods = 0;               // rounds that ended because a remote shell of MPI lost its pod: not charged
    std::optional<Duration> best_life;
    std::optional<int64_t> best_progress;
  };
  Restarts restarts;
  std::optional<WorkerFailure> overcome;  // root cause of the last failure that a restart was made for

  // Of the current round.
  struct Trouble {
    std::vector<WorkerFailure> failures;  // in order of arrival
    Why loss;                             // why its first seat was lost
  };
  Trouble trouble;
  std::map<std::string, std::string> slow;  // slow nodes of the current round, and in what they are slow: outliers.h

  // Of kGathering, and of kReforming until enough nodes attend.
  struct Waiting {
    std::optional<TimePoint> since;
    std::string notice;  // the last Notice to the waiting nodes
  };
  Waiting waiting;

  // Of kStopping, and of kGathering after it.
  struct Stopping {
    Why why;                     // why the round stops, and then why the next one is made
    bool keep_evidence = false;  // the round stops for a hang: every node notes what its workers do first
    bool at_once = false;        // the nodes were told so
    std::optional<TimePoint> since;
  };
  Stopping stopping;

  // Of kReforming.
  struct Reforming {
    bool stands_in = false;            // more than half of the living seats must attend before anything starts
    bool proof = false;                // the nodes in `dead` do not count as living for that
    std::set<std::string> dead;        // nodes of the round known to be gone
    struct Heard {                     // of the round that is re-formed; begins anew if a node reports a newer one
      std::optional<TimePoint> until;  // the nodes have time to report
      std::set<int> seats;             // that have reported
      bool conflict = false;           // two nodes tell the round differently
    };
    Heard heard;
  };
  Reforming reforming;

  // The rest is written by membership_*.cc only. The counts save a look at all members for every event.
  struct Counts {
    int ready = 0;             // connected, no worker left, not leaving
    int seated_living = 0;     // connected, in the round
    int seated_leaving = 0;    // connected, in the round, said Leave
    int seated_busy = 0;       // connected, in the round, not ready, not leaving: the next round waits for them
    int succeeded = 0;         // in the round and done with 0, connected or not
    int quiet = 0;             // in the round, running, and its workers write nothing
    int preparing = 0;         // ready and preparing
    int seated_preparing = 0;  // connected, in the round, running and preparing
    int living = 0;            // connected
    int leaving = 0;           // connected, said Leave
  };
  Counts counts;
  std::unordered_map<PeerId, std::string> names;  // node name of a stream; of a contender's stream: the member's name
  std::map<int, std::string> indexes;             // node name by index (options.indexed)
  std::multimap<TimePoint, PeerId> listen_until;  // when to check whether a stream is silent; one entry per stream
  SilentNodes silent;
  // Nodes that were lost, for people and for the controller; no decision here uses them. A node that comes back, or
  // another one with its name, index or host, removes its entry.
  struct Lost {
    Node node;
    bool closed = false;  // as in LostNode
    TimePoint at, last_heard;
  };
  std::vector<Lost> lost;                       // in the order of their loss; the newest kMostLost
  bool hurries = false;                         // nodes wait to join the current round: its nodes are told to prepare
  std::optional<TimePoint> take_in_by;          // newcomers wait until then for nodes that are preparing
  std::optional<TimePoint> expected;            // the last look_again; a much later event: this process was frozen
  std::optional<TimePoint> grace_until;         // after a freeze: no round starts, no node counts as silent before
  std::vector<std::pair<PeerId, Hello>> early;  // early Hellos (see above)
};

struct PeerOpened {  // a Hello arrived on a new stream
  PeerId peer;
  Hello hello;
};
struct PeerSaid {  // any later message of that stream (Beat, Ready, Report, Leave, Doubt)
  PeerId peer;
  NodeMessage message;
};
struct PeerClosed {
  PeerId peer;
};
struct Tick {};
// This coordinator stands in for a dead or silent one. It starts from `assignment`, the last round its own node was in,
// with a higher term. With `proof` (the old process is known to be gone: connection refused) the old coordinator's node
// counts as lost. The stand-in decides nothing until every node not known to be gone attends it. After the heartbeat
// limit a majority is enough: with `proof` of the nodes not known to be gone, without it of all nodes of the round.
struct StandIn {
  Assignment assignment;
  JobOptions options;
  bool proof = false;
  std::vector<std::string> dead;  // other nodes of the round whose address refused a connection: gone, too
  uint64_t known_term = 0;        // the highest term heard of; its coordinator may have made no round in it yet
};
// The address of this node refuses connections, so the node is gone as well. Counts only while a stand-in with proof
// waits for its nodes.
struct Gone {
  std::string name;
};
// A node was refused before it reached this run (no token, another run id); one sentence.
struct TurnedAway {
  std::string reason;
};
// How many nodes there are meant to be now, from the nodes file. An elastic job starts as soon as that many are ready.
// It takes newcomers in together, once that many are there or `last_call` has passed since the last arrival. 0: the run
// has succeeded on other nodes; it ends with success here, too, once no worker runs here.
struct Wanted {
  int nodes = 0;
};
// Why no other node finds this coordinator yet (its name does not lead here); empty: they can. While they cannot,
// nobody can join, and no stand-in can tell that the run goes on elsewhere. So a round that nothing goes on from starts
// with all nodes that are wanted, or after join_timeout. The last call begins when they can.
struct Hidden {
  std::string why;
};
// What the agent at the job's endpoint answers to a stand-in. nullopt: the stand-in coordinates the run from now on.
// `redirect`: where the run's nodes are sent already. `self`: the address of this coordinator. May raise state.term.
std::optional<Redirect> AnswerTo(const Supersede& supersede, const std::optional<Redirect>& redirect,
                                 const std::string& self, State& state);

using Event = std::variant<PeerOpened, PeerSaid, PeerClosed, Tick, StandIn, Gone, TurnedAway, Wanted, Hidden>;

struct Send {
  PeerId peer;
  CoordinatorMessage message;
};
struct Close {  // after everything that was sent to it
  PeerId peer;
};
using Action = std::variant<Send, Close>;

struct Effects {
  std::vector<Action> actions;
  std::string reason;                   // empty: nothing was decided
  std::optional<TimePoint> look_again;  // when Tick must be applied, at the latest
  std::vector<std::string> refusals;    // why nodes were refused by this event
};

Effects Apply(State& state, const Event& event, TimePoint now);

// The facts `muster status` shows.
StatusReport Describe(const State& state, TimePoint now);

// The failure to blame: the first that is not a consequence; of these, one that is late or only reports the end of
// another process (ChildFailedError) yields. So a lost peer yields to its cause, in whatever order they come until the
// round has stopped. Nullopt for an empty list. Pure.
std::optional<WorkerFailure> RootCause(const std::vector<WorkerFailure>& failures);

}  // namespace muster::rendezvous
