// SPDX-License-Identifier: Apache-2.0
// When a probe runs, and what its results mean: row by row.
#include "local/pod/probe_rule.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace muster::local {
namespace {

using std::chrono::seconds;
using Kind = ProbeAnswer::Kind;

constexpr TimePoint kBegun{seconds(1000)};

Probe Thresholds(int successes, int failures) {
  Probe probe;
  probe.successes = successes;
  probe.failures = failures;
  return probe;
}

// The verdicts after each of the `answers` ("+-!"), of which one comes in each period: "S.F" and so on. "." is no
// verdict; "|" behind one says that the probe does not run again.
std::string Verdicts(ProbeKind kind, const Probe& probe, std::string_view answers) {
  ProbeState state;
  std::string verdicts;
  TimePoint at = kBegun;
  for (const char c : answers) {
    const Kind answer = c == '+' ? Kind::kSuccess : c == '-' ? Kind::kFailure : Kind::kUnknown;
    const ProbeStep step = CountAnswer(probe, kind, answer, at, at, &state);
    at += probe.period;
    verdicts += step.verdict == ProbeStep::Verdict::kNone      ? '.'
                : step.verdict == ProbeStep::Verdict::kSuccess ? 'S'
                                                               : 'F';
    if (!step.next) verdicts += '|';
  }
  return verdicts;
}

TEST(ProbeRule, WhatAnswersComeTo) {
  struct Row {
    ProbeKind kind;
    int successes, failures;
    const char *answers, *verdicts;
  };
  for (const Row& row :
       {Row{ProbeKind::kStartup, 1, 3, "+", "S|"}, Row{ProbeKind::kStartup, 1, 3, "--+", "..S|"},
        Row{ProbeKind::kStartup, 1, 3, "---", "..F|"}, Row{ProbeKind::kStartup, 1, 1, "!!-", "..F|"},
        Row{ProbeKind::kLiveness, 1, 3, "+--+---", "S..S..F|"}, Row{ProbeKind::kLiveness, 1, 2, "-!-", "..F|"},
        Row{ProbeKind::kReadiness, 1, 3, "-+---+", ".S..FS"}, Row{ProbeKind::kReadiness, 3, 1, "++-+++", "..F..S"},
        Row{ProbeKind::kReadiness, 2, 2, "+-+-++", ".....S"}, Row{ProbeKind::kReadiness, 1, 2, "--++--", ".FSS.F"},
        Row{ProbeKind::kReadiness, 1, 2, "++++", "SSSS"}, Row{ProbeKind::kReadiness, 1, 2, "---", ".FF"},
        Row{ProbeKind::kReadiness, 2, 2, "+!+", "..S"}}) {
    SCOPED_TRACE(fmt::format("{} {}", NameOf(row.kind), row.answers));
    EXPECT_EQ(Verdicts(row.kind, Thresholds(row.successes, row.failures), row.answers), row.verdicts);
  }
}

TEST(ProbeRule, WhenItIsAskedFirst) {
  Probe probe;
  EXPECT_EQ(FirstQuestion(probe, kBegun, kBegun), kBegun);
  EXPECT_EQ(FirstQuestion(probe, kBegun, kBegun + seconds(4)), kBegun + seconds(4)) << "not before it has started";
  probe.first = seconds(9);
  EXPECT_EQ(FirstQuestion(probe, kBegun, kBegun + seconds(4)), kBegun + seconds(9));
  EXPECT_EQ(FirstQuestion(probe, kBegun, kBegun + seconds(12)), kBegun + seconds(12));
}

TEST(ProbeRule, WhenItIsAskedAgain) {
  Probe probe;
  probe.period = seconds(5);
  ProbeState state;
  const auto next = [&](seconds took) {
    return CountAnswer(probe, ProbeKind::kReadiness, Kind::kSuccess, kBegun, kBegun + took, &state).next;
  };
  EXPECT_EQ(next(seconds(0)), kBegun + seconds(5));
  EXPECT_EQ(next(seconds(4)), kBegun + seconds(5)) << "from question to question";
  EXPECT_EQ(next(seconds(7)), kBegun + seconds(7)) << "the one that was due comes at once";
}

TEST(ProbeRule, AReadinessProbeIsAskedEarlyUntilItSucceeds) {
  using std::chrono::milliseconds;
  Probe probe;
  probe.period = seconds(1);
  probe.failures = 2;
  ProbeState state;
  const auto ask = [&](int asked, Kind kind) {
    const TimePoint at = kBegun + milliseconds(asked);
    return CountAnswer(probe, ProbeKind::kReadiness, kind, at, at, &state);
  };
  const struct {
    int asked;
    Kind answer;
    int next;
    ProbeStep::Verdict verdict;
  } rows[] = {
      {0, Kind::kFailure, 100, ProbeStep::Verdict::kNone},
      {100, Kind::kFailure, 300, ProbeStep::Verdict::kNone},
      {300, Kind::kFailure, 700, ProbeStep::Verdict::kNone},
      {700, Kind::kFailure, 1000, ProbeStep::Verdict::kNone},
      {1000, Kind::kFailure, 2000, ProbeStep::Verdict::kFailure},
      {2000, Kind::kSuccess, 3000, ProbeStep::Verdict::kSuccess},
      {3000, Kind::kFailure, 4000, ProbeStep::Verdict::kNone},
      {4000, Kind::kFailure, 5000, ProbeStep::Verdict::kFailure},
  };
  for (const auto& row : rows) {
    const ProbeStep step = ask(row.asked, row.answer);
    EXPECT_EQ(step.next, kBegun + milliseconds(row.next)) << row.asked;
    EXPECT_EQ(step.verdict, row.verdict) << row.asked;
  }
}

}  // namespace
}  // namespace muster::local
