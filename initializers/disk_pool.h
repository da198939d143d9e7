// The threads that hash and write, and the memory that bytes wait in: a fixed number of blocks, whatever is brought in.
//
// Bytes go from a socket into a block (loop), then with the block to a thread, which hashes and writes it, and the
// block comes back. Work of one strand runs in order, never two at once; work of different strands runs side by side.
//
// Loop thread only, but for the work itself. Destroying the pool waits for the work that has begun; `done` of what has
// not been told is not called.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

namespace muster::initializers {

inline constexpr size_t kBlockBytes = size_t{512} << 10;
inline constexpr size_t kBlockAlignment = 4096;  // of direct I/O

struct Block {
  char* data = nullptr;  // kBlockBytes, aligned
  size_t used = 0;
};

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

  size_t blocks() const { return blocks_.size(); }
  Block* Take();  // nullptr: all are in use
  void Give(Block* block);
  void WhenFree(std::function<void()> call);  // once, when a block is free; asked in order, and not if others take it

 private:
  void Done(uint64_t number);
  void Wake();

  boost::asio::io_context& loop_;
  boost::asio::thread_pool threads_;
  std::unique_ptr<char, void (*)(void*)> memory_;
  std::vector<Block> blocks_;
  std::vector<Block*> free_;
  std::deque<std::function<void()>> waiting_;
  bool waking_ = false;
  std::unordered_map<uint64_t, std::function<void()>> done_;  // of work that is not told yet
  uint64_t last_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::initializers
