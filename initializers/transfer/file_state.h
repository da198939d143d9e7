// SPDX-License-Identifier: Apache-2.0
// How far a file is that is being fetched: its states, which event leads from one to the next, and how often it may be
// fetched again. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <utility>

namespace muster::initializers {

enum class FileState {
  kNew,
  kLooking,      // its source says which version it has now
  kRechecking,   // an earlier start has fetched it whole: its bytes are read
  kOpening,      // large: its staged file is made, or opened again
  kReceiving,    // its bytes come
  kFinishing,    // all bytes are here: their hash is compared, and they are stored
  kDone,         // it is whole
  kDraining,     // the same version is fetched again, but lent intakes may still write
  kForgetting,   // then: what is noted about its bytes is deleted
  kDrainingOld,  // another version is fetched, but lent intakes may still write
  kDiscarding,   // then: the bytes of the old version are deleted
};
enum class FileEvent { kLook, kRecheck, kOpen, kReceive, kFinish, kKeep, kRestart, kReplace, kDrained };

// The next state; nullopt: the event cannot come in this state.
inline std::optional<FileState> Next(FileState state, FileEvent event) {
  using enum FileState;
  using enum FileEvent;
  static constexpr struct {
    FileEvent event;
    FileState to;
    std::initializer_list<FileState> from;
  } kTransitions[] = {
      {kLook, kLooking, {kNew, kDiscarding}},
      {kRecheck, kRechecking, {kNew, kLooking, kForgetting}},
      {kOpen, kOpening, {kNew, kLooking, kRechecking, kForgetting}},       // from kRechecking: its bytes are wrong
      {kReceive, kReceiving, {kNew, kRechecking, kForgetting, kOpening}},  // only a large file from kOpening
      {kFinish, kFinishing, {kReceiving}},
      {kKeep, kDone, {kRechecking, kFinishing}},
      {kRestart, kDraining, {kReceiving, kFinishing}},     // cut off without a way to go on; a wrong hash
      {kReplace, kDrainingOld, {kReceiving, kFinishing}},  // the source has another version; a hash in doubt
      {kDrained, kForgetting, {kDraining}},
      {kDrained, kDiscarding, {kDrainingOld}},
  };
  for (const auto& [cause, to, from] : kTransitions) {
    if (cause == event && std::find(from.begin(), from.end(), state) != from.end()) return to;
  }
  return std::nullopt;
}

class FileProgress {
 public:
  // `large`: received in ranges. A file that its source was asked about is large, even if it is small by then.
  explicit FileProgress(bool large) : large_(large) {}

  FileState state() const { return state_; }
  bool large() const { return large_; }
  bool draining() const { return state_ == FileState::kDraining || state_ == FileState::kDrainingOld; }
  // Aborts if the event cannot come in this state, which is an error of the caller.
  void Apply(FileEvent event) {
    const auto next = Next(state_, event);
    if (!next) std::abort();
    state_ = *next;
    large_ = large_ || event == FileEvent::kLook;
  }
  // Grows by EndLife(): what was begun in an earlier life has no say any more.
  uint64_t life() const { return life_; }
  void EndLife() { ++life_; }
  // An intake was lent, in any life; it was given back, and writes no more.
  void Lend() { ++lent_; }
  void GiveBack() { --lent_; }
  // True once after each restart, as soon as no intake is lent: applies kDrained.
  bool Drained() {
    const bool drained = draining() && lent_ == 0;
    if (drained) Apply(FileEvent::kDrained);
    return drained;
  }
  // Counts a change at the source. False: there were too many to go on.
  bool Change() { return ++changes_ <= 5; }
  int changes() const { return changes_; }
  // Counts a wrong hash. False: it is the second one.
  bool Mismatch() { return !std::exchange(mismatched_, true); }

 private:
  FileState state_ = FileState::kNew;
  bool large_;
  bool mismatched_ = false;
  uint64_t life_ = 0;
  int lent_ = 0;
  int changes_ = 0;
};

}  // namespace muster::initializers
