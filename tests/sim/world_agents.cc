// SPDX-License-Identifier: Apache-2.0
// A simulated process: the real membership and attendance, a model of their drivers, and the workers.
#include <algorithm>

#include "base/text.h"
#include "tests/sim/world.h"

namespace muster::rendezvous::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;
namespace at = attendance;

namespace {

std::string Show(RoundId id) { return fmt::format("{}.{}", id.term, id.number); }

std::string Show(const NodeMessage& message) {
  if (const auto* hello = std::get_if<Hello>(&message)) {
    return fmt::format("Hello({} state {} resume {})", hello->node.incarnation, static_cast<int>(hello->state),
                       hello->resume ? Show(hello->resume->id) : "-");
  }
  if (const auto* ready = std::get_if<Ready>(&message)) return fmt::format("Ready({})", Show(ready->round));
  if (const auto* report = std::get_if<Report>(&message)) {
    return fmt::format("Report({}, {} failures)", Show(report->round), report->failures.size());
  }
  const char* names[] = {"Hello", "Beat",    "Ready",     "Report",  "Leave",
                         "Doubt", "Inspect", "Supersede", "Imports", "Telemetry"};
  return names[message.index()];
}

std::string Show(const CoordinatorMessage& message) {
  if (const auto* start = std::get_if<Start>(&message)) {
    return fmt::format("Start({} rank {} of {}: {})", Show(start->assignment.id), start->assignment.node_rank,
                       start->assignment.node_count, start->assignment.reason);
  }
  if (const auto* stop = std::get_if<Stop>(&message))
    return fmt::format("Stop({}: {})", Show(stop->round), stop->reason);
  if (const auto* finish = std::get_if<Finish>(&message)) {
    return fmt::format("Finish({}: {})", finish->verdict.exit_code, finish->verdict.reason);
  }
  if (const auto* redirect = std::get_if<Redirect>(&message)) {
    return fmt::format("Redirect({} {})", redirect->term, redirect->address);
  }
  if (const auto* refuse = std::get_if<Refuse>(&message)) return fmt::format("Refuse({})", refuse->reason);
  if (const auto* notice = std::get_if<Notice>(&message)) return fmt::format("Notice({})", notice->text);
  if (const auto* welcome = std::get_if<Welcome>(&message)) return fmt::format("Welcome(term {})", welcome->term);
  return message.index() == 1 ? "Beat" : "Status";
}

}  // namespace

// --- coordinator ---

void World::CoordinatorHears(Process& process, int c, const NodeMessage& message) {
  Conn& conn = conns_[static_cast<size_t>(c)];
  auto answer = [&](CoordinatorMessage last) {
    Put(c, 1, Conn::Item{false, std::move(last), {}});
    CloseEnd(c, 1);
  };
  if (!std::holds_alternative<Beat>(message)) {
    Note([&] { return fmt::format("{} -> {}: {}", conn.from, conn.to, Show(message)); });
  }
  if (const auto* supersede = std::get_if<Supersede>(&message)) {
    if (auto redirect = AnswerTo(*supersede, process.redirect, process.address, process.membership)) {
      return answer(*redirect);
    }
    const Redirect redirect{supersede->term, supersede->address};
    if (process.successor >= 0 && process.successor != c) {
      Put(process.successor, 1, Conn::Item{false, CoordinatorMessage(redirect), {}});
      CloseEnd(process.successor, 1);
    }
    SendOn(process, redirect);
    process.successor = c;
    return;
  }
  if (const auto* hello = std::get_if<Hello>(&message)) {
    if (process.redirect && (!hello->resume || hello->resume->id.term <= process.redirect->term)) {
      return answer(*process.redirect);
    }
    process.peers[conn.peer] = c;
    // A coordinator that re-forms the node's round may begin the next one in the same step.
    const State& state = process.membership;
    const bool adopts =
        hello->resume && hello->resume->id > state.round.id &&
        (state.phase == Phase::kReforming || !state.own_round || hello->resume->id.term != state.round.id.term);
    const auto known = adopts ? starts_.find({conn.from, hello->resume->id}) : starts_.end();
    const int before = process.lineage;
    if (known != starts_.end()) process.lineage = known->second;
    Step(process, PeerOpened{conn.peer, *hello});
    if (known != starts_.end() && process.membership.round.id < hello->resume->id) process.lineage = before;
    return;
  }
  if (process.peers.contains(conn.peer)) Step(process, PeerSaid{conn.peer, message});
}

void World::CoordinatorLoses(Process& process, int c) {
  Conn& conn = conns_[static_cast<size_t>(c)];
  if (process.successor == c) {
    process.successor = -1;
    After(seconds(15), process.id, [](Process& p) {
      if (p.successor < 0) p.redirect.reset();
    });
  }
  if (process.peers.erase(conn.peer) > 0) Step(process, PeerClosed{conn.peer});
}

void World::SendOn(Process& process, const Redirect& redirect) {
  Note(
      [&] { return fmt::format("{} sends everyone on to {} (term {})", process.id, redirect.address, redirect.term); });
  process.redirect = redirect;
  auto peers = std::move(process.peers);
  process.peers.clear();
  process.membership = State{};
  process.membership.given = GivenOf(process);
  process.membership.term = redirect.term;
  process.membership_tick.reset();
  process.lineage = -1;
  process.finished = false;
  for (const auto& [peer, c] : peers) {
    Put(c, 1, Conn::Item{false, redirect, {}});
    CloseEnd(c, 1);
  }
}

void World::Step(Process& process, const Event& event) {
  RoundId before = process.membership.round.id;
  int parent = process.lineage;
  Effects effects = Apply(process.membership, event, now_);
  if (!effects.reason.empty()) {
    Note([&] { return fmt::format("   {} decides: {}", process.id, effects.reason); });
  }
  bool started = false;
  for (const auto& action : effects.actions) {
    if (const auto* send = std::get_if<Send>(&action)) {
      if (const auto* start = std::get_if<Start>(&send->message)) {
        if (!started && start->assignment.id != before) {
          started = true;
          CheckStart(process, parent);
        }
      }
    }
  }
  for (auto& action : effects.actions) {
    if (auto* send = std::get_if<Send>(&action)) {
      bool finish = std::holds_alternative<Finish>(send->message);
      if (process.finished && !finish) Violate(fmt::format("{} sent {} after Finish", process.id, Show(send->message)));
      auto found = process.peers.find(send->peer);
      if (found == process.peers.end()) continue;
      Conn& conn = conns_[static_cast<size_t>(found->second)];
      if (const auto* start = std::get_if<Start>(&send->message)) {
        const Assignment& assignment = start->assignment;
        if (!options_.restart_window && assignment.restart_count > options_.max_restarts)
          Violate("restart budget overrun");
        if (process.lineage >= 0) starts_[{conn.from, assignment.id}] = process.lineage;
        if (assignment != AssignmentFor(process.membership.round, assignment.node_rank)) Violate("assignment differs");
      }
      if (!std::holds_alternative<Beat>(send->message)) {
        Note([&] { return fmt::format("        {} <- {}: {}", conn.from, process.id, Show(send->message)); });
      }
      Put(found->second, 1, Conn::Item{false, std::move(send->message), {}});
    } else {
      auto found = process.peers.find(std::get<Close>(action).peer);
      if (found == process.peers.end()) continue;
      CloseEnd(found->second, 1);
      process.peers.erase(found);
    }
  }
  if (process.membership.phase == Phase::kFinished) process.finished = true;
  if (!effects.look_again) {
    process.membership_tick.reset();
  } else if (!process.membership_tick || *effects.look_again < *process.membership_tick) {
    process.membership_tick = effects.look_again;
    TimePoint due = *effects.look_again;
    After(due - now_, process.id, [this, due](Process& p) {
      if (p.membership_tick != due) return;
      p.membership_tick.reset();
      Step(p, Tick{});
    });
  }
}

// A round starts: checks its roster, and that no node of the last round that attends here and stays has workers left.
void World::CheckStart(Process& process, int parent) {
  ++result_.rounds;
  const State& state = process.membership;
  const Round& round = state.round;
  int count = static_cast<int>(round.seats.size());
  if (count < options_.min_nodes || count > options_.max_nodes) Violate(fmt::format("a round of {} nodes", count));
  int rank = 0;
  std::set<std::string> names;
  std::string roster;
  Lineage lineage;
  for (const Seat& seat : round.seats) {
    if (seat.first_rank != rank) Violate("ranks have a gap");
    rank += seat.node.slots;
    if (!names.insert(seat.node.name).second) Violate("a node has two seats");
    roster += seat.node.incarnation + " ";
    lineage.nodes.push_back(seat.node);
  }
  if (rank != round.world_size) Violate("world size differs");
  lineage.id = round.id;
  lineage.parent = parent;
  lineage.roster = roster;
  lineage.seats = round.seats.size();
  lineage.amnesiac = parent >= 0 ? lineages_[static_cast<size_t>(parent)].amnesiac : !lineages_.empty();
  result_.exempt = result_.exempt || lineage.amnesiac;
  CheckOrder(lineage);
  if (parent >= 0 && round.id <= lineages_[static_cast<size_t>(parent)].id) Violate("rounds must grow");
  for (const Lineage& other : lineages_) {
    if (other.id == round.id && other.roster != roster && !lineage.amnesiac && !other.amnesiac) {
      Violate(fmt::format("two rosters of round {}: {}| {}", Show(round.id), other.roster, roster));
    }
  }
  for (const auto& [peer, c] : process.peers) {
    const Conn& conn = conns_[static_cast<size_t>(c)];
    const Process& node = processes_[static_cast<size_t>(conn.from)];
    auto member = state.members.find(node.name);
    bool known = member != state.members.end() && member->second.peer == peer && !member->second.leaving;
    if (node.alive && node.workers && known && conn.open[0] && parent >= 0 && node.round_lineage == parent) {
      Violate(fmt::format("round {} starts while {} has workers of {}", Show(round.id), node.name, Show(node.round)));
    }
  }
  process.lineage = static_cast<int>(lineages_.size());
  lineages_.push_back(lineage);
}

bool World::IsTwofold(int lineage) const {
  if (lineage < 0) return false;
  const Lineage& one = lineages_[static_cast<size_t>(lineage)];
  return std::any_of(lineages_.begin(), lineages_.end(),
                     [&one](const Lineage& other) { return other.id == one.id && other.roster != one.roster; });
}

// Checks the ranks: by index; nodes without one are in torchrun's order in the first round, and survivors keep theirs,
// unless a coordinator without memory made another round with the id of the last one.
void World::CheckOrder(const Lineage& lineage) {
  const std::vector<Node>& nodes = lineage.nodes;
  std::vector<Node> before;
  if (lineage.parent >= 0) before = lineages_[static_cast<size_t>(lineage.parent)].nodes;
  auto place = [&](const Node& node) {
    return std::find_if(before.begin(), before.end(), [&](const Node& n) { return n.incarnation == node.incarnation; });
  };
  const bool keeps = !IsTwofold(lineage.parent);
  for (size_t b = 1; b < nodes.size(); ++b) {
    for (size_t a = 0; a < b; ++a) {
      const int first = nodes[a].index.value_or(99), second = nodes[b].index.value_or(99);
      if (first < second) continue;
      auto was_first = place(nodes[a]), was_second = place(nodes[b]);
      const bool both_survive = keeps && was_first != before.end() && was_second != before.end();
      if (first > second || (before.empty() && !InTorchrunsOrder(nodes[a], nodes[b])) ||
          (both_survive && was_first > was_second)) {
        Violate(fmt::format("rank {} is {} and rank {} is {} in round {}", a, nodes[a].incarnation, b,
                            nodes[b].incarnation, Show(lineage.id)));
      }
    }
  }
}

bool World::Whole(int lineage) const {
  const Lineage& round = lineages_[static_cast<size_t>(lineage)];
  return round.began.size() == round.seats;
}

// True if one lineage descends from the other.
bool World::Related(int a, int b) const {
  if (a < 0 || b < 0) return true;
  if (lineages_[static_cast<size_t>(a)].amnesiac || lineages_[static_cast<size_t>(b)].amnesiac) return true;
  for (int i = a; i >= 0; i = lineages_[static_cast<size_t>(i)].parent) {
    if (i == b) return true;
  }
  for (int i = b; i >= 0; i = lineages_[static_cast<size_t>(i)].parent) {
    if (i == a) return true;
  }
  return false;
}

// --- attendant and agent ---

void World::Attend(Process& process, const at::Event& event) {
  if (!process.alive) return;
  at::Effects effects = at::Apply(process.attendance, event, now_);
  int id = process.id;
  if (!effects.reason.empty()) Note([&] { return fmt::format("   {}: {}", id, effects.reason); });
  for (auto& action : effects.actions) {
    if (const auto* dial = std::get_if<at::Dial>(&action)) {
      DialOut(process, dial->address);
    } else if (auto* tell = std::get_if<at::Send>(&action)) {
      if (process.conn >= 0) Put(process.conn, 0, Conn::Item{false, std::move(tell->message), {}});
    } else if (std::holds_alternative<at::HangUp>(action)) {
      ++process.dials;
      if (process.conn >= 0) CloseEnd(process.conn, 0);
      process.conn = -1;
    } else if (const auto* start = std::get_if<at::StartRound>(&action)) {
      StartWorkers(process, start->assignment);
    } else if (const auto* stop = std::get_if<at::StopRound>(&action)) {
      if (!process.workers && process.round != stop->round) Violate("Stop of a round that never ran");
      StopWorkers(process, stop->grace);
    } else if (const auto* end = std::get_if<at::End>(&action)) {
      Note([&] { return fmt::format("   {} ends with {}: {}", id, end->verdict.exit_code, end->verdict.reason); });
      process.ended = true;
      process.knocking.reset();
      const auto is_cause = [](const WorkerFailure& failure) { return !failure.consequence; };
      const std::vector<WorkerFailure>& failures = end->verdict.failures;
      if (end->verdict.exit_code != 0 && end->verdict.root_cause && end->verdict.root_cause->consequence &&
          std::any_of(failures.begin(), failures.end(), is_cause)) {
        Violate(fmt::format("{} blames a consequence, and its cause is known", id));
      }
      if (result_.exit_code < 0) result_.exit_code = end->verdict.exit_code;
      if (process.workers) StopWorkers(process);
      ExitWhenDone(id, now_);
    } else if (std::holds_alternative<at::PrepareNow>(action)) {
      Prepare(process, seconds(2));
    } else if (const auto* probe = std::get_if<at::Probe>(&action)) {
      ProbeOut(process, probe->name, probe->address);
    } else if (const auto* dead = std::get_if<at::TellDead>(&action)) {
      Note([&] { return fmt::format("   {} knows that {} is gone", id, dead->name); });
      Step(process, Gone{dead->name});
    } else if (const auto* here = std::get_if<at::CoordinateHere>(&action)) {
      Note([&] { return fmt::format("   {} stands in, proof {}", id, here->proof); });
      process.redirect.reset();
      if (const int asked = std::exchange(process.successor, -1); asked >= 0) CloseEnd(asked, 1);
      process.finished = false;
      auto known = starts_.find({id, here->assignment.id});
      process.lineage = known == starts_.end() ? -1 : known->second;
      Step(process, StandIn{here->assignment, options_, here->proof, here->dead, here->known_term});
      if (endpoint_ != process.address) {
        process.knocking = milliseconds(50);
        After(Duration{}, id, [this](Process& p) { Knock(p); });
      }
    }
  }
  if (effects.look_again && (!process.attendance_tick || *effects.look_again < *process.attendance_tick)) {
    process.attendance_tick = effects.look_again;
    TimePoint due = *effects.look_again;
    After(due - now_, id, [this, due](Process& p) {
      if (p.attendance_tick != due) return;
      p.attendance_tick.reset();
      Attend(p, at::Tick{});
    });
  }
}

void World::DialOut(Process& process, const std::string& address) {
  uint64_t number = ++process.dials;
  int id = process.id;
  if (process.conn >= 0) CloseEnd(process.conn, 0);
  process.conn = -1;
  auto fail = [this, id, number](Duration delay, at::Loss loss) {
    After(delay, id, [this, number, loss](Process& p) {
      if (p.dials == number) Attend(p, at::Disconnected{loss, "cannot connect"});
    });
  };
  if (address.empty()) {
    After(Duration{}, id, [this, number](Process& p) {
      if (p.dials != number) return;
      p.conn = Connect(p.id, p.id, true, false, number);
      Attend(p, at::Connected{});
    });
    return;
  }
  After(random_.Between(milliseconds(1), milliseconds(20)), id, [this, number, address, fail](Process& p) {
    if (p.dials != number) return;
    int target = Listening(address);
    if (target < 0) {
      bool off = false;
      for (const Process& other : processes_) {
        if (other.address == address) off = other.powered_off;
      }
      bool cut = false;
      for (const Process& other : processes_) cut = cut || (other.address == address && Apart(p.id, other.id));
      return off || cut ? fail(seconds(3), at::Loss::kUnreachable) : fail(milliseconds(1), at::Loss::kRefused);
    }
    if (Apart(p.id, target) || processes_[static_cast<size_t>(target)].frozen)
      return fail(seconds(3), at::Loss::kUnreachable);
    p.conn = Connect(p.id, target, false, false, number);
    Attend(p, at::Connected{});
  });
}

// The probe's answer comes when the target dies, at the latest when a server would close a silent connection.
void World::ProbeOut(Process& process, const std::string& name, const std::string& address) {
  After(random_.Between(milliseconds(1), milliseconds(20)), process.id, [this, name, address](Process& p) {
    int target = Listening(address);
    auto answer = [this, name](Duration delay, int id, at::Loss loss) {
      After(delay, id, [this, name, loss](Process& q) { Attend(q, at::Probed{name, loss}); });
    };
    bool off = false;
    bool cut = false;
    for (const Process& other : processes_) {
      off = off || (other.address == address && other.powered_off);
      cut = cut || (other.address == address && Apart(p.id, other.id));
    }
    if (cut || (target < 0 && off)) return answer(seconds(3), p.id, at::Loss::kUnreachable);
    if (target < 0) return answer(milliseconds(1), p.id, at::Loss::kRefused);
    answer(random_.Between(milliseconds(1), seconds(10)), p.id, at::Loss::kClosed);
  });
}

void World::Knock(Process& process) {
  if (!process.knocking) return;
  Duration pause = *process.knocking;
  int target = Listening(endpoint_);
  if (target < 0 || Apart(process.id, target) || processes_[static_cast<size_t>(target)].frozen) {
    process.knocking = std::min<Duration>(pause * 2, seconds(2));
    After(pause, process.id, [this](Process& p) { Knock(p); });
    return;
  }
  process.knocking = milliseconds(50);
  int c = Connect(process.id, target, false, true, 0);
  const bool waits = process.membership.phase == Phase::kReforming;
  Put(c, 0, Conn::Item{false, NodeMessage(Supersede{"job", process.membership.term, process.address, waits}), {}});
}

// A round is at work when all its nodes have begun. Then no node has workers of another one, which may write to the
// same checkpoint, unless it is leaving: it writes its last. A frozen node cannot stop anything.
void World::CheckOtherRounds(const Process& process) {
  if (!cuts_ || process.round_lineage < 0 || !Whole(process.round_lineage)) return;
  for (const Process& other : processes_) {
    const bool works = other.alive && other.workers && !other.attendance.left && !other.ended;
    const bool frozen = other.frozen || now_ < other.thawed + options_.heartbeat_timeout / 5;
    if (!works || frozen || other.round_lineage < 0 || other.round_lineage == process.round_lineage) continue;
    const bool exempt = lineages_[static_cast<size_t>(other.round_lineage)].amnesiac ||
                        lineages_[static_cast<size_t>(process.round_lineage)].amnesiac;
    if (exempt) continue;
    Violate(fmt::format("round {} is at work while {} has workers of {}", Show(process.round), other.name,
                        Show(other.round)));
  }
}

void World::Prepare(Process& process, Duration most) {
  After(preparations_.Between(Duration{}, most), process.id, [this](Process& p) { Attend(p, at::Prepares{false}); });
}

void World::StartWorkers(Process& process, const Assignment& assignment) {
  if (process.workers) Violate(fmt::format("{} starts a round with workers left", process.name));
  if (assignment.id <= process.round) Violate("a node went back in rounds");
  auto known = starts_.find({process.id, assignment.id});
  process.round_lineage = known == starts_.end() ? -1 : known->second;
  process.workers = true;
  process.stopping = false;
  process.round = assignment.id;
  uint64_t life = ++process.life;
  Note([&] { return fmt::format("   {} runs round {}", process.id, Show(assignment.id)); });
  if (process.round_lineage >= 0) lineages_[static_cast<size_t>(process.round_lineage)].began.insert(process.id);
  for (const Process& other : processes_) {
    if (!other.alive || !other.workers || Related(process.round_lineage, other.round_lineage)) continue;
    if (!Whole(process.round_lineage) || !Whole(other.round_lineage)) continue;
    Violate(fmt::format("two halves: {} runs {}, {} runs {}", process.name, Show(process.round), other.name,
                        Show(other.round)));
  }
  CheckOtherRounds(process);
  if (process.makes_standbys) {
    After(Duration{}, process.id, [this](Process& p) { Attend(p, at::Prepares{true}); });
    Prepare(process, seconds(20));
  }
  bool fails = now_ < calm_ && random_.Chance(failure_rate_);
  Duration lives = fails ? random_.Between(milliseconds(1), work_)
                         : work_ + random_.Between(milliseconds(0), random_.Chance(0.2) ? seconds(30) : seconds(1));
  int code = fails ? (random_.Chance(0.5) ? 1 : 137) : 0;
  After(lives, process.id, [this, life, code](Process& p) {
    if (p.life == life && p.workers && !p.stopping) EndWorkers(p, code, false);
  });
}

void World::EndWorkers(Process& process, int code, bool consequence) {
  Report report;
  report.round = process.round;
  report.lived = seconds(1);
  uint64_t life = process.life;
  process.stopping = true;
  if (code != 0) {
    WorkerFailure failure;
    failure.node = process.name;
    failure.exit_code = code;
    failure.consequence = consequence;
    report.failures.push_back(failure);
    // Workers of other nodes may fail as a consequence.
    for (Process& other : processes_) {
      if (!other.alive || !other.workers || other.round != process.round || other.id == process.id) continue;
      if (!random_.Chance(0.5)) continue;
      uint64_t theirs = other.life;
      After(random_.Between(milliseconds(1), seconds(2)), other.id, [this, theirs](Process& p) {
        if (p.life == theirs && p.workers && !p.stopping) EndWorkers(p, 1, true);
      });
    }
  } else {
    process.workers = false;
  }
  Attend(process, at::WorkersEnded{report});
  if (code == 0 || process.life != life) return;
  After(random_.Between(milliseconds(0), random_.Chance(0.1) ? seconds(20) : milliseconds(300)), process.id,
        [this, life](Process& p) {
          if (p.life != life || !p.workers) return;
          p.workers = false;
          Attend(p, at::NoWorkerLeft{2});
        });
}

void World::StopWorkers(Process& process, std::optional<Duration> grace) {
  process.stopping = true;
  uint64_t life = process.life;
  double slow = process.attendance.left ? 0.5 : 0.1;  // chance of a slow end: a leaving node writes a checkpoint
  const Duration took = random_.Between(milliseconds(0), random_.Chance(slow) ? seconds(20) : milliseconds(300));
  After(std::min(took, grace.value_or(took)), process.id, [this, life](Process& p) {
    if (p.life != life) return;
    p.workers = false;
    if (p.attendance.doing == NodeState::kIdle) return;
    std::vector<WorkerFailure> late;
    if (random_.Chance(0.1)) {  // a worker had written an error of its own, or fails by the stop
      late.emplace_back();
      late[0].node = p.name;
      late[0].exit_code = 1;
      late[0].late = true;
      late[0].consequence = random_.Chance(0.5);
    }
    Attend(p, at::NoWorkerLeft{2, {}, std::move(late)});
  });
}

// An agent ends when its workers are gone and, if it coordinates a finished job, the others have hung up (5 s at most).
void World::ExitWhenDone(int id, TimePoint since) {
  After(milliseconds(20), id, [this, id, since](Process& p) {
    bool others = false;
    for (const auto& [peer, c] : p.peers) others = others || !conns_[static_cast<size_t>(c)].local;
    bool patient = now_ < since + seconds(5) && p.finished;
    if (p.workers || (others && patient)) return ExitWhenDone(id, since);
    Kill(p, false);
  });
}

}  // namespace muster::rendezvous::sim
