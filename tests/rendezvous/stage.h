// SPDX-License-Identifier: Apache-2.0
// A harness for membership.h: named nodes with streams, virtual time, and the messages that each node was sent.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "base/version.h"
#include "rendezvous/membership.h"

namespace muster::rendezvous {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline JobOptions Job(int min, int max, int restarts = 0) {
  JobOptions options;
  options.min_nodes = min;
  options.max_nodes = max;
  options.max_restarts = restarts;
  return options;
}

inline WorkerFailure Failure(int code, int rank = 0, bool consequence = false) {
  WorkerFailure failure;
  failure.rank = rank;
  failure.exit_code = code;
  failure.signal = code > 128 && code < 193 ? code - 128 : 0;
  failure.consequence = consequence;
  return failure;
}

class Stage {
 public:
  explicit Stage(JobOptions options) : options(options) { state.given.run_id = "job"; }

  JobOptions options;
  State state;
  TimePoint now{seconds(1000)};
  std::string reason;  // of the last event that gave one
  std::vector<std::string> refusals;
  std::optional<TimePoint> look_again;
  std::map<PeerId, std::vector<CoordinatorMessage>> told;
  std::set<PeerId> hung_up;
  std::map<std::string, PeerId> peers;  // the last stream of each node
  std::map<std::string, Hello> hellos;
  PeerId next_peer = 1;

  void Do(const Event& event) {
    Effects effects = Apply(state, event, now);
    if (!effects.reason.empty()) reason = effects.reason;
    look_again = effects.look_again;
    refusals.insert(refusals.end(), effects.refusals.begin(), effects.refusals.end());
    for (auto& action : effects.actions) {
      if (auto* send = std::get_if<Send>(&action)) {
        told[send->peer].push_back(send->message);
      } else {
        hung_up.insert(std::get<Close>(action).peer);
      }
    }
  }

  Hello Greeting(const std::string& name, int slots = 2) {
    Hello hello;
    hello.protocol = kRendezvousProtocol;
    hello.version = "test";
    hello.run_id = "job";
    hello.options = options;
    hello.node.name = name;
    hello.node.incarnation = name + "-1";
    hello.node.host = "host-" + name;
    hello.node.slots = slots;
    hello.node.store_host = name;
    hello.node.store_port = 1;
    return hello;
  }
  PeerId Join(const Hello& hello) {
    PeerId peer = next_peer++;
    peers[hello.node.name] = peer;
    hellos[hello.node.name] = hello;
    Do(PeerOpened{peer, hello});
    return peer;
  }
  PeerId Join(const std::string& name) { return Join(Greeting(name)); }
  // A new stream of a node that was in `assignment`.
  PeerId Return(const std::string& name, NodeState doing, const Assignment& assignment,
                std::optional<Report> report = std::nullopt) {
    Hello hello = hellos.contains(name) ? hellos[name] : Greeting(name);
    hello.state = doing;
    hello.resume = assignment;
    hello.report = std::move(report);
    return Join(hello);
  }
  void Says(const std::string& name, const NodeMessage& message) { Do(PeerSaid{peers.at(name), message}); }
  void Beats(const std::string& name) { Says(name, Beat{}); }
  void Ready(const std::string& name, std::optional<int64_t> progress = std::nullopt) {
    Says(name, rendezvous::Ready{RoundOf(name), 2, progress});
  }
  void Succeeds(const std::string& name) { Says(name, Report{state.round.id, {}, seconds(5), {}}); }
  void Fails(const std::string& name, int code, bool consequence = false, Duration lived = seconds(5),
             std::optional<int64_t> progress = std::nullopt) {
    WorkerFailure failure = Failure(code, state.round.RankOf(name).value_or(0) * 2, consequence);
    failure.node = name;
    failure.host = "host-" + name;
    Says(name, Report{state.round.id, {failure}, lived, progress});
  }
  void Leaves(const std::string& name) { Says(name, Leave{"preempted", LeaveCause::kPreempted}); }
  void Closes(const std::string& name) { Do(PeerClosed{peers.at(name)}); }
  // Lets `duration` pass. Tick comes exactly at look_again. `beating` nodes send a beat every second.
  void Wait(Duration duration, std::vector<std::string> beating = {}) {
    TimePoint end = now + duration;
    TimePoint beat = now;
    while (true) {
      std::optional<TimePoint> next = end;
      if (look_again && *look_again < *next) next = std::max(now, *look_again);
      if (!beating.empty() && beat + seconds(1) <= *next) {
        now = std::max(now, beat + seconds(1));
        beat = now;
        for (const auto& name : beating) Beats(name);
        continue;
      }
      now = std::max(now, *next);
      if (now >= end && !(look_again && *look_again <= now)) break;
      auto before = look_again;
      Do(Tick{});
      if (now >= end && look_again == before) break;
    }
  }

  // The messages to `name` on its last stream.
  template <typename T>
  std::vector<T> Told(const std::string& name) {
    return ToldPeer<T>(peers.at(name));
  }
  template <typename T>
  std::vector<T> ToldPeer(PeerId peer) {
    std::vector<T> found;
    for (const auto& message : told[peer]) {
      if (const auto* match = std::get_if<T>(&message)) found.push_back(*match);
    }
    return found;
  }
  bool Started(const std::string& name, int64_t number) {
    for (const auto& start : Told<Start>(name)) {
      if (start.assignment.id.number == number) return true;
    }
    return false;
  }
  Assignment Seat(const std::string& name) { return Told<Start>(name).back().assignment; }
  bool Stopped(const std::string& name) { return !Told<Stop>(name).empty(); }
  RoundId RoundOf(const std::string& name) { return state.members.at(name).runs; }
  std::optional<Verdict> End(const std::string& name) {
    auto all = Told<Finish>(name);
    return all.empty() ? std::nullopt : std::optional(all.back().verdict);
  }
  std::string LastNotice(const std::string& name) {
    auto all = Told<Notice>(name);
    return all.empty() ? "" : all.back().text;
  }
  std::string Refusal(PeerId peer) {
    auto all = ToldPeer<Refuse>(peer);
    return all.empty() ? "" : all.back().reason;
  }
  // "a b c" by node rank.
  std::string Roster() {
    std::vector<std::string> names;
    for (const auto& seat : state.round.seats) names.push_back(seat.node.name);
    return Join_(names);
  }
  static std::string Join_(const std::vector<std::string>& names) { return muster::Join(names, " "); }
};

}  // namespace muster::rendezvous
