// SPDX-License-Identifier: Apache-2.0
// Internal to transfer.h: the scheduler, and its state of each file and range. transfer.cc schedules, fetches small
// files and finishes files; transfer_ranges.cc fetches the ranges of large files.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "initializers/disk/file_hash.h"
#include "initializers/transfer/entry_queue.h"
#include "initializers/transfer/fetch.h"
#include "initializers/transfer/file_state.h"
#include "initializers/transfer/range_intake.h"
#include "initializers/transfer/transfer.h"

namespace muster::initializers {

class Transfer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, TransferContext context, TransferOptions options, MoveEvents events);

  void Add(const std::vector<Entry>& entries);
  void EndOfList();
  void Stop();
  const MoveCounts& counts() const { return counts_; }

 private:
  struct File;
  struct Range;

  void Dispatch();
  bool StartNext();
  bool InPassing() const;
  void StartSmall(const std::shared_ptr<File>& file);
  void FetchSmall(const std::shared_ptr<File>& file, std::shared_ptr<Block> block);
  void StartLarge(const std::shared_ptr<File>& file);
  void LookAt(const std::shared_ptr<File>& file);
  void Open(const std::shared_ptr<File>& file);
  void OpenStaged(const std::shared_ptr<File>& file);
  void Rechecked(const std::shared_ptr<File>& file, const StatusOr<StagedHash>& found);
  bool IsStaged(const File& file) const;
  ByteRange NextOf(const File& file) const;
  bool StartRange(const std::shared_ptr<File>& file);
  void ReadBack(const std::shared_ptr<Range>& range, std::span<const StagedRange> notes);
  void FetchRest(const std::shared_ptr<Range>& range);
  std::shared_ptr<RangeIntake> MakeIntake(const std::shared_ptr<Range>& range, ByteRange rest);
  std::shared_ptr<http::Intake> Lend(const std::shared_ptr<Range>& range);
  void Starved(const std::shared_ptr<Range>& range);
  void Have(const std::shared_ptr<File>& file, uint64_t bytes);
  void HashOn(const std::shared_ptr<File>& file);
  void CountReceived(Range& range);
  void DoneWith(const std::shared_ptr<File>& file, const std::shared_ptr<Range>& range);
  void RangeDone(const std::shared_ptr<Range>& range);
  void WholeIfDone(const std::shared_ptr<File>& file);
  void SmallDone(const std::shared_ptr<File>& file);
  void Whole(const std::shared_ptr<File>& file);
  void Verified(const std::shared_ptr<File>& file, const std::optional<std::string>& mismatch, std::string hash);
  void Refused(const std::shared_ptr<File>& file, const http::Refusal& refusal);
  void Changed(const std::shared_ptr<File>& file);
  void FetchAgain(const std::shared_ptr<File>& file, FileEvent why);
  void DiscardIfDrained(const std::shared_ptr<File>& file);
  void FileDone(const std::shared_ptr<File>& file, std::string hash);
  void Release(const std::shared_ptr<File>& file);
  void EndIfDone();
  void Fail(Status status);
  Fetch::Taker TakerFor(const std::shared_ptr<File>& file);
  void Run(const std::shared_ptr<File>& file, DiskPool::Strand& strand, std::function<void()> work,
           std::function<void()> then);
  void Post(const std::shared_ptr<File>& file, std::function<void(const std::shared_ptr<File>&)> then);

  boost::asio::io_context& loop_;
  http::Transport& http_;
  http::Transport& large_http_;
  Provider& provider_;
  Staging& staging_;
  DiskPool& pool_;
  const TransferOptions options_;
  MoveEvents events_;
  RequestLimit request_limit_;
  RangeSize range_size_;
  const std::shared_ptr<Blocks> ahead_;  // blocks for bytes that wait to be hashed in order
  std::mt19937_64 random_{std::random_device{}()};
  Fetch::Context context_;
  MoveCounts counts_;
  EntryQueue queue_;                                // entries that are not begun
  std::list<std::shared_ptr<File>> open_;           // large files, begun and not finished
  std::unordered_set<std::shared_ptr<File>> busy_;  // begun and not finished
  int active_ = 0;                                  // running requests, and work that counts as one
  bool listed_ = false;
  bool ended_ = false;
  bool dispatching_ = false;
  bool said_damaged_ = false;
  bool said_whole_only_ = false;
  const std::shared_ptr<std::atomic<bool>> stopped_ = std::make_shared<std::atomic<bool>>(false);  // read by the pool
};

// A file that is being fetched. Used on the loop only, except for what the work on its strand gets. Handlers that the
// loop keeps (a post) hold it weakly: the loop may outlive the pool, and the strand refers to the pool.
struct Transfer::Impl::File : FileProgress {
  File(Entry what, DiskPool::Strand in)
      : FileProgress(what.size > kBlockBytes), entry(std::move(what)), strand(std::move(in)) {}

  Entry entry;
  std::string name;
  DiskPool::Strand strand;  // opening, hashing in order, finishing
  std::shared_ptr<StagedFile> staged;
  std::unique_ptr<Verifier> verifier;
  std::shared_ptr<OrderedHash> ordered;                   // hashes on the strand; null: ranges are hashed separately
  std::shared_ptr<const std::vector<StagedRange>> noted;  // by an earlier start, by offset; the pool reads it too
  std::unique_ptr<Fetch> small;
  std::shared_ptr<Block> block;
  std::list<std::shared_ptr<Range>> ranges;  // being fetched
  Provider::Handle looking;
  uint64_t unit = 1;     // ranges begin at multiples of it
  uint64_t next = 0;     // offset of the next range
  uint64_t counted = 0;  // its part of counts_.bytes_done
  bool hashing = false;  // HashOn() works on the strand
};

struct Transfer::Impl::Range {
  Range(std::shared_ptr<File> of, ByteRange what) : file(std::move(of)), range(what), life(file->life()) {}

  const std::shared_ptr<File> file;
  const ByteRange range;
  const uint64_t life;
  std::shared_ptr<PieceHash> hash;
  std::unique_ptr<Fetch> fetch;
  std::shared_ptr<RangeIntake> intake;
  TimePoint asked{}, began{};  // asked: for its first byte; began: when the first head came
  uint64_t counted = 0;        // bytes of its intake that were counted
  uint64_t have = 0;           // bytes of it from an earlier start
  int writing = 0;             // answers that hold its intake
  bool fetched = false;
};

}  // namespace muster::initializers
