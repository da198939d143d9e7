// The coordinator's decisions for one run, as a pure state machine:
//
//     Apply(state, event, now) -> effects (messages to send, why, when to look again)
//
// No I/O, no clock, no thread, no randomness: the same events give the same effects. Whoever drives it (conductor.h)
// owns one State per run, calls Apply for everything that happens, sends what it says, and calls again with Tick at
// `look_again`. docs/rendezvous.md and docs/exit-codes.md tell the rules to a user.
//
// Invariants (tests/sim checks them): ranks are contiguous and unique; one roster per round id, the same for all its
// nodes; rounds only grow; no Start while a living node of the round before that stays may still run workers;
// restart_count never above max_restarts (within the window); after Finish nothing but Finish is ever sent; progress
// while min nodes live.
//
// A node that leaves is not waited for: its workers may take their time (a checkpoint), in a round that is over. It
// gets no seat and no store any more; its name and its place are its own until it has gone.
//
// Cost: a beat O(1), a join O(log n), a restart O(n log n), for n nodes.
//
// Whose agent hosts this: a node that has lost its coordinator knocks at its successors, maybe before they have
// noticed. Such a Hello is kept, without an answer, until StandIn comes; then the node is welcomed, and counts from its
// next word on, since it may have gone on to somebody else.
//
// Two halves: a node whose stream closed is gone; one that fell silent may live on behind a cut. When more than half of
// a round's nodes fell silent they may have a stand-in of their own by majority, so this side starts nothing until they
// are back (or all are known to be gone, or join_timeout has passed). That is asked for the current round and for the
// one before: a Start may have been lost on the way, so a node counts for every round that may be the last it knows.
// A new process under a silent one's name says that the old one is gone now, not that it joined nobody before.
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

namespace muster::rendezvous {

// A conversation with one node (a stream). Given by the driver; later streams have higher numbers.
using PeerId = uint64_t;

enum class Phase {
  kGathering,  // no round runs; waiting for nodes
  kReforming,  // this coordinator has no memory (it came back, or it stands in): collecting what living nodes report
  kRunning,    // a round runs
  kStopping,   // Stop was sent; waiting until every living node of the round is ready
  kFinished,   // the verdict is known
};

struct Member {
  Node node;
  PeerId peer = 0;  // 0: no stream now
  NodeState state = NodeState::kIdle;
  uint64_t arrival = 0;  // grows with every arrival: who takes part first where there are too many
  TimePoint last_heard{};
  bool in_round = false;             // has a seat in `State::round`
  bool leaving = false;              // said Leave: gone as soon as its stream ends, never seated again
  bool ready = false;                // no worker is left; may be seated
  std::optional<Report> report;      // for the current round
  std::optional<int64_t> progress;   // of its workers in that round, where they were stopped
  int rank = -1;                     // node rank in `State::round`; -1: not in it
  RoundId runs;                      // the round its workers belong to (or belonged to, once ready)
  bool silent = false;               // its workers in the round write nothing
  RoundId knows;                     // the newest round it is known to have heard of
  std::optional<TimePoint> lost_at;  // stream closed while reforming: it may come back until the heartbeat limit
  // A second Hello with this name while the holder's fate is open: it replaces the holder if that one turns out to be
  // dead (no beat within the heartbeat limit, or its stream closes) and is refused at the holder's next sign of life.
  std::optional<std::pair<PeerId, Hello>> contender;
};

// Why a round ends or begins.
struct Why {
  std::string reason;  // one sentence; empty: nothing has happened
  RoundCause cause = RoundCause::kMembership;
};

struct State {
  std::string run_id;
  std::optional<JobOptions> options;  // of the first Hello
  std::string self_node;              // the node whose agent this coordinator lives in; empty: none
  std::optional<int> wanted_nodes;    // how many nodes there are meant to be now (Wanted); empty: nobody says
  std::string endpoint_hint;          // for nodes that do not come; EndpointHint() in base/host_names.h
  bool on_call = false;               // not where strangers look for the job: coordinates from StandIn on
  Phase phase = Phase::kGathering;
  uint64_t term = 1;
  Round round;                            // the current or last one; id.number == -1 before the first
  bool own_round = false;                 // `round` was made here, not told by a node
  std::map<std::string, Member> members;  // by node name
  uint64_t arrivals = 0;
  int restart_count = 0;
  std::vector<TimePoint> budget_used;  // when restarts were charged (for restart_window)
  int without_progress = 0;            // restarts in a row without a longer life or a higher step
  std::optional<Duration> best_life;
  std::optional<int64_t> best_progress;
  std::optional<TimePoint> gathering_since;
  std::optional<TimePoint> last_arrival;
  std::optional<TimePoint> reform_until;
  Why stop;                             // why the current round is being stopped, then the next one made
  bool keep_evidence = false;           // stopping because of a hang: every node notes what its workers are doing first
  std::vector<WorkerFailure> failures;  // heard in the current round, in order of hearing
  std::optional<WorkerFailure> overcome;  // root cause of the last failure that a restart was made for
  std::optional<Verdict> verdict;
  std::string reason;  // the last decision's sentence

  // Kept so that no event has to look at all members. Nobody outside writes these.
  struct Counts {
    int ready = 0;           // connected, no worker left, not leaving
    int seated_living = 0;   // connected, in the round
    int seated_leaving = 0;  // connected, in the round, said Leave
    int seated_busy = 0;     // connected, in the round, not ready, not leaving: the next round waits for them
    int succeeded = 0;       // in the round and done with 0, connected or not
    int silent = 0;          // in the round, running, and its workers write nothing
    int living = 0;          // connected
    int leaving = 0;         // connected, said Leave
  };
  Counts counts;
  std::unordered_map<PeerId, std::string> names;  // whose stream it is; of a contender: the holder's name
  std::map<int, std::string> indexes;             // who holds a place (options.indexed)
  std::multimap<TimePoint, PeerId> silence;       // when to look at a stream's last sign of life; one entry each
  // Nodes that fell silent and may live on: those could agree on a stand-in without us.
  struct Silent {
    RoundId knows;  // the last round it knows is between this one
    RoundId told;   // and this one
    std::string incarnation;
    bool gone = false;  // by now
  };
  std::map<std::string, Silent> silent;  // by node name
  std::optional<bool> cut_off;           // whether they are a majority; empty: to be counted again
  RoundId last_id;                       // the round before `round`, and its nodes
  std::set<std::string> last_names;
  std::map<std::string, std::string> slow;  // nodes of the current round that are, and in what: outliers.h
  Why loss;                                 // why the first seat of the current round was lost
  bool abandoned = false;                   // a node said Leave, ever
  std::string last_refusal;                 // since the last round began: maybe that is who is missing
  std::optional<TimePoint> stopping_since;
  std::optional<TimePoint> expected;            // the last look_again: a later Tick means this process was frozen
  std::optional<TimePoint> grace_until;         // after a freeze: what lies in the sockets is read first
  bool reform_stands_in = false;                // more than half of the living seats must attend before anything starts
  bool reform_proof = false;                    // those of reform_dead count as gone for that
  std::set<std::string> reform_dead;            // nodes of the re-formed round known to be gone
  std::set<int> reform_seen;                    // seats that have reported
  bool reform_conflict = false;                 // two nodes tell the round differently
  std::string notice;                           // what the waiting nodes were told last
  std::vector<std::pair<PeerId, Hello>> early;  // nodes that knock here before this agent stands in
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
// This coordinator stands in for a dead or silent one: it starts from `assignment`, the
// last round its own node was in, one term on.
// With `proof` (the old process is known to be gone: connection refused) it acts at once and counts the old
// coordinator's node as lost; without, it acts once a majority of the round's nodes attend it.
struct StandIn {
  Assignment assignment;
  JobOptions options;
  bool proof = false;
  std::vector<std::string> dead;  // other nodes of the round whose address actively refused: known to be gone, too
  uint64_t known_term = 0;        // the highest heard of: who claims it may have made no round yet
};
// While a stand-in with proof gathers its majority: this node's address actively refuses, it is gone as well.
struct Gone {
  std::string name;
};
// Somebody was refused before he came as far as this run (no token, another run id); one sentence.
struct TurnedAway {
  std::string reason;
};
// So many nodes there are meant to be now, says who makes them: an elastic job starts as soon as they are there, and
// takes newcomers in together, once they are all there. At most the last call is waited for them.
struct Wanted {
  int nodes = 0;
};
using Event = std::variant<PeerOpened, PeerSaid, PeerClosed, Tick, StandIn, Gone, TurnedAway, Wanted>;

struct Send {
  PeerId peer;
  CoordinatorMessage message;
};
struct Close {  // after what was sent to it
  PeerId peer;
};
using Action = std::variant<Send, Close>;

struct Effects {
  std::vector<Action> actions;
  std::string reason;                   // empty: nothing was decided
  std::optional<TimePoint> look_again;  // when Tick must be applied, at the latest
  std::vector<std::string> refusals;    // why somebody was sent away just now
};

Effects Apply(State& state, const Event& event, TimePoint now);

// The facts `muster status` shows.
StatusReport Describe(const State& state, TimePoint now);

// The failure to blame: the first one heard of that is not a consequence of a peer's death, else the first.
// Nullopt for an empty list. Pure; also used for the summary on the console.
std::optional<WorkerFailure> RootCause(const std::vector<WorkerFailure>& failures);

}  // namespace muster::rendezvous
