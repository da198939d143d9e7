// SPDX-License-Identifier: Apache-2.0
#include "initializers/disk/disk_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <future>
#include <memory>
#include <vector>

namespace muster::initializers {
namespace {

TEST(DiskPoolTest, WorkOfAStrandIsInOrderAndToldInOrder) {
  boost::asio::io_context loop;
  auto open = boost::asio::make_work_guard(loop);
  DiskPool pool(loop, 4, 2);
  auto strand = pool.NewStrand();
  std::vector<int> worked, told;
  for (int i = 0; i < 100; ++i) {
    pool.Run(
        strand, [&worked, i] { worked.push_back(i); }, [&told, i] { told.push_back(i); });
  }
  while (told.size() < 100) loop.run_one();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(worked[static_cast<size_t>(i)], i);
    EXPECT_EQ(told[static_cast<size_t>(i)], i);
  }
}

TEST(DiskPoolTest, WorkOfTwoStrandsIsSideBySide) {
  boost::asio::io_context loop;
  auto open = boost::asio::make_work_guard(loop);
  DiskPool pool(loop, 2, 2);
  auto one = pool.NewStrand();
  auto other = pool.NewStrand();
  std::promise<void> from_one, from_other;
  int told = 0;
  // Each waits for the other: on one thread neither would end.
  pool.Run(
      one, [&] { from_one.set_value(), from_other.get_future().wait(); }, [&] { ++told; });
  pool.Run(
      other, [&] { from_other.set_value(), from_one.get_future().wait(); }, [&] { ++told; });
  while (told < 2) loop.run_one();
}

// The loop outlives the pool, as after a failed run; the strands refer to the pool's threads.
TEST(DiskPoolTest, WhatIsNotToldWhenItEndsIsDroppedWithIt) {
  boost::asio::io_context loop;
  std::atomic<int> worked = 0;
  bool told = false;
  std::weak_ptr<int> kept;
  {
    DiskPool pool(loop, 1, 1);
    auto strand = std::make_shared<DiskPool::Strand>(pool.NewStrand());
    auto held = std::make_shared<int>(1);
    kept = held;
    pool.Run(
        *strand, [&] { ++worked; }, [&told, strand, held = std::move(held)] { told = true; });
    const auto block = pool.blocks().Take();
    pool.blocks().WhenFree([&told](const std::shared_ptr<Block>&) { told = true; });
  }
  EXPECT_EQ(worked, 1);  // the destructor waits for work that has begun
  EXPECT_TRUE(kept.expired());
  loop.run();
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace muster::initializers
