// The node's end of the rendezvous, as a pure state machine: whom to dial, what to say again after a reconnect, what to
// hand to the agent, when to stand in for a dead coordinator, when to give up.
//
//     Apply(state, event, now) -> effects
//
// No I/O, no clock, no thread; jitter comes from `State::seed`. attendant.h is the I/O around it.
//
// Rules (docs/rendezvous.md tells them to a user):
//  - Dial the endpoint; after a failure again with exponential delays and jitter (20 ms .. 1 s), until join_timeout has
//    passed since the last time a coordinator was there: then give up with 200 (never attended) or 201 (lost it).
//  - Workers stay up while no coordinator is there. After a reconnect Hello carries state, round and unanswered report.
//  - A message of an older (term, round) is dropped. A Stop of a newer round than ours says that ours is over and that
//    we have no seat: our workers stop, and we never stand in by our old roster.
//  - Coordinator lost while in a round: dial it again at once. If its process is proven dead (connection refused), or
//    it was silent for the heartbeat limit: walk the successors in rank order, leaving out the seat of the dead
//    coordinator's node. The first one that can be reached and stands in is attended; when the walk arrives at this
//    node itself, it stands in. A node that is reached before it has noticed keeps the Hello until it stands in
//    (membership.h), or is left for the next one after the heartbeat limit. Who refuses the connection on the way is
//    known to be gone, too.
//  - Going: Leave, and the end at once; beats go on until the connection is closed, so that nobody takes our seat
//    before our workers have ended.
//  - That a process is dead proves that it is in no newer round only while the coordinator cannot have given us up:
//    less than the heartbeat limit after its last word. Later only a living majority may go on. What is heard after a
//    freeze of this process was said before, until a beat of after it is answered.
//  - Redirect: follow it if its term is higher than the known one.
//  - The endpoint names this machine but its port was taken (by a predecessor that was just dying, say): when it
//    refuses, and no round has begun, this agent serves it.
//  - The walk has not asked the nodes behind this one. A stand-in with proof probes them: who refuses is gone as well.
//  - An acting stand-in keeps dialling the endpoint and tells whoever appears there (Supersede).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "net/loss.h"
#include "rendezvous/messages.h"

namespace muster::rendezvous::attendance {

enum class Stage {
  kDialling,   // a dial is under way or a delay before the next runs
  kGreeting,   // connected, Hello sent, not yet welcomed
  kAttending,  // welcomed
  kEnded,      // finished, refused, left or given up
};

struct State {
  // Set once by the agent.
  std::string run_id;
  std::string endpoint;  // where strangers knock; empty: this agent itself coordinates, over a local link
  Node self;             // store_port changes with every round
  JobOptions options;
  bool may_stand_in = true;  // false where there is no control port
  bool may_host = false;     // the endpoint may be on this machine, and was not free or not known at the start
  uint64_t seed = 1;         // for jitter

  Stage stage = Stage::kDialling;
  std::string target;               // address being dialled or attended
  uint64_t term = 0;                // of the coordinator attended last
  uint64_t known_term = 0;          // the highest one heard of
  std::optional<Assignment> round;  // the last one started
  NodeState doing = NodeState::kIdle;
  std::optional<Report> report;  // sent, not yet answered by Stop, Start or Finish
  bool left = false;
  int attempt = 0;  // failed dials in a row
  std::optional<TimePoint> dial_at;
  std::optional<TimePoint> alone_since;  // no coordinator since
  TimePoint last_heard{};                // put off when this process was frozen
  TimePoint last_word{};                 // the same, but the truth
  int unanswered = 0;                    // beats on this connection
  std::optional<int> stale;  // answers to beats of before a freeze, to come; none: what is heard is said now
  std::optional<TimePoint> beat_at;
  Duration beat_interval = std::chrono::seconds(5);
  std::optional<size_t> walking;  // node rank being tried in the succession walk
  bool coordinator_proven_dead = false;
  bool proof = false;        // proven so while it cannot have given this node up
  bool standing_in = false;  // this node's own agent coordinates (conductor got StandIn)
  std::string last_notice;
  bool outdated = false;                // the last round went on without this node
  bool linked = false;                  // a connection is there
  bool was_welcomed = false;            // by any coordinator, ever
  std::string coordinator;              // address of the last one that welcomed us
  std::set<std::string> dead;           // nodes whose address refused since the coordinator was lost
  bool silent = false;                  // this node's workers write nothing (Silence)
  int probes = 0;                       // since this node stands in
  std::optional<TimePoint> dial_until;  // when a dial without an answer counts as failed
  TimePoint coordinator_heard{};        // when the lost coordinator was heard last
  TimePoint lost_word{};                // the same, but the truth
  std::set<std::string> said;           // reasons told to the user since the last welcome
  std::string last_failure;             // of a dial
  std::optional<TimePoint> expected;    // the last look_again: a later event means this process was frozen
};

// --- events ---
struct Begin {};  // once, at the start
struct Connected {};
using net::Loss;
struct Disconnected {  // the dial failed, or the connection ended
  Loss loss = Loss::kClosed;
  std::string detail;  // for people: "10.0.0.7:29400: Connection refused"
};
struct Heard {
  CoordinatorMessage message;
};
struct WorkersEnded {  // by themselves (success or failure)
  Report report;
};
struct NoWorkerLeft {  // after Stop or a failure: all are gone, store is ready
  int store_port = 0;
  std::optional<int64_t> progress = std::nullopt;  // as in Ready
  std::vector<WorkerFailure> late = {};            // WorkerFailure::late: reported before Ready
};
struct Silence {  // the round's workers here write nothing any more, or something again
  bool silent = false;
};
struct Probed {  // the answer to Probe: it refused, or it let us in and closed later, or neither
  std::string name;
  Loss loss = Loss::kUnreachable;
};
struct Hosting {};  // the answer to HostEndpoint: it is served in this process now
struct Going {      // SIGTERM here, or a node check that failed
  std::string reason;
  LeaveCause cause = LeaveCause::kAsked;
};
struct Tick {};
using Event = std::variant<Begin, Connected, Disconnected, Heard, WorkersEnded, NoWorkerLeft, Silence, Probed, Hosting,
                           Going, Tick>;

// --- actions ---
struct Dial {  // drop what there is, connect to this address ("host:port"; "" = local link)
  std::string address;
};
struct Tell {
  NodeMessage message;
};
struct HangUp {};    // after what was told
struct StartRound {  // to the agent: start these workers
  Assignment assignment;
};
struct StopRound {  // to the agent: stop the workers of this round, then NoWorkerLeft
  RoundId round;
  std::string reason;
  RoundCause cause = RoundCause::kMembership;
  bool keep_evidence = false;  // as in messages.h
};
struct AllSilent {};  // to the agent: no worker of the round writes anything, on no node
struct End {          // to the agent: stop what runs, then end with this
  Verdict verdict;
};
struct Say {  // to the user, once per distinct text
  std::string text;
};
struct CoordinateHere {  // start coordinating in this process (conductor: StandIn), then Dial("")
  Assignment assignment;
  bool proof = false;
  std::vector<std::string> dead;  // as in membership.h's StandIn
  uint64_t known_term = 0;
};
struct HostEndpoint {};  // try to serve the endpoint; Hosting, if that succeeds
struct Probe {           // connect there beside everything else, stay until it closes, then Probed
  std::string name;
  std::string address;
};
struct TellDead {  // to the coordinator in this process: that node is gone
  std::string name;
};
using Action = std::variant<Dial, Tell, HangUp, StartRound, StopRound, AllSilent, End, Say, CoordinateHere,
                            HostEndpoint, Probe, TellDead>;

struct Effects {
  std::vector<Action> actions;
  std::string reason;
  std::optional<TimePoint> look_again;
};

Effects Apply(State& state, const Event& event, TimePoint now);

}  // namespace muster::rendezvous::attendance
