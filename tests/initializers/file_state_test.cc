// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/file_state.h"

#include <gtest/gtest.h>

#include <map>

namespace muster::initializers {
namespace {

using enum FileEvent;
using State = FileState;

constexpr State kStates[] = {State::kNew,        State::kLooking,     State::kRechecking, State::kOpening,
                             State::kReceiving,  State::kFinishing,   State::kDone,       State::kDraining,
                             State::kForgetting, State::kDrainingOld, State::kDiscarding};
constexpr FileEvent kEvents[] = {kLook, kRecheck, kOpen, kReceive, kFinish, kKeep, kRestart, kReplace, kDrained};

TEST(FileStateTest, EveryEventInEveryState) {
  const std::map<std::pair<State, FileEvent>, State> expected = {
      {{State::kNew, kLook}, State::kLooking},
      {{State::kNew, kRecheck}, State::kRechecking},
      {{State::kNew, kOpen}, State::kOpening},
      {{State::kNew, kReceive}, State::kReceiving},
      {{State::kLooking, kRecheck}, State::kRechecking},
      {{State::kLooking, kOpen}, State::kOpening},
      {{State::kRechecking, kKeep}, State::kDone},
      {{State::kRechecking, kOpen}, State::kOpening},
      {{State::kRechecking, kReceive}, State::kReceiving},
      {{State::kOpening, kReceive}, State::kReceiving},
      {{State::kReceiving, kFinish}, State::kFinishing},
      {{State::kReceiving, kRestart}, State::kDraining},
      {{State::kReceiving, kReplace}, State::kDrainingOld},
      {{State::kFinishing, kKeep}, State::kDone},
      {{State::kFinishing, kRestart}, State::kDraining},
      {{State::kFinishing, kReplace}, State::kDrainingOld},
      {{State::kDraining, kDrained}, State::kForgetting},
      {{State::kForgetting, kRecheck}, State::kRechecking},
      {{State::kForgetting, kOpen}, State::kOpening},
      {{State::kForgetting, kReceive}, State::kReceiving},
      {{State::kDrainingOld, kDrained}, State::kDiscarding},
      {{State::kDiscarding, kLook}, State::kLooking},
  };
  for (State state : kStates) {
    for (FileEvent event : kEvents) {
      auto row = expected.find({state, event});
      EXPECT_EQ(Next(state, event), row == expected.end() ? std::nullopt : std::optional(row->second))
          << "state " << static_cast<int>(state) << ", event " << static_cast<int>(event);
    }
  }
}

TEST(FileStateTest, AnEventThatCannotComeEndsTheProcess) {
  FileProgress file(true);
  EXPECT_DEATH(file.Apply(kFinish), "");
}

TEST(FileStateTest, NothingIsDeletedWhileAnIntakeIsLent) {
  for (FileEvent again : {kRestart, kReplace}) {
    FileProgress file(true);
    file.Apply(kOpen);
    file.Apply(kReceive);
    file.Lend();
    file.Lend();
    EXPECT_FALSE(file.Drained()) << "it is not fetched again";
    file.Apply(again);
    EXPECT_TRUE(file.draining());
    file.GiveBack();
    EXPECT_FALSE(file.Drained());
    file.GiveBack();
    EXPECT_TRUE(file.Drained());
    EXPECT_EQ(file.state(), again == kRestart ? State::kForgetting : State::kDiscarding);
    EXPECT_FALSE(file.Drained()) << "only once";
  }
}

TEST(FileStateTest, AFileThatItsSourceWasAskedAboutIsLarge) {
  FileProgress file(false);
  file.Apply(kReceive);
  file.Apply(kReplace);
  EXPECT_TRUE(file.Drained());
  EXPECT_FALSE(file.large());
  file.Apply(kLook);
  EXPECT_TRUE(file.large());
}

TEST(FileStateTest, HowOftenAFileIsFetchedAgain) {
  FileProgress file(true);
  for (int change = 1; change <= 5; ++change) EXPECT_TRUE(file.Change()) << change;
  EXPECT_FALSE(file.Change());
  EXPECT_EQ(file.changes(), 6);
  EXPECT_TRUE(file.Mismatch());
  EXPECT_FALSE(file.Mismatch());
}

}  // namespace
}  // namespace muster::initializers
