// SPDX-License-Identifier: Apache-2.0
// Hashes one file while several threads write its ranges.
//
// A hash that can be computed in pieces (verifier.h) is computed range by range, as the bytes pass. A hash that needs
// the bytes in order follows the part that is written without a gap. It reads the blocks in which the bytes came, or,
// without room to keep them, the page cache: that costs a copy that takes as long as the hash itself.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "initializers/disk/blocks.h"
#include "initializers/facts/provider.h"
#include "initializers/facts/verifier.h"

namespace muster::initializers {

// The hashes of a range of pieces, fed in order by one thread at a time. The values go to a Verifier afterwards.
class PieceHash {
 public:
  // `piece`: Verifier::PieceSize(). `offset`: of the range; the start of a piece, unless Verifier::AnyRange().
  PieceHash(HashKind kind, uint64_t piece, uint64_t offset) : kind_(kind), piece_(piece), offset_(offset) {}

  void Update(std::string_view bytes);
  void UpdateKnown(std::string_view bytes, uint32_t crc32c);  // for bytes whose CRC-32C is known
  struct Value {
    uint64_t offset, length;
    std::string value;
  };
  std::vector<Value> Finish();  // once

 private:
  void EndPiece();

  const HashKind kind_;
  const uint64_t piece_;
  uint64_t offset_;
  uint64_t length_ = 0;
  std::unique_ptr<Hasher> hasher_;
  std::vector<Value> values_;
};

// Reads at most `length` bytes at `offset`; returns 0 at the end of the file.
using ReadAt = std::function<StatusOr<size_t>(uint64_t offset, char* bytes, size_t length)>;
ReadAt ReadAtOf(int file);  // `file`: an open descriptor that outlives the ReadAt

struct ContentHash {
  std::string described;                // text of Describe; of the expectation's kind, else kCrc32c
  std::optional<std::string> mismatch;  // as Verifier::Mismatch
};
// Hashes existing content, in order, through `buffer`. DataLoss: it is not `size` bytes long. Cancelled: by `stop`.
StatusOr<ContentHash> HashContent(const ReadAt& read, uint64_t size, const std::optional<Expectation>& expected,
                                  std::span<char> buffer, const std::function<bool()>& stop);

// Hashes a whole file in order, behind the writes, which may come in any order.
//
// The writing threads report what they have written. They may also give the bytes to be kept here (Keep), or hash them
// themselves if these are the next bytes in order (HashInPassing). One other thread at a time hashes the rest.
class OrderedHash {
 public:
  // `ahead`: blocks for bytes that are kept, shared by all files; null: all bytes are read back.
  OrderedHash(HashKind kind, uint64_t size, ReadAt read, std::shared_ptr<Blocks> ahead = nullptr);

  // A block for the bytes to be written from `offset` on. Null: no room, or only for bytes before `offset`. Any thread.
  std::shared_ptr<Block> RoomAt(uint64_t offset);
  // Keeps `block`, whose bytes are written from `offset` on. Call it before Written() of these bytes. Any thread.
  void Keep(uint64_t offset, std::shared_ptr<Block> block);
  // Hashes bytes that will be written at `offset`, on the thread whose CPU cache holds them. False: they are not the
  // next bytes in order, or another thread hashes right now. Any thread.
  bool HashInPassing(uint64_t offset, std::string_view bytes);
  // Reports a written range; call it once for each range. Any thread.
  void Written(ByteRange range);
  // How many bytes are written from the start without a gap, and how many are hashed. Any thread.
  uint64_t written() const { return written_; }
  uint64_t hashed() const { return hashed_; }

  // Hashes the bytes from hashed() to `end`, which is at most what written() returned. Call it on one thread at a time.
  // DataLoss: the file is shorter.
  Status HashTo(uint64_t end);
  // Waits until there is something to hash, at most for `at_most`. False: there is nothing.
  bool AwaitMore(Duration at_most);
  std::string Finish();  // call it once, after all bytes are hashed

 private:
  // The next bytes to hash: kept bytes at `hashed_`, or the bytes up to the next kept block; at most `wanted`.
  struct Next {
    const Block* block = nullptr;  // null: `length` bytes must be read from the file
    size_t offset = 0;             // in the block
    size_t length = 0;
  };
  Next NextTo(uint64_t wanted);
  void GiveBack();  // frees the kept blocks that are hashed

  const uint64_t size_;
  const ReadAt read_;
  const std::shared_ptr<Blocks> ahead_;
  std::mutex hashing_;
  const std::unique_ptr<Hasher> hasher_;  // guarded by hashing_
  std::atomic<uint64_t> hashed_ = 0;      // written with hashing_ held
  std::atomic<uint64_t> written_ = 0;     // written with mutex_ held
  std::mutex mutex_;
  std::condition_variable more_;
  std::map<uint64_t, uint64_t> behind_;              // guarded by mutex_; ranges written behind a gap: offset -> end
  std::map<uint64_t, std::shared_ptr<Block>> kept_;  // guarded by mutex_; offset -> block
  std::string buffer_;
};

}  // namespace muster::initializers
