// SPDX-License-Identifier: Apache-2.0
// Reads command lines of `muster run` for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agent/flags/torchrun_flags.h"
#include "tests/agent/variables.h"

namespace muster::agent {

using Words = std::vector<std::string>;

inline StatusOr<ParsedRun> Parse(Words words, const Environment& environment = {}, CalledAs as = CalledAs::kRun) {
  return ParseRun(words, environment, as);
}
// The options of a good command line; adds `x.py` if it is missing.
inline RunOptions Good(Words words, const Environment& environment = {}, CalledAs as = CalledAs::kRun) {
  if (words.empty() || words.back() != "x.py") words.push_back("x.py");
  auto run = Parse(words, environment, as);
  EXPECT_TRUE(run.ok()) << run.status();
  if (!run.ok()) return {};
  EXPECT_EQ(run->outcome, ParsedRun::Outcome::kRun) << run->text;
  return run->options;
}
// The error of a bad command line.
inline std::string Error(Words words, const Environment& environment = {}, CalledAs as = CalledAs::kRun) {
  auto run = Parse(words, environment, as);
  EXPECT_FALSE(run.ok());
  if (run.ok()) return "";
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(run.status()));
}

}  // namespace muster::agent
