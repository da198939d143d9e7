// SPDX-License-Identifier: Apache-2.0
// The node's end of the rendezvous, as a pure state machine. It decides which address to dial, what to repeat after a
// reconnect, what the agent must do, when to stand in for a lost coordinator, and when to give up.
//
//     Apply(state, event, now) -> effects
//
// No I/O, no clock, no thread; jitter comes from `State::seed`. attendant.h is the I/O around it.
//
// Rules (docs/rendezvous.md tells them to a user):
//  - Dial the endpoint; after a failure dial again, with exponential delays and jitter (20 ms to 1 s). Give up when no
//    coordinator was there for join_timeout: with 200 if this node never attended one, else with 201.
//  - Workers keep running while no coordinator is there. After a reconnect Hello has state, round, unanswered report.
//  - A message of an older (term, round) is dropped. A Stop of a newer round than this node's says that this node has
//    no seat in the newer one. Its workers stop, and it never stands in by its old roster.
//  - Coordinator lost in a round: dial it again at once. If the connection is refused (its process is dead), or it was
//    silent for the heartbeat limit, walk the successors in rank order, without the lost coordinator's node. Attend the
//    first one that can be reached and stands in. When the walk arrives at this node, it stands in itself. A node that
//    has not noticed the loss keeps the Hello until it stands in (membership.h); after the heartbeat limit the walk
//    goes on. A successor that refuses the connection counts as gone, too.
//  - Proof: a refused connection proves that the process is in no newer round only while the coordinator cannot have
//    given this node up: for the heartbeat limit after its last message. Later only a living majority may go on. What
//    is read after a freeze of this process counts as old until a beat that was sent after the freeze is answered.
//  - Fencing: a node that hears no coordinator stops its workers before the others may start a round without it. The
//    coordinator counts a node as lost a heartbeat limit after its last message. So the workers may run for four fifths
//    of that limit from when a beat was sent that a coordinator has answered, which decides about the round; then they
//    have a tenth of it to end. Not if the coordinator is on this machine, or if its connection is refused and the
//    number of nodes is fixed: then the others need this node.
//  - Going: the node says Leave, and the agent gets End at once. Beats go on until the connection is closed, so that
//    the node's seat is not given away before its workers have ended.
//  - Redirect: follow it if its term is above that of the last coordinator attended; after Hello, an equal one too.
//  - Over: whoever made the nodes says that the run has succeeded on other ones, which have ended. The agent gets End
//    with code 0 once no worker runs here and no coordinator is attended. An attended one decides itself (Wanted).
//  - Hosting: the endpoint may name this machine, but its port was taken at the start (say, by a predecessor that was
//    ending). When the endpoint refuses a connection and no round has begun, this agent serves it.
//  - Probes: a stand-in with proof probes the nodes that the walk has not dialled. One that refuses is gone as well.
//  - Supersede: a stand-in dials the endpoint again and again, and tells the agent there that it coordinates the run: a
//    connection may lead to a machine that has lost its power. While it waits for most of the nodes, it yields to an
//    agent there that has no memory of the run.
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
  std::string endpoint;  // the job's endpoint; empty: this agent itself coordinates, over a local link
  Node self;             // store_port changes with every round
  JobOptions options;
  bool may_stand_in = true;  // false without a control port
  bool may_host = false;     // the endpoint may be on this machine, and was not free or not known at the start
  bool in_pods = false;      // as in State::Given of membership.h
  uint64_t seed = 1;         // for jitter

  Stage stage = Stage::kDialling;
  std::string target;               // address being dialled or attended
  uint64_t term = 0;                // of the coordinator attended last
  uint64_t known_term = 0;          // the highest term heard of
  std::optional<Assignment> round;  // the last one started
  NodeState doing = NodeState::kIdle;
  std::optional<Report> report;  // sent, not yet answered by Stop, Start or Finish
  bool left = false;
  int attempt = 0;  // failed dials in a row
  std::optional<TimePoint> dial_at;
  std::optional<TimePoint> alone_since;  // no coordinator since
  TimePoint last_heard{};                // moved forward after a freeze of this process
  TimePoint last_word{};                 // when the coordinator last sent something, as far as is certain
  int unanswered = 0;                    // beats on this connection
  std::optional<int> stale;  // after a freeze: answers still due to beats sent before it; none: messages are new
  std::optional<TimePoint> beat_at;
  Duration beat_interval = std::chrono::seconds(5);
  std::optional<size_t> walking;  // node rank being tried in the succession walk
  bool coordinator_proven_dead = false;
  bool proof = false;        // proven while it cannot have given this node up
  bool standing_in = false;  // this node's own agent coordinates (the coordinator got StandIn)
  std::string last_notice;
  bool outdated = false;                // the last round went on without this node
  bool linked = false;                  // a connection is there
  bool was_welcomed = false;            // by any coordinator, ever
  std::optional<TimePoint> refused_at;  // when its credentials were refused first
  std::string coordinator;              // address of the last one that welcomed this node
  std::set<std::string> dead;           // nodes whose address has refused since the coordinator was lost
  bool silent = false;                  // this node's workers write nothing (Silence)
  int probes = 0;                       // sent since this node stands in
  std::optional<TimePoint> dial_until;  // when a dial without an answer counts as failed
  TimePoint coordinator_heard{};        // `last_heard` of the lost coordinator
  TimePoint lost_word{};                // `last_word` of the lost coordinator
  std::set<std::string> said;           // reasons told to the user since the last welcome
  std::string last_failure;             // of a dial
  TimePoint answered{};                 // when the last message of this connection was sent that was answered
  bool leases = false;                  // the coordinator attended last gives leases
  bool leased = false;                  // its last answer was one
  TimePoint lease{};                    // no round starts without this node for the heartbeat limit from then on
  bool over = false;                    // as in Over
  bool fenced = false;                  // the last round's workers were stopped at once: others may begin a round
  bool cut_off = false;                 // that was for want of a lease
  bool preparing = false;               // as in Hello
  std::string imports;                  // shown by a worker of this node
  bool wants_imports = false;           // until a round starts, or they come
  bool may_share = false;               // the coordinator attended knows Imports
  std::optional<TimePoint> expected;    // the last look_again; a much later event: this process was frozen
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
struct WorkersEnded {  // the workers ended by themselves (success or failure)
  Report report;
};
struct NoWorkerLeft {  // after Stop or a failure: all workers are gone, the next store is open
  int store_port = 0;
  std::optional<int64_t> progress = std::nullopt;  // as in Ready
  std::vector<WorkerFailure> late = {};            // WorkerFailure::late: reported before Ready
};
struct Silence {  // this node's workers have written nothing for the limit, or write again
  bool silent = false;
};
struct Prepares {  // as in Hello
  bool preparing = false;
};
struct Over {};  // the run has succeeded on other nodes; its coordinator has ended, or cannot be reached from here
struct ShareImports {  // as in Imports: a worker has shown these, or, if empty, this node waits and wants them
  std::string names;
};
struct Probed {  // the answer to Probe; kRefused: refused; kClosed: accepted, and closed later
  std::string name;
  Loss loss = Loss::kUnreachable;
};
struct Hosting {};  // the answer to HostEndpoint: this process serves the endpoint now
struct Going {      // SIGTERM here, or a node check that failed
  std::string reason;
  LeaveCause cause = LeaveCause::kAsked;
};
struct Tick {};
using Event = std::variant<Begin, Connected, Disconnected, Heard, WorkersEnded, NoWorkerLeft, Silence, Prepares, Over,
                           ShareImports, Probed, Hosting, Going, Tick>;

// --- actions ---
struct Dial {  // drop the present connection, connect to this address ("host:port"; "" = local link)
  std::string address;
};
struct Send {
  NodeMessage message;
};
struct HangUp {};    // after everything that was told before
struct StartRound {  // to the agent: start these workers
  Assignment assignment;
};
struct StopRound {  // to the agent: stop the workers of this round, then NoWorkerLeft
  RoundId round;
  std::string reason;
  RoundCause cause = RoundCause::kMembership;
  bool keep_evidence = false;                    // as in messages.h
  std::optional<Duration> grace = std::nullopt;  // after that SIGKILL; nullopt: as usual
};
struct AllSilent {};  // to the agent: on every node of the round, the running workers write nothing
struct PrepareNow {   // to the agent: make the standby workers now, a node waits to join
};
struct GiveImports {  // to the agent, which waits for a round: another node's worker has shown these
  std::string names;
};
struct WantTelemetry {};  // to the agent: somebody looks at the run
struct End {              // to the agent: stop the workers, then end with this verdict
  Verdict verdict;
};
struct Say {  // to the user, once per distinct text
  std::string text;
};
struct CoordinateHere {  // start coordinating in this process (Coordinator: StandIn), then Dial("")
  Assignment assignment;
  bool proof = false;
  std::vector<std::string> dead;  // as in membership.h's StandIn
  uint64_t known_term = 0;
};
struct HostEndpoint {};  // try to serve the endpoint; Hosting, if that succeeds
struct Probe {           // open another connection, to `address`; Probed when it fails or closes
  std::string name;
  std::string address;
};
struct TellDead {  // to the coordinator in this process: this node is gone
  std::string name;
};
using Action = std::variant<Dial, Send, HangUp, StartRound, StopRound, AllSilent, PrepareNow, GiveImports,
                            WantTelemetry, End, Say, CoordinateHere, HostEndpoint, Probe, TellDead>;

struct Effects {
  std::vector<Action> actions;
  std::string reason;
  std::optional<TimePoint> look_again;
};

Effects Apply(State& state, const Event& event, TimePoint now);

}  // namespace muster::rendezvous::attendance
