#include "initializers/disk_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <future>
#include <memory>
#include <string>
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
  // Each waits for the other: on one thread none would end.
  pool.Run(
      one, [&] { from_one.set_value(), from_other.get_future().wait(); }, [&] { ++told; });
  pool.Run(
      other, [&] { from_other.set_value(), from_one.get_future().wait(); }, [&] { ++told; });
  while (told < 2) loop.run_one();
}

TEST(DiskPoolTest, BlocksAreAlignedApartAndAsManyAsWereAskedFor) {
  boost::asio::io_context loop;
  DiskPool pool(loop, 1, 3);
  EXPECT_EQ(pool.blocks(), 3u);
  std::vector<Block*> taken;
  while (Block* block = pool.Take()) taken.push_back(block);
  ASSERT_EQ(taken.size(), 3u);
  for (Block* block : taken) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data) % kBlockAlignment, 0u);
    block->data[0] = block->data[kBlockBytes - 1] = 'x';
    block->used = kBlockBytes;
  }
  pool.Give(taken[1]);
  Block* again = pool.Take();
  EXPECT_EQ(again, taken[1]);
  EXPECT_EQ(again->used, 0u);
}

TEST(DiskPoolTest, WhoWaitsForABlockIsAskedInTurnWhileThereAreSome) {
  boost::asio::io_context loop;
  DiskPool pool(loop, 1, 2);
  Block* one = pool.Take();
  Block* two = pool.Take();
  std::string asked;
  pool.WhenFree([&] { asked += "a"; });  // does not want it any more
  pool.WhenFree([&] { asked += "b", one = pool.Take(); });
  pool.WhenFree([&] { asked += "c", two = pool.Take(); });
  pool.Give(std::exchange(one, nullptr));
  EXPECT_EQ(asked, "");  // not from within Give
  loop.run();
  EXPECT_EQ(asked, "ab");
  EXPECT_NE(one, nullptr);
  pool.Give(std::exchange(two, nullptr));
  loop.restart();
  loop.run();
  EXPECT_EQ(asked, "abc");
  EXPECT_NE(two, nullptr);
}

// A loop that outlives the pool, as that of a run that failed: strands are of the pool's threads.
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
    pool.WhenFree([&told] { told = true; });
    pool.Give(pool.Take());
  }
  EXPECT_EQ(worked, 1);  // it waits for what has begun
  EXPECT_TRUE(kept.expired());
  loop.run();
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace muster::initializers
