// SPDX-License-Identifier: Apache-2.0
#include "agent/log_place.h"

#include <gtest/gtest.h>

namespace muster::agent {
namespace {

TEST(LogPlace, TheFolderOfARunIsOnePartOfAPath) {
  struct {
    std::string_view run_id, folder;
  } const rows[] = {
      {"job", "job"}, {"a/b", "a_b"},   {"/", "_"},     {".", "_"},
      {"..", "__"},   {"../x", ".._x"}, {"...", "..."}, {"a.b", "a.b"},
  };
  for (const auto& row : rows) EXPECT_EQ(RunFolder(row.run_id), row.folder) << row.run_id;
}

TEST(LogPlace, HoldsOutputOfAnyWorker) {
  RunOptions options;
  options.workers.nproc = 2;
  EXPECT_FALSE(HoldsOutput(options));
  options.logs.redirects.by_local_rank = {{2, 3}};  // no worker of this node
  EXPECT_FALSE(HoldsOutput(options));
  options.logs.redirects.by_local_rank = {{1, 2}};
  EXPECT_TRUE(HoldsOutput(options));
  options.logs.redirects = {};
  options.logs.tee.all = 1;
  EXPECT_TRUE(HoldsOutput(options));
}

}  // namespace
}  // namespace muster::agent
