// The hash of one file while its bytes are written, range by range, from several threads.
//
// Kinds that can be hashed in pieces (verifier.h) are hashed range by range, as they pass; a file whose hash can only
// be taken in order is hashed as far as it is written without a gap: from the blocks in which it came, and where there
// was no room to keep them from the page cache, which costs a copy as long as the hash itself.
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
#include "initializers/blocks.h"
#include "initializers/provider.h"
#include "initializers/verifier.h"

namespace muster::initializers {

// Of a range of pieces, fed in order by one thread at a time; its values go to a Verifier afterwards.
class PieceHash {
 public:
  // `piece`: Verifier::PieceSize(); `offset`: where the range begins: a piece's beginning, unless Verifier::AnyRange().
  PieceHash(HashKind kind, uint64_t piece, uint64_t offset) : kind_(kind), piece_(piece), offset_(offset) {}

  void Update(std::string_view bytes);
  void UpdateKnown(std::string_view bytes, uint32_t crc32c);  // of bytes whose CRC-32C is known
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

// Reads at most `length` bytes at `offset`; 0: the file ends there.
using ReadAt = std::function<StatusOr<size_t>(uint64_t offset, char* bytes, size_t length)>;
ReadAt ReadAtOf(int file);  // an open file that outlives it

struct ContentHash {
  std::string described;                // Describe()d: of the expectation's kind, else kCrc32c
  std::optional<std::string> mismatch;  // as Verifier::Mismatch
};
// Of what is there already: all of it is read, in order, through `buffer`. DataLoss: it is not `size` bytes long.
// Cancelled: `stop` said so.
StatusOr<ContentHash> HashContent(const ReadAt& read, uint64_t size, const std::optional<Expectation>& expected,
                                  std::span<char> buffer, const std::function<bool()>& stop);

// Of a whole file, in order, behind what is written there in any order.
//
// Those that write tell it so, and may keep the bytes here, or hash them themselves where it is their turn; else one
// other thread at a time hashes.
class OrderedHash {
 public:
  // `ahead`: the room of what is kept, shared by all files; null: all is read back.
  OrderedHash(HashKind kind, uint64_t size, ReadAt read, std::shared_ptr<Blocks> ahead = nullptr);

  // For the bytes that are written from `offset` on; null: there is no room, or it is wanted for what comes before
  // them. Any thread.
  std::shared_ptr<Block> RoomAt(uint64_t offset);
  // What is in `block` is written from `offset` on; before Written() of it. Any thread.
  void Keep(uint64_t offset, std::shared_ptr<Block> block);
  // Hashes bytes that are about to be written at `offset`, on the thread in whose cache they are. False: it is not
  // their turn, or others are being hashed right now. Any thread.
  bool HashInPassing(uint64_t offset, std::string_view bytes);
  // A range is told once. Any thread.
  void Written(ByteRange range);
  // What is written from the beginning without a gap, and what is hashed, in bytes. Any thread.
  uint64_t written() const { return written_; }
  uint64_t hashed() const { return hashed_; }

  // The hashing thread's. Hashes what is not hashed yet before `end`, which is at most what written() said. DataLoss:
  // the file is shorter.
  Status HashTo(uint64_t end);
  // Until there is something to hash, for so long at most. False: there is nothing.
  bool AwaitMore(Duration at_most);
  std::string Finish();  // all of it is hashed; once

 private:
  // Kept bytes at `hashed_`, or what lies before the next ones: at most `wanted`.
  struct Next {
    const Block* block = nullptr;  // null: `length` bytes are to be read
    size_t offset = 0;             // in the block
    size_t length = 0;
  };
  Next NextTo(uint64_t wanted);
  void GiveBack();  // kept blocks that are hashed

  const uint64_t size_;
  const ReadAt read_;
  const std::shared_ptr<Blocks> ahead_;
  std::mutex hashing_;
  const std::unique_ptr<Hasher> hasher_;  // by hashing_
  std::atomic<uint64_t> hashed_ = 0;      // written by hashing_
  std::atomic<uint64_t> written_ = 0;     // written by mutex_
  std::mutex mutex_;
  std::condition_variable more_;
  std::map<uint64_t, uint64_t> behind_;              // by mutex_; a gap: offset -> end
  std::map<uint64_t, std::shared_ptr<Block>> kept_;  // by mutex_; by offset
  std::string buffer_;
};

}  // namespace muster::initializers
