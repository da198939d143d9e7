// SPDX-License-Identifier: Apache-2.0
#include "local/stop_request.h"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

namespace muster::local {
namespace {

using Answer = StopRequest::Answer;

TEST(StopRequest, SignalsInTheirOrder) {
  const struct {
    std::vector<int> signals;
    std::vector<Answer> answers;
    int signal;
  } rows[] = {
      {{SIGINT, SIGINT}, {Answer::kStop, Answer::kKill}, SIGINT},
      {{SIGTERM, SIGINT, SIGTERM}, {Answer::kStop, Answer::kKill, Answer::kKill}, SIGTERM},
      {{SIGHUP, SIGHUP, SIGTERM}, {Answer::kStop, Answer::kNothing, Answer::kKill}, SIGHUP},
      {{SIGINT, SIGHUP}, {Answer::kStop, Answer::kNothing}, SIGINT},
      {{SIGUSR1}, {Answer::kKill}, SIGTERM},
      {{SIGINT, SIGUSR1}, {Answer::kStop, Answer::kKill}, SIGINT},
  };
  for (const auto& row : rows) {
    StopRequest request;
    std::vector<Answer> answers;
    for (const int signal : row.signals) answers.push_back(request.Take(signal));
    EXPECT_EQ(answers, row.answers);
    EXPECT_EQ(request.signal(), row.signal);
  }
  EXPECT_EQ(StopRequest().signal(), 0);
}

}  // namespace
}  // namespace muster::local
