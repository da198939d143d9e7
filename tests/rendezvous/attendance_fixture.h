// SPDX-License-Identifier: Apache-2.0
// A harness for attendance.h: one node, virtual time, and what the node said and did at the last event.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rendezvous/attendance.h"

namespace muster::rendezvous::attendance {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Attendance : public testing::Test {
 protected:
  Attendance() {
    state.run_id = "job";
    state.endpoint = "a:1";
    state.self.name = "b";
    state.self.incarnation = "b-1";
    state.self.control_address = "b:1";
    state.options.min_nodes = 1;
    state.options.max_nodes = 3;
  }
  void Do(const Event& event) {
    Effects effects = Apply(state, event, now);
    look_again = effects.look_again;
    actions = effects.actions;
    for (const auto& action : actions) {
      if (const auto* say = std::get_if<Say>(&action)) said.push_back(say->text);
      if (const auto* end = std::get_if<End>(&action)) ends.push_back(end->verdict);
    }
  }
  void Hear(CoordinatorMessage message) { Do(Heard{std::move(message)}); }
  template <typename T>
  std::vector<T> All() {
    std::vector<T> found;
    for (const auto& action : actions) {
      if (const auto* match = std::get_if<T>(&action)) found.push_back(*match);
    }
    return found;
  }
  template <typename T>
  std::vector<T> Told() {
    std::vector<T> found;
    for (const auto& tell : All<Send>()) {
      if (const auto* match = std::get_if<T>(&tell.message)) found.push_back(*match);
    }
    return found;
  }
  // The only beat, without its stamp.
  Beat ToldBeat() {
    Beat beat = Told<Beat>().at(0);
    EXPECT_EQ(beat.stamp, now.time_since_epoch().count());
    beat.stamp = 0;
    return beat;
  }
  std::string Dialled() {
    auto dials = All<Dial>();
    return dials.empty() ? "none" : dials.back().address;
  }
  // Moves the time to the next deadline.
  void Next() {
    ASSERT_TRUE(look_again);
    now = std::max(now, *look_again);
    Do(Tick{});
  }
  Assignment Round(int64_t number, uint64_t term = 1) {
    Assignment assignment;
    assignment.id = {term, number};
    assignment.node_count = 3;
    assignment.node_rank = 1;
    assignment.seat.node = state.self;
    assignment.coordinator_node = "a";
    assignment.successors = {{0, "a", "a:1"}, {1, "x", "x:1"}, {2, "b", "b:1"}};
    return assignment;
  }
  void Attend() {
    Do(Begin{});
    Do(Connected{});
    Hear(Welcome{1, seconds(5), "test"});
  }
  void Run(int64_t number = 0) {
    Attend();
    Hear(Start{Round(number)});
  }

  State state;
  TimePoint now{seconds(1000)};
  std::optional<TimePoint> look_again;
  std::vector<Action> actions;
  std::vector<std::string> said;
  std::vector<Verdict> ends;
};

}  // namespace muster::rendezvous::attendance
