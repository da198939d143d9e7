// SPDX-License-Identifier: Apache-2.0
// The threads for work that may block on a disk, and the memory blocks for it (blocks.h).
//
// Work of one strand runs in order, one piece at a time. Work of different strands runs in parallel.
//
// Only the loop thread may call it; `work` itself runs on the pool's threads. The destructor waits for work that has
// begun, and drops every `done` that has not been called yet.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "initializers/disk/blocks.h"

namespace muster::initializers {

class DiskPool {
 public:
  using Strand = boost::asio::strand<boost::asio::thread_pool::executor_type>;

  DiskPool(boost::asio::io_context& loop, int threads, size_t blocks);
  ~DiskPool();
  DiskPool(const DiskPool&) = delete;
  DiskPool& operator=(const DiskPool&) = delete;

  Strand NewStrand() { return boost::asio::make_strand(threads_); }
  // Runs `work` on a pool thread, then `done` on the loop.
  void Run(Strand& strand, std::function<void()> work, std::function<void()> done);

  Blocks& blocks() { return blocks_; }

 private:
  void Done(uint64_t number);

  boost::asio::io_context& loop_;
  Blocks blocks_;
  boost::asio::thread_pool threads_;
  std::unordered_map<uint64_t, std::function<void()>> done_;  // of work whose `done` was not called yet
  uint64_t last_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::initializers
