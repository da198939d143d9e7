// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

#include "absl/strings/cord.h"

namespace muster {
namespace {

TEST(StatusText, ContextBeforeAndRemedyBehind) {
  Status status = absl::PermissionDeniedError("no entry");
  status.SetPayload("kind", absl::Cord("wall"));
  const Status said = WithRemedy(Annotate(status, "opening x"), "ask its owner");
  EXPECT_EQ(said.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Message(said), "opening x: no entry; ask its owner");
  EXPECT_EQ(said.GetPayload("kind"), absl::Cord("wall"));
}

TEST(StatusText, OkStaysOk) {
  EXPECT_TRUE(Annotate(absl::OkStatus(), "opening x").ok());
  EXPECT_TRUE(WithRemedy(absl::OkStatus(), "ask its owner").ok());
}

}  // namespace
}  // namespace muster
