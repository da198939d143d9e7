// SPDX-License-Identifier: Apache-2.0
#include "initializers/disk/blocks.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace muster::initializers {
namespace {

TEST(BlocksTest, AreAlignedApartAndAsManyAsWereAskedFor) {
  boost::asio::io_context loop;
  Blocks blocks(loop, 3);
  EXPECT_EQ(blocks.count(), 3u);
  std::vector<std::shared_ptr<Block>> taken;
  while (auto block = blocks.Take()) taken.push_back(std::move(block));
  ASSERT_EQ(taken.size(), 3u);
  for (const auto& block : taken) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block->data) % kBlockAlignment, 0u);
    block->data[0] = block->data[kBlockBytes - 1] = 'x';
    block->used = kBlockBytes;
  }
  const Block* const given = taken[1].get();
  taken[1].reset();
  const auto again = blocks.Take();
  EXPECT_EQ(again.get(), given);
  EXPECT_EQ(again->used, 0u);
}

TEST(BlocksTest, WhoWaitsHasOneInTurn) {
  boost::asio::io_context loop;
  Blocks blocks(loop, 2);
  auto one = blocks.Take();
  auto two = blocks.Take();
  std::string given;
  blocks.WhenFree([&](const std::shared_ptr<Block>&) { given += "a"; });  // drops the block
  blocks.WhenFree([&](std::shared_ptr<Block> block) { given += "b", one = std::move(block); });
  blocks.WhenFree([&](std::shared_ptr<Block> block) { given += "c", two = std::move(block); });
  one.reset();
  EXPECT_EQ(given, "");               // not from within reset()
  EXPECT_EQ(blocks.Take(), nullptr);  // others wait before this call
  loop.run();
  EXPECT_EQ(given, "ab");
  EXPECT_NE(one, nullptr);
  two.reset();
  loop.restart();
  loop.run();
  EXPECT_EQ(given, "abc");
  EXPECT_NE(two, nullptr);
  one.reset();
  EXPECT_NE(blocks.Take(), nullptr);  // no caller waits
}

TEST(BlocksTest, WhoWaitsWhereOneIsFreeHasIt) {
  boost::asio::io_context loop;
  Blocks blocks(loop, 1);
  std::shared_ptr<Block> given;
  blocks.WhenFree([&](std::shared_ptr<Block> block) { given = std::move(block); });
  EXPECT_EQ(given, nullptr);
  loop.run();
  EXPECT_NE(given, nullptr);
}

// After a failed run, threads and pending calls may still hold blocks.
TEST(BlocksTest, ABlockMayOutliveThem) {
  boost::asio::io_context loop;
  std::shared_ptr<Block> block;
  bool told = false;
  {
    Blocks blocks(loop, 1);
    block = blocks.Take();
    blocks.WhenFree([&told](const std::shared_ptr<Block>&) { told = true; });
  }
  block->data[0] = 'x';
  block.reset();
  loop.run();
  EXPECT_FALSE(told);
}

TEST(BlocksTest, AreTakenAndGivenOnAnyThread) {
  boost::asio::io_context loop;
  Blocks blocks(loop, 3);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&blocks] {
      for (int i = 0; i < 1000; ++i) {
        if (auto block = blocks.Take()) ++block->data[0];  // no other thread has it
      }
    });
  }
  int given = 0;
  std::function<void(std::shared_ptr<Block>)> again = [&](const std::shared_ptr<Block>&) {
    if (++given < 100) blocks.WhenFree(again);
  };
  blocks.WhenFree(again);
  loop.run();
  for (auto& thread : threads) thread.join();
  loop.restart();
  loop.run();
  EXPECT_EQ(given, 100);
  std::vector<std::shared_ptr<Block>> all;
  while (auto block = blocks.Take()) all.push_back(std::move(block));
  EXPECT_EQ(all.size(), 3u);
}

}  // namespace
}  // namespace muster::initializers
