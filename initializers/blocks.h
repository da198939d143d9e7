// The memory that bytes wait in between a socket and a disk: a fixed number of blocks, whatever is brought in.
//
// A block gives itself back when its last copy goes, on whatever thread; it may outlive its Blocks. Who finds none
// waits in line, and whoever comes later behind him.
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
  ~Blocks();  // who waits is told nothing
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  size_t count() const;
  // An empty one; null: all are in use, or waited for. Any thread.
  std::shared_ptr<Block> Take();
  // One for whoever waits, on the loop and not from within a call: in turn. Who does not want it any more lets it go,
  // and the next has it. Loop thread.
  using Given = std::function<void(std::shared_ptr<Block>)>;
  void WhenFree(Given given);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace muster::initializers
