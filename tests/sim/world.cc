// SPDX-License-Identifier: Apache-2.0
// The simulation's time, processes, network and faults.
#include "tests/sim/world.h"

#include <algorithm>

#include "base/text.h"
#include "base/version.h"

namespace muster::rendezvous::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;
namespace at = attendance;

World::World(uint64_t seed, bool trace) : seed_(seed), tracing_(trace), random_(seed) {}

void World::At(TimePoint when, std::function<void()> what) {
  events_.push({std::max(when, now_), ++sequence_, std::make_shared<std::function<void()>>(std::move(what))});
}

// Runs `what` in a process after `delay`: not at all if the process is dead, and later if it is frozen.
void World::After(Duration delay, int id, std::function<void(Process&)> what) {
  At(now_ + delay, [this, id, what = std::move(what)] {
    Process& process = processes_[static_cast<size_t>(id)];
    if (!process.alive) return;
    if (process.frozen) {
      process.held.push_back([this, id, what] {
        Process& thawed = processes_[static_cast<size_t>(id)];
        if (thawed.alive) what(thawed);
      });
      return;
    }
    what(process);
  });
}

void World::Note(const std::function<std::string()>& text) {
  if (!tracing_) return;
  double t = std::chrono::duration<double>(now_.time_since_epoch()).count() - 1000;
  result_.trace.push_back(fmt::format("{:9.3f} {}", t, text()));
}

void World::Violate(const std::string& what) {
  if (!result_.violation.empty()) return;
  result_.violation = what;
  Note([&] { return "VIOLATION: " + what; });
}

// --- processes ---

State::Given World::GivenOf(const Process& process) const {
  State::Given given;
  given.run_id = "job";
  given.self_node = process.name;
  given.on_call = process.address != endpoint_;
  given.in_pods = pods_;
  return given;
}

int World::Spawn(const std::string& name, const std::string& address, bool coordinator_only) {
  int id = static_cast<int>(processes_.size());
  processes_.emplace_back();
  Process& process = processes_.back();
  process.id = id;
  process.name = name;
  process.address = address;
  process.membership.given = GivenOf(process);
  Note([&] { return fmt::format("process {} is {} at {}", id, name.empty() ? "the coordinator" : name, address); });
  if (coordinator_only) return id;
  process.attends = true;
  at::State& state = process.attendance;
  state.run_id = "job";
  state.endpoint = endpoint_ == address ? "" : endpoint_;
  state.self.name = name;
  state.self.incarnation = fmt::format("{}#{}", name, id);
  state.self.slots = 1 + id % 3;
  state.self.control_address = address;
  state.self.store_host = name;
  state.self.store_port = 1;
  state.options = options_;
  state.seed = seed_ + static_cast<uint64_t>(id);
  if (options_.indexed || (places_known_ && name[0] == 'n')) state.self.index = name[1] - '0';
  state.self.address = fmt::format("{}{}", '9' - name[1], name);  // another order than that of the names
  state.self.pid = id;
  After(random_.Between(milliseconds(0), milliseconds(200)), id, [this](Process& p) { Attend(p, at::Begin{}); });
  process.makes_standbys = state.preparing = preparations_.Chance(0.5);
  if (process.makes_standbys) Prepare(process, seconds(20));
  return id;
}

int World::Listening(const std::string& address) const {
  for (size_t i = processes_.size(); i-- > 0;) {
    if (processes_[i].address == address && processes_[i].alive) return static_cast<int>(i);
  }
  return -1;
}

bool World::Cut(int from, int to) const {
  if ((!cut_[0] && !cut_[1]) || from == to) return false;
  auto side = [&](int id) {
    auto found = side_.find(processes_[static_cast<size_t>(id)].address);
    return found == side_.end() ? 0 : found->second;
  };
  return side(from) != side(to) && cut_[side(from)];
}

void World::Kill(Process& process, bool power_off) {
  if (!process.alive) return;
  Note([&] { return fmt::format("process {} ({}) {}", process.id, process.name, power_off ? "loses power" : "dies"); });
  process.alive = false;
  process.powered_off = power_off;
  process.workers = false;
  process.held.clear();
  if (power_off) {  // only gRPC's keepalive notices this on a stand-in's connection to the endpoint
    int id = process.id;
    At(now_ + seconds(20), [this, id] {
      for (size_t c = 0; c < conns_.size(); ++c) {
        if (conns_[c].from == id && conns_[c].knock && conns_[c].open[1]) {
          conns_[c].open[1] = false;
          Process& other = processes_[static_cast<size_t>(conns_[c].to)];
          if (other.alive) CoordinatorLoses(other, static_cast<int>(c));
        }
      }
    });
    return;
  }
  for (size_t c = 0; c < conns_.size(); ++c) {
    if (conns_[c].from == process.id && conns_[c].open[0]) CloseEnd(static_cast<int>(c), 0);
    if (conns_[c].to == process.id && conns_[c].open[1]) CloseEnd(static_cast<int>(c), 1);
  }
}

// --- network ---

int World::Connect(int from, int to, bool local, bool knock, uint64_t number) {
  conns_.emplace_back();
  Conn& conn = conns_.back();
  conn.from = from;
  conn.to = to;
  conn.local = local;
  conn.knock = knock;
  conn.number = number;
  conn.peer = conns_.size();
  return static_cast<int>(conns_.size()) - 1;
}

void World::Put(int c, int direction, Conn::Item item) {
  Conn& conn = conns_[static_cast<size_t>(c)];
  Duration delay =
      conn.local ? Duration{} : random_.Between(milliseconds(1), milliseconds(random_.Chance(0.05) ? 2000 : 20));
  item.at = now_ + delay;
  conn.queue[direction].push_back(std::move(item));
  if (conn.pumping[direction]) return;
  conn.pumping[direction] = true;
  At(now_ + delay, [this, c, direction] { Pump(c, direction); });
}

void World::Pump(int c, int direction) {
  Conn& conn = conns_[static_cast<size_t>(c)];
  int target = direction == 0 ? conn.to : conn.from;
  Process& process = processes_[static_cast<size_t>(target)];
  conn.pumping[direction] = false;
  auto again = [&](Duration delay) {
    conn.pumping[direction] = true;
    At(now_ + delay, [this, c, direction] { Pump(c, direction); });
  };
  while (!conn.queue[direction].empty()) {
    if (direction == 0 ? Cut(conn.from, conn.to) : Cut(conn.to, conn.from)) return again(milliseconds(500));
    if (conn.queue[direction].front().at > now_) return again(conn.queue[direction].front().at - now_);
    if (process.alive && process.frozen) return again(milliseconds(500));
    Conn::Item item = std::move(conn.queue[direction].front());
    conn.queue[direction].pop_front();
    if (!process.alive) {
      // A machine that is back at the same address resets this connection.
      if (!process.powered_off || Listening(process.address) >= 0) {
        if (conn.open[direction == 0 ? 1 : 0]) CloseEnd(c, direction == 0 ? 1 : 0);
      }
      continue;
    }
    Arrive(c, direction, item);
  }
}

void World::CloseEnd(int c, int end) {
  Conn& conn = conns_[static_cast<size_t>(c)];
  if (!conn.open[end]) return;
  conn.open[end] = false;
  Put(c, end, Conn::Item{true, {}, {}});
}

void World::Arrive(int c, int direction, const Conn::Item& item) {
  Conn& conn = conns_[static_cast<size_t>(c)];
  int end = direction == 0 ? 1 : 0;
  if (!conn.open[end]) return;
  Process& process = processes_[static_cast<size_t>(direction == 0 ? conn.to : conn.from)];
  if (item.fin) {
    conn.open[end] = false;
    Put(c, end, Conn::Item{true, {}, {}});
    if (direction == 0) {
      CoordinatorLoses(process, c);
    } else if (conn.knock) {
      if (process.knocking) After(*process.knocking, process.id, [this](Process& p) { Knock(p); });
    } else if (process.conn == c) {
      process.conn = -1;
      Attend(process, at::Disconnected{at::Loss::kClosed, "closed"});
    }
  } else if (direction == 0) {
    CoordinatorHears(process, c, std::get<NodeMessage>(item.message));
  } else if (conn.knock) {
    const auto* redirect = std::get_if<Redirect>(&std::get<CoordinatorMessage>(item.message));
    if (redirect && redirect->term > process.membership.term) SendOn(process, *redirect);
  } else if (process.conn == c) {
    Attend(process, at::Heard{std::get<CoordinatorMessage>(item.message)});
  }
}

// --- faults ---

void World::Fault() {
  std::vector<int> living;
  for (const Process& process : processes_) {
    if (process.alive) living.push_back(process.id);
  }
  if (living.empty()) return;
  hurt_ = true;
  Process& victim =
      processes_[static_cast<size_t>(living[static_cast<size_t>(random_.Below(static_cast<int>(living.size())))])];
  auto back = [this](const Process& gone) {
    std::string name = gone.name;
    std::string address = gone.address;
    bool only = !gone.attends;
    At(now_ + random_.Between(milliseconds(10), seconds(40)), [this, name, address, only] {
      if (Listening(address) >= 0) return;
      // A replaced pod has a new name, but the same index (the second letter).
      bool renamed = options_.indexed && !only && address != endpoint_ && random_.Chance(0.4);
      std::string now = renamed ? name + "'" : name;
      Spawn(now, renamed ? now : address, only);
    });
  };
  int kind = random_.Below(12);
  // The other end takes a broken connection, or a second node of that name, for a death. Together with a cut this may
  // be wrong, and the rendezvous does not promise to handle that (see world.h).
  if ((cuts_ && (kind == 5 || kind == 6 || kind == 9)) || (pods_ && kind == 9)) kind = 4;
  switch (kind) {
    case 0:
    case 1: {  // SIGKILL of an agent
      Kill(victim, false);
      if (random_.Chance(0.6)) back(victim);
      break;
    }
    case 2: {
      Kill(victim, true);
      if (random_.Chance(0.6)) back(victim);
      break;
    }
    case 3: {  // SIGSTOP
      Note([&] { return fmt::format("process {} is frozen", victim.id); });
      victim.frozen = true;
      int id = victim.id;
      At(now_ + random_.Between(milliseconds(100), seconds(30)), [this, id] {
        Process& p = processes_[static_cast<size_t>(id)];
        if (!p.alive) return;
        Note([&] { return fmt::format("process {} goes on", id); });
        p.frozen = false;
        p.thawed = now_;
        auto held = std::move(p.held);
        p.held.clear();
        for (auto& what : held) what();
      });
      break;
    }
    case 4: {  // a cut
      if (!cuts_) break;
      side_.clear();
      for (const Process& process : processes_) side_[process.address] = random_.Below(2);
      int way = random_.Below(4);
      cut_[0] = way != 1;
      cut_[1] = way != 0;
      Note([&] {
        std::string text = way == 0 ? "cut from side 0:" : way == 1 ? "cut from side 1:" : "cut:";
        for (const auto& [address, side] : side_) text += fmt::format(" {}={}", address, side);
        return text;
      });
      At(now_ + random_.Between(seconds(1), seconds(60)), [this] {
        if (cut_[0] || cut_[1]) Note([] { return "the cut heals"; });
        cut_[0] = cut_[1] = false;
      });
      break;
    }
    case 5:
    case 6: {  // a connection breaks
      if (conns_.empty()) break;
      size_t from = conns_.size() > 8 ? conns_.size() - 8 : 0;
      int c = static_cast<int>(from) + random_.Below(static_cast<int>(conns_.size() - from));
      Conn& conn = conns_[static_cast<size_t>(c)];
      if (conn.local || !conn.open[0] || !conn.open[1]) break;
      Note([&] { return fmt::format("the connection {} - {} breaks", conn.from, conn.to); });
      for (int direction : {0, 1}) {
        conn.queue[direction].clear();
        Put(c, direction, Conn::Item{true, {}, {}});
      }
      break;
    }
    case 7: {  // SIGTERM
      int id = victim.id;
      if (victim.attends && !victim.ended)
        After(Duration{}, id, [this](Process& p) { Attend(p, at::Going{"preempted", LeaveCause::kPreempted}); });
      break;
    }
    case 8: {  // a new node
      if (options_.indexed || spare_names_ > 3) break;
      std::string name = fmt::format("s{}", spare_names_++);
      Spawn(name, name, false);
      break;
    }
    case 9: {  // a second living node with the same name
      if (!victim.attends || victim.address == endpoint_) break;
      int id = Spawn(victim.name, victim.name + "-twin" + fmt::format("{}", processes_.size()), false);
      processes_[static_cast<size_t>(id)].attendance.may_stand_in = random_.Chance(0.5);
      break;
    }
    case 10: {  // a worker fails
      int id = victim.id;
      After(Duration{}, id, [this](Process& p) {
        if (p.workers && !p.stopping) EndWorkers(p, random_.Chance(0.5) ? 1 : 139, false);
      });
      break;
    }
    case 11: {  // the wanted number of nodes changes; some processes hear of it later
      const int nodes = 1 + random_.Below(options_.max_nodes + 1);
      for (const Process& process : processes_) {
        After(random_.Between(milliseconds(0), seconds(5)), process.id,
              [this, nodes](Process& p) { Step(p, Wanted{nodes}); });
      }
      break;
    }
  }
}

Result World::Run() {
  int nodes = 1 + random_.Below(5);
  options_.max_nodes = nodes;
  options_.min_nodes = 1 + random_.Below(nodes);
  if (random_.Chance(0.2)) options_.max_nodes = nodes + 1;
  options_.indexed = random_.Chance(0.15);
  if (options_.indexed) options_.min_nodes = options_.max_nodes = nodes;
  options_.max_restarts = random_.Below(6);
  options_.policy = static_cast<RestartPolicy>(random_.Below(4));
  if (random_.Chance(0.5)) options_.policy = RestartPolicy::kOnFailure;
  options_.scale_up = random_.Chance(0.8) ? ScaleUp::kNow : ScaleUp::kAtRestart;
  options_.join_timeout = seconds(120);
  options_.last_call = seconds(5);
  options_.heartbeat_timeout = random_.Chance(0.5) ? seconds(15) : seconds(6);
  places_known_ = seed_ % 4 == 0;
  pods_ = seed_ % 4 == 1;
  work_ = random_.Between(milliseconds(100), seconds(30));
  failure_rate_ = random_.Chance(0.5) ? 0.15 : 0;
  own_coordinator_ = random_.Chance(0.3);
  cuts_ = random_.Chance(0.4);
  endpoint_ = own_coordinator_ ? "C" : "n0";
  calm_ = now_ + seconds(60);
  if (own_coordinator_) Spawn("", "C", true);
  for (int i = 0; i < nodes; ++i) {
    std::string name = fmt::format("n{}", i);
    At(now_ + random_.Between(milliseconds(0), random_.Chance(0.8) ? milliseconds(500) : seconds(20)),
       [this, name] { Spawn(name, name, false); });
  }
  int faults = random_.Chance(0.1) ? 0 : 1 + random_.Below(6);
  for (int i = 0; i < faults; ++i) {
    At(now_ + random_.Between(milliseconds(0), seconds(60)), [this] { Fault(); });
  }
  TimePoint end = calm_ + seconds(600);
  while (!events_.empty() && events_.top().at <= end && result_.violation.empty()) {
    Entry entry = events_.top();
    events_.pop();
    now_ = entry.at;
    (*entry.what)();
    bool busy = false;
    if (now_ > calm_ && (sequence_ & 15) == 0) {
      for (const Process& process : processes_) busy = busy || (process.alive && process.attends);
      if (!busy) break;
    }
  }
  for (const Process& process : processes_) {
    if (process.alive && process.attends)
      Violate(fmt::format("{} ({}) never came to an end", process.name, process.id));
  }
  if (!hurt_ && failure_rate_ == 0 && nodes >= options_.min_nodes && result_.exit_code != 0 &&
      options_.policy != RestartPolicy::kAlways) {
    Violate(fmt::format("an undisturbed job ended with {}", result_.exit_code));
  }
  return std::move(result_);
}

}  // namespace muster::rendezvous::sim
