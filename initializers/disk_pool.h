// The threads for what may wait for a disk, and the memory for it (blocks.h).
//
// Work of one strand runs in order, never two at once; work of different strands runs side by side.
//
// Loop thread only, but for the work itself. Destroying the pool waits for the work that has begun; `done` of what has
// not been told is not called.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

#include "initializers/blocks.h"

namespace muster::initializers {

class DiskPool {
 public:
  using Strand = boost::asio::strand<boost::asio::thread_pool::executor_type>;

  DiskPool(boost::asio::io_context& loop, int threads, size_t blocks);
  ~DiskPool();
  DiskPool(const DiskPool&) = delete;
  DiskPool& operator=(const DiskPool&) = delete;

  Strand NewStrand() { return boost::asio::make_strand(threads_); }
  // `work` on a thread, then `done` on the loop.
  void Run(Strand& strand, std::function<void()> work, std::function<void()> done);

  Blocks& blocks() { return blocks_; }

 private:
  void Done(uint64_t number);

  boost::asio::io_context& loop_;
  Blocks blocks_;
  boost::asio::thread_pool threads_;
  std::unordered_map<uint64_t, std::function<void()>> done_;  // of work that is not told yet
  uint64_t last_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::initializers
