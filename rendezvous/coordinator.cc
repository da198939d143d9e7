// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/coordinator.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "rendezvous/followers.h"

namespace muster::rendezvous {

namespace asio = boost::asio;

namespace {

// How long a redirect outlives the stand-in's stream. By then the stand-in is back, or another node stands in.
constexpr Duration kRedirectGrace = std::chrono::seconds(15);
constexpr size_t kMostRefusals = 100;  // logged by one process; strangers must not fill the log

}  // namespace

class Coordinator::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, Options options) : loop_(loop), options_(std::move(options)), drain_timer_(loop) {}

  PeerId Connect(Peer* peer, bool local) {
    PeerId id = next_id_++;
    peers_.emplace(id, Far{peer, nullptr, Role::kUnknown, local});
    if (!local) ++remote_;
    return id;
  }

  void Receive(PeerId id, const NodeMessage& message) {
    auto found = peers_.find(id);
    if (found == peers_.end() || found->second.role == Role::kClosed) return;
    Far& far = found->second;
    if (far.role == Role::kNode) {
      if (std::holds_alternative<Hello>(message) || std::holds_alternative<Inspect>(message) ||
          std::holds_alternative<Supersede>(message)) {
        Hangup(far, Refuse{kExitBadConfiguration, "this node introduced itself a second time on one connection"});
        return;
      }
      if (const auto* imports = std::get_if<Imports>(&message)) return PassOn(id, *far.run, *imports);
      if (const auto* telemetry = std::get_if<Telemetry>(&message)) {
        if (const auto name = far.run->state.names.find(id); name != far.run->state.names.end()) {
          far.run->followers->Tell(name->second, *telemetry);
        }
        return;
      }
      Step(*far.run, PeerSaid{id, message});
      return;
    }
    if (const auto* hello = std::get_if<Hello>(&message)) return Greet(id, far, *hello);
    if (const auto* inspect = std::get_if<Inspect>(&message)) return Show(id, far, *inspect);
    if (const auto* supersede = std::get_if<Supersede>(&message)) return Yield(id, far, *supersede);
    if (far.role == Role::kUnknown) {
      Hangup(far, Refuse{kExitBadConfiguration, "the first message on a connection must introduce the node"});
    }
  }

  void Disconnect(PeerId id) {
    auto found = peers_.find(id);
    if (found == peers_.end()) return;
    Far far = found->second;
    peers_.erase(found);
    if (!far.local) --remote_;
    if (far.run != nullptr) {
      Run& run = *far.run;
      run.followers->Remove(id);
      run.want_imports.erase(id);
      if (run.successor == id) {
        run.successor = 0;
        run.redirect_until = MonotonicClock::now() + kRedirectGrace;
        run.look_again = run.look_again ? std::min(*run.look_again, *run.redirect_until) : run.redirect_until;
        Arm(run);
      }
      if (run.nodes.erase(id) > 0) {
        Step(run, PeerClosed{id});
      } else {
        ForgetIfOver(run);
      }
    }
    awaiting_.erase(id);
    if (remote_ == 0) Drained();
  }

  void TakeOver(const std::string& run_id, const rendezvous::StandIn& stand_in) {
    Run& run = RunOf(run_id);
    run.redirect.reset();
    // The stand-in that this run was sent to believes that it still is. It asks again: the higher term decides.
    if (const auto asked = peers_.find(std::exchange(run.successor, 0)); asked != peers_.end()) {
      asked->second.role = Role::kClosed;
      asked->second.peer->Close();
    }
    Step(run, stand_in);
  }

  void KnowDead(const std::string& run_id, const Gone& gone) {
    if (auto found = runs_.find(run_id); found != runs_.end()) Step(*found->second, gone);
  }

  void Want(int nodes) {
    wanted_nodes_ = nodes;
    for (const auto& [id, run] : std::map(runs_)) Step(*run, Wanted{nodes});
  }

  void Hide(const std::string& why) {
    hidden_ = why;
    for (const auto& [id, run] : std::map(runs_)) Step(*run, Hidden{why});
  }

  void TurnAway(const std::string& reason) {
    auto found = options_.only_run_id.empty() ? runs_.end() : runs_.find(options_.only_run_id);
    if (found != runs_.end()) return Step(*found->second, TurnedAway{reason});
    SayRefused(reason, "");
  }

  void YieldTo(const std::string& run_id, const Redirect& redirect) {
    auto found = runs_.find(run_id);
    if (found == runs_.end() || redirect.address.empty() || redirect.term <= found->second->state.term) return;
    SendOn(*found->second, redirect);
  }

  void SetPlace(const std::string& address, bool on_call) {
    options_.self_address = address;
    on_call_ = on_call;
  }

  void TakeEndpoint(const std::string& endpoint) {
    on_call_ = false;
    taken_endpoint_ = endpoint;
  }

  void Drain(Duration limit, std::function<void()> done) {
    drained_ = std::move(done);
    if (remote_ == 0) return Drained();
    drain_timer_.expires_after(limit);
    drain_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (self && !error) self->Drained();
    });
  }

  Supersede AsStandIn(const std::string& run_id) const {
    auto found = runs_.find(run_id);
    if (found == runs_.end()) return {run_id, 0, options_.self_address, true};
    const State& state = found->second->state;
    return {run_id, state.term, options_.self_address, state.phase == Phase::kReforming};
  }

  void OnReason(std::function<void(const std::string&, const std::string&)> listener) {
    listener_ = std::move(listener);
  }

  void Stop() {  // the Coordinator is being destroyed: no callback follows
    peers_.clear();
    awaiting_.clear();
    for (const auto& [id, run] : runs_) run->followers->Clear();
    runs_.clear();
    listener_ = nullptr;
    drained_ = nullptr;
    drain_timer_.cancel();
  }

 private:
  enum class Role {
    kUnknown,    // has said nothing yet
    kNode,       // said Hello
    kFollower,   // said Inspect
    kSuccessor,  // said Supersede
    kClosed,     // is being closed; its messages are ignored
  };
  struct Run : std::enable_shared_from_this<Run> {
    explicit Run(asio::io_context& loop) : timer(loop) {}
    State state;
    asio::steady_timer timer;
    std::optional<TimePoint> look_again;  // when Tick is due
    std::optional<TimePoint> armed;       // when the timer fires: never later than look_again
    std::string reason;
    std::unordered_set<PeerId> nodes;
    std::shared_ptr<Followers> followers;
    Imports imports;  // the last that a node has sent
    std::unordered_set<PeerId> want_imports;
    // Another agent coordinates this run: all peers are sent there.
    std::optional<Redirect> redirect;
    PeerId successor = 0;                     // the stream of its Supersede; 0: none
    std::optional<TimePoint> redirect_until;  // set when that stream has ended
  };
  struct Far {
    Peer* peer;
    Run* run;
    Role role;
    bool local;
    bool tells_telemetry = false;  // as in Hello
  };

  Run& RunOf(const std::string& run_id) {
    std::shared_ptr<Run>& run = runs_[run_id];
    if (run == nullptr) {
      run = std::make_shared<Run>(loop_);
      run->state = Fresh(run_id);
      run->followers = FollowersOf(*run);
      for (auto waits = awaiting_.begin(); waits != awaiting_.end();) {
        const auto [id, wanted] = *waits;
        if (!wanted.run_id.empty() && wanted.run_id != run_id) {
          ++waits;
          continue;
        }
        waits = awaiting_.erase(waits);
        peers_.at(id).run = run.get();
        run->followers->Add(id, wanted.telemetry);
      }
    }
    return *run;
  }

  // The run must outlive them, until Clear().
  std::shared_ptr<Followers> FollowersOf(Run& run) {
    return std::make_shared<Followers>(loop_,
                                       Followers::Sources{.state = [&run]() -> const State& { return run.state; },
                                                          .send =
                                                              [this](PeerId id, const CoordinatorMessage& message) {
                                                                const auto found = peers_.find(id);
                                                                if (found != peers_.end())
                                                                  found->second.peer->Send(message);
                                                              },
                                                          .ask_nodes =
                                                              [this, &run] {
                                                                for (const PeerId id : run.nodes) {
                                                                  const Far& far = peers_.at(id);
                                                                  if (far.tells_telemetry && far.role == Role::kNode) {
                                                                    far.peer->Send(TelemetryWanted{});
                                                                  }
                                                                }
                                                              }});
  }

  State Fresh(const std::string& run_id) const {
    State state;
    state.given.run_id = run_id;
    state.given.self_node = options_.self_node;
    state.given.endpoint_hint = options_.endpoint_hint;
    state.given.in_pods = options_.in_pods;
    state.given.on_call = on_call_;
    state.given.taken_endpoint = taken_endpoint_;
    state.given.hidden = hidden_;
    state.given.wanted_nodes = wanted_nodes_;
    return state;
  }

  // "" if this coordinator serves `run_id`, else the reason of the refusal.
  std::string Stranger(const std::string& run_id) const {
    if (options_.only_run_id.empty() || options_.only_run_id == run_id) return "";
    return fmt::format(
        "this coordinator serves run id \"{}\", the node asks for run id \"{}\"; give every node of a job the same "
        "--rdzv-id",
        options_.only_run_id, run_id);
  }

  void Hangup(Far& far, const CoordinatorMessage& last) {
    far.role = Role::kClosed;
    far.peer->Send(last);
    far.peer->Close();
  }

  void Greet(PeerId id, Far& far, const Hello& hello) {
    if (far.role != Role::kUnknown)
      return Hangup(far, Refuse{kExitBadConfiguration, "Hello must be the first message"});
    if (std::string reason = Stranger(hello.run_id); !reason.empty()) {
      Hangup(far, Refuse{kExitBadConfiguration, reason});
      return TurnAway(fmt::format("node {}: {}", hello.node.name, reason));
    }
    Run& run = RunOf(hello.run_id);
    // Of the last job with this id only followers are left. Its nodes would send a round: this node is of a new job.
    if (Over(run) && run.nodes.empty() && !hello.resume) {
      run.state = Fresh(hello.run_id);
      run.reason.clear();
    }
    if (Redirected(run) && (!hello.resume || hello.resume->id.term <= run.redirect->term)) {
      return Hangup(far, *run.redirect);
    }
    far.role = Role::kNode;
    far.run = &run;
    far.tells_telemetry = hello.tells_telemetry;
    run.nodes.insert(id);
    Step(run, PeerOpened{id, hello});
  }

  bool Redirected(Run& run) {
    if (run.redirect && run.redirect_until && *run.redirect_until <= MonotonicClock::now()) {
      run.redirect.reset();
      run.redirect_until.reset();
    }
    return run.redirect.has_value();
  }

  // False for the empty state of an agent on call.
  static bool Coordinated(const State& state) {
    return !state.given.on_call || state.round.id.number >= 0 || !state.members.empty();
  }

  void Show(PeerId id, Far& far, const Inspect& inspect) {
    if (far.role != Role::kUnknown && far.role != Role::kFollower) return;
    awaiting_.erase(id);
    std::vector<std::string> ids;
    Run* run = nullptr;
    for (const auto& [run_id, known] : runs_) {
      if (!Coordinated(known->state) && !Redirected(*known)) continue;
      ids.push_back(run_id);
      if (inspect.run_id.empty() || inspect.run_id == run_id) run = known.get();
    }
    const std::string there = Join(ids, ", ");
    if (inspect.run_id.empty() && ids.size() > 1) {
      return Hangup(
          far, Refuse{kExitUsage, fmt::format("{} runs are coordinated here; name one of: {}", ids.size(), there)});
    }
    if (run == nullptr) {
      std::string text = ids.empty()
                             ? std::string("no run is coordinated here yet")
                             : fmt::format("no run \"{}\" is coordinated here; there is: {}", inspect.run_id, there);
      const bool may_come = !on_call_ && (inspect.run_id.empty() || Stranger(inspect.run_id).empty());
      if (!inspect.follow || !may_come) return Hangup(far, Refuse{kExitRendezvousTimeout, std::move(text)});
      far.role = Role::kFollower;
      awaiting_[id] = inspect;
      far.peer->Send(Notice{text + "; waiting for it"});
      return;
    }
    if (Redirected(*run)) return Hangup(far, *run->redirect);
    if (!inspect.follow) return Hangup(far, run->followers->Report(inspect.telemetry));
    far.role = Role::kFollower;
    far.run = run;
    run->followers->Add(id, inspect.telemetry);
    far.peer->Send(run->followers->Report(inspect.telemetry));
  }

  void Yield(PeerId id, Far& far, const Supersede& supersede) {
    if (far.role != Role::kUnknown && far.role != Role::kSuccessor) return;
    if (std::string reason = Stranger(supersede.run_id); !reason.empty()) {
      return Hangup(far, Refuse{kExitBadConfiguration, reason});
    }
    if (supersede.address.empty()) {
      return Hangup(far, Refuse{kExitBadConfiguration, "a stand-in must say where it can be reached"});
    }
    Run& run = RunOf(supersede.run_id);
    if (auto answer = AnswerTo(supersede, run.redirect, options_.self_address, run.state)) return Hangup(far, *answer);
    const Redirect redirect{supersede.term, supersede.address};
    // The stand-in that was sent the run before learns that it is not any more.
    if (const auto last = peers_.find(run.successor); last != peers_.end() && last->first != id) {
      Hangup(last->second, redirect);
    }
    far.role = Role::kSuccessor;
    far.run = &run;
    run.successor = id;
    if (run.redirect != redirect) {
      SendOn(run, redirect);
      run.redirect_until.reset();
      return;
    }
    // A stand-in that knocks again does so every 5 s. If it stops, its machine may have lost its power.
    run.redirect_until = MonotonicClock::now() + kRedirectGrace;
  }

  // Decides nothing about the run. A node that has got a round learns by itself.
  void PassOn(PeerId from, Run& run, const Imports& imports) {
    if (imports.names.empty()) {
      run.want_imports.insert(from);
    } else {
      run.imports = imports;
    }
    if (run.imports.names.empty()) return;
    for (const PeerId id : std::exchange(run.want_imports, {})) {
      const Far& far = peers_.at(id);
      if (far.role == Role::kNode) far.peer->Send(run.imports);
    }
  }

  // Sends all peers of the run to the new coordinator, and forgets everything decided here.
  void SendOn(Run& run, const Redirect& redirect) {
    run.redirect = redirect;
    run.redirect_until = MonotonicClock::now() + kRedirectGrace;
    SetReason(run, fmt::format("this run is coordinated at {} now (term {})", redirect.address, redirect.term));
    std::vector<PeerId> sent_on(run.nodes.begin(), run.nodes.end());
    for (const PeerId follower : run.followers->Clear()) sent_on.push_back(follower);
    run.nodes.clear();
    run.want_imports.clear();
    for (PeerId node : sent_on) {
      auto found = peers_.find(node);
      if (found == peers_.end()) continue;
      found->second.run = nullptr;
      if (found->second.role != Role::kClosed) Hangup(found->second, redirect);
    }
    std::string run_id = run.state.given.run_id;
    run.state = Fresh(run_id);
    run.state.term = redirect.term;  // if this process coordinates the run again, its rounds must not look older
    run.look_again.reset();
  }

  // `run` may be destroyed afterwards.
  void Step(Run& run, const Event& event) {
    TimePoint now = MonotonicClock::now();
    Effects effects = Apply(run.state, event, now);
    for (const Action& action : effects.actions) {
      if (const auto* send = std::get_if<rendezvous::Send>(&action)) {
        auto found = peers_.find(send->peer);
        if (found != peers_.end() && found->second.role != Role::kClosed) found->second.peer->Send(send->message);
        if (std::holds_alternative<rendezvous::Start>(send->message)) run.want_imports.erase(send->peer);
      } else if (const auto* close = std::get_if<rendezvous::Close>(&action)) {
        auto found = peers_.find(close->peer);
        if (found == peers_.end()) continue;
        found->second.role = Role::kClosed;
        found->second.peer->Close();
      }
    }
    run.look_again = effects.look_again;
    Arm(run);
    if (!effects.reason.empty() && effects.reason != run.reason) SetReason(run, effects.reason);
    run.followers->Observe(!effects.reason.empty() || !effects.actions.empty());
    for (const std::string& refusal : effects.refusals) SayRefused(refusal, run.state.given.run_id);
    ForgetIfOver(run);
  }

  // Logs each reason once, since a refused node may come again and again.
  void SayRefused(const std::string& reason, const std::string& run_id) {
    if (said_refused_.size() >= kMostRefusals || !said_refused_.insert(reason).second) return;
    const std::string text = fmt::format("refused: {}", reason);
    if (options_.only_run_id.empty() && !run_id.empty()) {
      log::Warning(text, {{"run_id", run_id}});
    } else {
      log::Warning(text);
    }
    if (said_refused_.size() == kMostRefusals) log::Warning("further refusals are not logged");
  }

  void SetReason(Run& run, const std::string& reason) {
    run.reason = reason;
    if (listener_) listener_(run.state.given.run_id, reason);
  }

  // Moves the timer only if it would fire too late, since every beat moves look_again.
  void Arm(Run& run) {
    if (!run.look_again || (run.armed && *run.armed <= *run.look_again)) return;
    run.armed = run.look_again;
    run.timer.expires_at(*run.armed);
    run.timer.async_wait(
        [weak = weak_from_this(), over = run.weak_from_this()](const boost::system::error_code& error) {
          auto self = weak.lock();
          auto due = over.lock();
          if (!self || !due || error) return;
          due->armed.reset();
          if (!due->look_again) return;
          if (*due->look_again <= MonotonicClock::now()) {
            self->Step(*due, Tick{});
          } else {
            self->Arm(*due);
          }
        });
  }

  bool Over(const Run& run) const { return options_.only_run_id.empty() && run.state.phase == Phase::kFinished; }

  // `muster coordinator` serves many runs. Finished ones must not pile up, nor answer the next job with the same id.
  void ForgetIfOver(Run& run) {
    if (!options_.only_run_id.empty() || !run.nodes.empty() || !run.followers->empty() || run.successor != 0) return;
    bool untouched = run.state.round.id.number < 0 && run.state.members.empty() && !Redirected(run);
    if (!Over(run) && !untouched) return;
    for (auto& [id, far] : peers_) {
      if (far.run == &run) far.run = nullptr;
    }
    run.followers->Clear();
    std::string run_id = run.state.given.run_id;
    runs_.erase(run_id);
  }

  void Drained() {
    if (!drained_) return;
    drain_timer_.cancel();
    asio::post(loop_, std::exchange(drained_, nullptr));
  }

  asio::io_context& loop_;
  Options options_;
  bool on_call_ = false;
  std::string taken_endpoint_;
  std::string hidden_;
  PeerId next_id_ = 1;
  std::unordered_map<PeerId, Far> peers_;
  size_t remote_ = 0;
  std::map<std::string, std::shared_ptr<Run>> runs_;
  std::optional<int> wanted_nodes_;     // of each run
  std::map<PeerId, Inspect> awaiting_;  // followers of a run that does not exist yet; no id: of the first to come
  std::function<void(const std::string&, const std::string&)> listener_;
  asio::steady_timer drain_timer_;
  std::function<void()> drained_;
  std::set<std::string> said_refused_;
};

Coordinator::Coordinator(asio::io_context& loop, Options options)
    : impl_(std::make_shared<Impl>(loop, std::move(options))) {}
Coordinator::~Coordinator() { impl_->Stop(); }

PeerId Coordinator::Connect(Peer* peer, bool local) { return impl_->Connect(peer, local); }
void Coordinator::Receive(PeerId id, const NodeMessage& message) { impl_->Receive(id, message); }
void Coordinator::Disconnect(PeerId id) { impl_->Disconnect(id); }
void Coordinator::TakeOver(const std::string& run_id, const StandIn& stand_in) { impl_->TakeOver(run_id, stand_in); }
void Coordinator::TurnAway(const std::string& reason) { impl_->TurnAway(reason); }
void Coordinator::Want(int nodes) { impl_->Want(nodes); }
void Coordinator::Hide(const std::string& why) { impl_->Hide(why); }
void Coordinator::KnowDead(const std::string& run_id, const Gone& gone) { impl_->KnowDead(run_id, gone); }
void Coordinator::Yield(const std::string& run_id, const Redirect& redirect) { impl_->YieldTo(run_id, redirect); }
void Coordinator::TakeEndpoint(const std::string& endpoint) { impl_->TakeEndpoint(endpoint); }
void Coordinator::SetPlace(const std::string& address, bool on_call) { impl_->SetPlace(address, on_call); }
void Coordinator::Drain(Duration limit, std::function<void()> done) { impl_->Drain(limit, std::move(done)); }
Supersede Coordinator::AsStandIn(const std::string& run_id) const { return impl_->AsStandIn(run_id); }
void Coordinator::OnReason(std::function<void(const std::string&, const std::string&)> listener) {
  impl_->OnReason(std::move(listener));
}

}  // namespace muster::rendezvous
