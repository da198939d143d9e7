// SPDX-License-Identifier: Apache-2.0
// A simulated job: agents, coordinators, workers and the network between them, in virtual time, all from one seed.
//
// The agents run the real membership.h and attendance.h, in a model of coordinator.cc and attendant.cc. Faults come at
// random until `calm_`; after that everything heals and the job must end.
//
// Connections are like TCP: bytes arrive in order, or the connection breaks. A cut holds bytes back until it heals. A
// killed process closes its connections, a powered-off one does not. To the other end a closed connection means a dead
// node. So a seed with cuts has neither broken connections nor two living nodes of one name.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/attendance.h"
#include "rendezvous/membership.h"

namespace muster::rendezvous::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = (state_ ^ (state_ >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int Below(int n) { return static_cast<int>(Next() % static_cast<uint64_t>(n)); }
  bool Chance(double p) { return static_cast<double>(Next() >> 11) * 0x1.0p-53 < p; }
  Duration Between(Duration a, Duration b) {
    return a + Duration(static_cast<int64_t>(Next() % static_cast<uint64_t>((b - a).count() + 1)));
  }

 private:
  uint64_t state_;
};

struct Result {
  std::string violation;  // empty: none
  std::vector<std::string> trace;
  int exit_code = -1;  // of the first node that ended with a verdict
  int rounds = 0;
  bool exempt = false;  // a coordinator without memory made a first round again: its rounds compare with no others
};

class World {
 public:
  World(uint64_t seed, bool trace);
  Result Run();

 private:
  struct Conn {
    int from = 0;
    int to = 0;
    bool local = false;
    bool knock = false;           // from a stand-in, to the endpoint
    bool open[2] = {true, true};  // the dialling end, the other end
    PeerId peer = 0;
    uint64_t number = 0;  // of the dial
    struct Item {
      bool fin = false;
      std::variant<NodeMessage, CoordinatorMessage> message;
      TimePoint at;
    };
    std::deque<Item> queue[2];  // [0]: towards `to`
    bool pumping[2] = {false, false};
  };
  struct Process {
    int id = 0;
    std::string name;  // node name; empty: `muster coordinator`
    std::string address;
    bool alive = true;
    bool powered_off = false;
    bool frozen = false;
    TimePoint thawed{};
    bool ended = false;
    std::vector<std::function<void()>> held;  // while frozen
    // coordinator
    State membership;
    std::optional<Redirect> redirect;
    int successor = -1;  // connection of the stand-in that all peers are redirected to
    std::map<PeerId, int> peers;
    std::optional<TimePoint> membership_tick;
    int lineage = -1;  // of membership.round
    bool finished = false;
    // attendant
    bool attends = false;
    attendance::State attendance;
    int conn = -1;
    uint64_t dials = 0;
    std::optional<TimePoint> attendance_tick;
    std::optional<Duration> knocking;
    // workers
    bool workers = false;  // a worker of the round is left
    RoundId round;
    int round_lineage = -1;
    uint64_t life = 0;
    bool stopping = false;
    bool makes_standbys = false;
  };
  struct Lineage {
    RoundId id;
    int parent = -1;
    std::string roster;
    std::vector<Node> nodes;  // of the roster
    size_t seats = 0;
    std::set<int> began;    // processes that started their workers; the round computes only with all of them
    bool amnesiac = false;  // descends from a first round that was not the job's first
  };

  void At(TimePoint when, std::function<void()> what);
  void After(Duration delay, int process, std::function<void(Process&)> what);
  void Note(const std::function<std::string()>& text);
  void Violate(const std::string& what);

  State::Given GivenOf(const Process& process) const;
  int Spawn(const std::string& name, const std::string& address, bool coordinator_only);
  int Listening(const std::string& address) const;
  bool Cut(int from, int to) const;
  bool Apart(int a, int b) const { return Cut(a, b) || Cut(b, a); }

  // network
  int Connect(int from, int to, bool local, bool knock, uint64_t number);
  void Put(int conn, int direction, Conn::Item item);
  void Pump(int conn, int direction);
  void CloseEnd(int conn, int end);
  void Arrive(int conn, int direction, const Conn::Item& item);

  // coordinator
  void CoordinatorHears(Process& process, int conn, const NodeMessage& message);
  void CoordinatorLoses(Process& process, int conn);
  void Step(Process& process, const Event& event);
  void SendOn(Process& process, const Redirect& redirect);
  void CheckStart(Process& process, int parent);
  bool IsTwofold(int lineage) const;  // another round has its id
  void CheckOrder(const Lineage& lineage);

  // attendant and agent
  void Attend(Process& process, const attendance::Event& event);
  void DialOut(Process& process, const std::string& address);
  void ProbeOut(Process& process, const std::string& name, const std::string& address);
  void Knock(Process& process);
  void StartWorkers(Process& process, const Assignment& assignment);
  void EndWorkers(Process& process, int code, bool consequence);
  void Prepare(Process& process, Duration most);  // standby workers
  void StopWorkers(Process& process, std::optional<Duration> grace = std::nullopt);
  void ExitWhenDone(int process, TimePoint since);

  void Kill(Process& process, bool power_off);
  void Fault();
  void CheckOtherRounds(const Process& process);
  bool Related(int a, int b) const;
  bool Whole(int lineage) const;

  const uint64_t seed_;
  const bool tracing_;
  Random random_;
  Random preparations_{~seed_};  // of standby workers
  TimePoint now_{std::chrono::seconds(1000)};
  TimePoint calm_;  // when the faults end
  uint64_t sequence_ = 0;
  struct Entry {
    TimePoint at;
    uint64_t sequence;
    std::shared_ptr<std::function<void()>> what;
    bool operator<(const Entry& other) const { return at != other.at ? at > other.at : sequence > other.sequence; }
  };
  std::priority_queue<Entry> events_;
  std::deque<Process> processes_;
  std::deque<Conn> conns_;
  std::deque<Lineage> lineages_;
  std::map<std::pair<int, RoundId>, int> starts_;  // lineage of the round that a process was told to start
  std::map<std::string, int> side_;                // side of the cut, by address
  bool cut_[2] = {false, false};                   // messages of side 0, of side 1, do not arrive at the other side
  bool cuts_ = false;                              // this seed has cuts
  JobOptions options_;
  std::string endpoint_;
  bool own_coordinator_ = false;
  bool places_known_ = false;  // the first nodes have an index, also in jobs that need none
  bool pods_ = false;          // the nodes are pods: no two live with one name
  bool hurt_ = false;          // any fault at all
  double failure_rate_ = 0;
  int spare_names_ = 0;
  Duration work_{};
  Result result_;
};

}  // namespace muster::rendezvous::sim
