// SPDX-License-Identifier: Apache-2.0
// The memory for bytes between a socket and a disk: a fixed number of blocks, however much is brought in.
//
// A block returns to its Blocks when its last shared_ptr goes, on any thread. A block may outlive its Blocks. A caller
// that finds no free block waits in a queue; the queue is first in, first out.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>

namespace muster::initializers {

inline constexpr size_t kBlockBytes = size_t{512} << 10;
inline constexpr size_t kBlockAlignment = 4096;  // of direct I/O

struct Block {
  char* data = nullptr;  // kBlockBytes, aligned
  size_t used = 0;
};

class Blocks {
 public:
  Blocks(boost::asio::io_context& loop, size_t count);
  ~Blocks();  // the callbacks of WhenFree that still wait are not called
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  size_t count() const;
  // Takes an empty block. Null if all are in use, or if a caller waits for one. Any thread.
  std::shared_ptr<Block> Take();
  // Calls `given` with a block when one is free: on the loop, never from within this call, in the order of the calls. A
  // receiver that does not need the block any more drops it; the next in the queue gets it. Loop thread.
  using Given = std::function<void(std::shared_ptr<Block>)>;
  void WhenFree(Given given);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace muster::initializers
