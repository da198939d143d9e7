// SPDX-License-Identifier: Apache-2.0
#include "base/not_yet.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(NotYet, ARefusalIsNoTrouble) {
  const struct {
    std::string_view failure, said;
  } rows[] = {{"10.0.0.7:1: Connection refused", "nothing listens there yet"},
              {"10.0.0.7:1: Connection refused; [fd00::7]:1: Connection refused", "nothing listens there yet"},
              {"Connection refused", "nothing listens there yet"},
              {"10.0.0.7:1: Connection refused; [fd00::7]:1: no answer",
               "10.0.0.7:1: Connection refused; [fd00::7]:1: no answer"},
              {"pod-0:1: no answer", "no answer"},
              {"pod-0: no such name", "pod-0: no such name"},
              {"", ""}};
  for (const auto& row : rows) EXPECT_EQ(NotYet(row.failure, "pod-0:1"), row.said) << row.failure;
}

}  // namespace
}  // namespace muster
