// SPDX-License-Identifier: Apache-2.0
// Who looks at one run: `muster status`, `muster top`, the pages of agents. Decides nothing about the run.
//
// A follower gets the status report at every change. A viewer gets it each second, with the telemetry of the nodes,
// which are asked for it while there is a viewer. Loop thread only; bounded by the nodes that attend.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/membership.h"

namespace muster::rendezvous {

// The rounds of a run, as this coordinator saw them begin and end. Passive; it looks at the state after each event.
class RoundMarks {
 public:
  void Observe(const State& state, TimePoint now);
  std::vector<RoundMark> At(TimePoint now) const;

 private:
  struct Seen {
    RoundMark mark;
    TimePoint began{};
    std::optional<TimePoint> stopping;
  };
  std::deque<Seen> seen_;  // the newest kMostMarks
};

class Followers : public std::enable_shared_from_this<Followers> {
 public:
  struct Sources {
    std::function<const State&()> state;
    std::function<void(PeerId, const CoordinatorMessage&)> send;
    std::function<void()> ask_nodes;  // sends TelemetryWanted to each node that knows it
  };
  // `sources` are called until Clear().
  Followers(boost::asio::io_context& loop, Sources sources);

  // Its first report comes with the next change, or, with telemetry, soon after the first node has told some.
  void Add(PeerId id, bool telemetry);
  void Remove(PeerId id) { followers_.erase(id); }
  bool empty() const { return followers_.empty(); }
  // Forgets everybody, and what the nodes have told.
  std::vector<PeerId> Clear();

  // After each event of the run. `changed`: the followers are told soon.
  void Observe(bool changed);
  // Kept only while somebody looks, or has looked within kTelemetryTime.
  void Tell(const std::string& node, const Telemetry& telemetry);

  StatusReport Report(bool telemetry);

 private:
  struct Follower {
    bool telemetry = false;
  };
  void SendSoon();
  void SendEachSecond();
  void Look();

  boost::asio::steady_timer soon_;
  boost::asio::steady_timer each_second_;
  const Sources sources_;
  std::unordered_map<PeerId, Follower> followers_;
  bool soon_armed_ = false;
  bool each_second_armed_ = false;
  bool viewer_waits_ = false;              // a new one, for the first telemetry
  std::optional<TimePoint> looked_at_;     // when somebody looked last
  std::optional<TimePoint> asked_at_;      // when the nodes were asked last
  std::map<std::string, Telemetry> told_;  // by node
  RoundMarks marks_;
};

}  // namespace muster::rendezvous
