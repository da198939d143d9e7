// `muster run`'s command line read as the tests write it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agent/torch/torchrun_flags.h"
#include "tests/agent/variables.h"

namespace muster::agent {

using Words = std::vector<std::string>;

inline StatusOr<ParsedRun> Parse(Words words, const Environment& environment = {}, CalledAs as = CalledAs::kRun) {
  return ParseRun(words, environment, as);
}
// Of a line that is right; `x.py` is added where it is missing.
inline RunOptions Good(Words words, const Environment& environment = {}, CalledAs as = CalledAs::kRun) {
  if (words.empty() || words.back() != "x.py") words.push_back("x.py");
  auto run = Parse(words, environment, as);
  EXPECT_TRUE(run.ok()) << run.status();
  if (!run.ok()) return {};
  EXPECT_EQ(run->outcome, ParsedRun::Outcome::kRun) << run->text;
  return run->options;
}
// Of a line that is not: what is said.
inline std::string Error(Words words, const Environment& environment = {}, CalledAs as = CalledAs::kRun) {
  auto run = Parse(words, environment, as);
  EXPECT_FALSE(run.ok());
  if (run.ok()) return "";
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(Message(run.status()));
}

}  // namespace muster::agent
