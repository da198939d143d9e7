// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/local_copy.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>

#include "base/kernel_calls.h"
#include "base/text.h"
#include "initializers/disk/file_hash.h"
#include "initializers/facts/crc.h"
#include "initializers/facts/failure.h"
#include "initializers/stores/local_folder.h"
#include "initializers/target/recheck.h"
#include "initializers/transfer/entry_queue.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

constexpr int kMostAtOnce = 8;  // files; each has a block of the pool, two descriptors and at times a thread
constexpr int kMostTries = 5;   // for a file that changes while it is copied
constexpr size_t kKernelCopy = size_t{64} << 20;  // bytes of one call

// Refuses a link: the listing has resolved all, so it was made later. O_NONBLOCK: does not wait for a pipe.
Descriptor OpenListed(const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  struct open_how how {};
  how.flags = kFlags;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const long opened = syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how);
  // Linux before 5.6, or a sandbox without the call.
  if (opened < 0 && IsNotOffered(errno)) return Descriptor(open(path.c_str(), kFlags | O_NOFOLLOW));
  return Descriptor(static_cast<int>(opened));
}

// Too small for a reflink to be worth it.
bool IsSmall(const Entry& entry) { return entry.size <= kBlockBytes; }

// State shared by the threads and the loop.
struct Shared {
  std::atomic<bool> stop = false;
  std::atomic<bool> said_damaged = false;
  std::atomic<bool> said_modes = false;
  std::atomic<uint64_t> copied = 0, kept = 0;  // bytes
};

// Copies one file; on a thread of the pool.
class Copying {
 public:
  Copying(Staging& staging, const LocalCopyOptions& options, Entry entry, std::span<char> buffer, Shared* shared)
      : staging_(staging),
        options_(options),
        shared_(shared),
        buffer_(buffer),
        moved_{std::move(entry), "", "", false} {}

  // Copies the file. The status is final; notes() has sentences about problems on the way.
  Status Run();
  const std::vector<std::string>& notes() const { return notes_; }
  MovedFile& moved() { return moved_; }
  int changes() const { return changes_; }
  int refetched() const { return refetched_; }

 private:
  Status CopyOnce();
  Status KeepExecutable();
  Status NoFileAnyMore() const;
  Status HashWhole(int file);
  Status Small(int source);
  Status Large(int source);
  StatusOr<bool> Clone(int source, StagedFile& staged);
  StatusOr<bool> InKernel(int source, StagedFile& staged);
  void TakeHash(PieceHash& hash, Verifier& verifier);
  Status ByHand(int source, StagedFile& staged);
  bool ReadBack(StagedFile& staged, uint64_t offset, size_t* length);
  bool Stopped() const { return shared_->stop.load(std::memory_order_relaxed); }

  Staging& staging_;
  const LocalCopyOptions options_;
  Shared* const shared_;
  const std::span<char> buffer_;
  MovedFile moved_;
  std::vector<std::string> notes_;
  std::optional<std::string> mismatch_;
  bool executable_ = false;
  int changes_ = 0;
  int refetched_ = 0;
};

Status Copying::Run() {
  while (true) {
    moved_.name = Staging::NameOf(options_.source, moved_.entry);
    mismatch_.reset();
    Status status = CopyOnce();
    if (status.code() == absl::StatusCode::kAborted && ++changes_ < kMostTries) {
      staging_.Drop(moved_.name);  // frees the space for the next try
      notes_.push_back(fmt::format("{}; copying it anew", Message(status)));
      continue;
    }
    if (!status.ok()) return status;
    if (!mismatch_) return executable_ && !options_.hard_links ? KeepExecutable() : status;
    if (++refetched_ > 1) {
      return absl::DataLossError(
          fmt::format("{}: {}, also after it was copied again; nothing was published", moved_.entry.key, *mismatch_));
    }
    notes_.push_back(fmt::format("{}: {}; copying it again", moved_.entry.key, *mismatch_));
  }
}

Status Copying::KeepExecutable() {
  Status made = staging_.MakeExecutable(moved_.name);
  if (made.code() != absl::StatusCode::kUnimplemented) return made;
  if (!shared_->said_modes.exchange(true)) {
    notes_.push_back(fmt::format("{}: executable files are not executable there", Message(made)));
  }
  return absl::OkStatus();
}

Status Copying::CopyOnce() {
  Entry& entry = moved_.entry;
  const Descriptor source = OpenListed(entry.key);
  struct stat facts {};
  if (!source.ok() && (errno == ELOOP || errno == ENXIO)) return NoFileAnyMore();
  if (!source.ok() || fstat(source.get(), &facts) != 0) return ErrnoStatus(errno, entry.key);
  if (!S_ISREG(facts.st_mode)) return NoFileAnyMore();
  executable_ = (facts.st_mode & S_IXUSR) != 0;
  if (LocalVersion(facts) != entry.version || static_cast<uint64_t>(facts.st_size) != entry.size) {
    entry.version = LocalVersion(facts);
    entry.size = static_cast<uint64_t>(facts.st_size);
    entry.expected.reset();  // that hash was of the old content
    return absl::AbortedError(fmt::format("{} has changed", entry.key));
  }
  if (!options_.hard_links && staging_.IsWhole(moved_.name)) {
    const StagedHash* noted = staging_.HashOf(moved_.name);
    auto found = Recheck(staging_, moved_.name,
                         {entry.size, entry.expected, noted == nullptr ? StagedHash() : *noted, options_.verify},
                         buffer_, shared_->stop);
    if (found.ok()) {
      moved_.hash = std::move(found->hash);
      moved_.verified = found->verified;
      shared_->kept += entry.size;
      return absl::OkStatus();
    }
    if (absl::IsCancelled(found.status())) return found.status();
    staging_.Drop(moved_.name);
    if (!shared_->said_damaged.exchange(true)) notes_.push_back(DamageText(entry.key, found.status()));
  }
  if (options_.hard_links) {
    MUSTER_RETURN_IF_ERROR(staging_.LinkWhole(moved_.name, entry.key));
    MUSTER_ASSIGN_OR_RETURN(const struct stat linked, staging_.FactsOf(moved_.name));
    if (LocalVersion(linked) != entry.version) return absl::AbortedError(fmt::format("{} has changed", entry.key));
    shared_->copied += entry.size;
    MUSTER_RETURN_IF_ERROR(HashWhole(source.get()));
  } else {
    MUSTER_RETURN_IF_ERROR(IsSmall(entry) ? Small(source.get()) : Large(source.get()));
  }
  if (fstat(source.get(), &facts) == 0 && LocalVersion(facts) == entry.version) return absl::OkStatus();
  return absl::AbortedError(fmt::format("{} has changed while it was copied", entry.key));
}

Status Copying::NoFileAnyMore() const {
  return absl::AbortedError(
      fmt::format("{} has become a link, or no file, since it was listed: start it again", moved_.entry.key));
}

Status Copying::HashWhole(int file) {
  if (!options_.verify) return absl::OkStatus();
  auto hash =
      HashContent(ReadAtOf(file), moved_.entry.size, moved_.entry.expected, buffer_, [this] { return Stopped(); });
  if (!hash.ok()) return Annotate(hash.status(), moved_.entry.key);
  moved_.hash = std::move(hash->described);
  moved_.verified = moved_.entry.expected.has_value();
  mismatch_ = std::move(hash->mismatch);
  return absl::OkStatus();
}

Status Copying::Small(int source) {
  size_t have = 0;
  const ReadAt read = ReadAtOf(source);
  while (have < moved_.entry.size) {
    MUSTER_ASSIGN_OR_RETURN(size_t got, read(have, buffer_.data() + have, moved_.entry.size - have));
    if (got == 0) return absl::AbortedError(fmt::format("{} has become shorter", moved_.entry.key));
    have += got;
  }
  shared_->copied += have;
  const std::string_view bytes(buffer_.data(), have);
  if (options_.verify) {
    const auto& expected = moved_.entry.expected;
    Verifier verifier(have, expected);
    PieceHash hash(verifier.kind(), std::max<uint64_t>(1, verifier.PieceSize()), 0);
    hash.Update(bytes);
    TakeHash(hash, verifier);
    if (mismatch_) return absl::OkStatus();
  }
  return staging_.WriteWhole(moved_.name, bytes, {moved_.hash, moved_.verified}, false);
}

void Copying::TakeHash(PieceHash& hash, Verifier& verifier) {
  const auto& expected = moved_.entry.expected;
  for (auto& value : hash.Finish()) verifier.Add(value.offset, value.length, std::move(value.value));
  moved_.hash = Describe({verifier.kind(), verifier.Value(), expected ? expected->part_size : 0});
  moved_.verified = expected.has_value();
  mismatch_ = verifier.Mismatch();
}

Status Copying::Large(int source) {
  const uint64_t size = moved_.entry.size;
  MUSTER_ASSIGN_OR_RETURN(auto staged, staging_.OpenUnreserved(moved_.name, size));
  MUSTER_ASSIGN_OR_RETURN(bool done, Clone(source, *staged));
  if (!done) MUSTER_RETURN_IF_ERROR(staged->Reserve());
  if (!done && !options_.verify) {
    MUSTER_ASSIGN_OR_RETURN(done, InKernel(source, *staged));
  }
  if (!done) MUSTER_RETURN_IF_ERROR(ByHand(source, *staged));
  if (mismatch_) return staged->Forget();
  return staged->Finish({moved_.hash, moved_.verified}, false);
}

StatusOr<bool> Copying::Clone(int source, StagedFile& staged) {
  if (!staged.CloneFrom(source)) return false;
  MUSTER_RETURN_IF_ERROR(staged.Forget());
  shared_->copied += moved_.entry.size;
  MUSTER_RETURN_IF_ERROR(HashWhole(source));
  return true;
}

StatusOr<bool> Copying::InKernel(int source, StagedFile& staged) {
  for (uint64_t at = 0; at < moved_.entry.size;) {
    if (Stopped()) return absl::CancelledError("stopped");
    auto copied = staged.CopyFrom(source, at, kKernelCopy);
    if (copied.status().code() == absl::StatusCode::kUnimplemented && at == 0) return false;
    MUSTER_RETURN_IF_ERROR(copied.status());
    if (*copied == 0 && at == 0) return false;  // some kernels say 0 for files that they cannot copy: read it instead
    if (*copied == 0) return absl::AbortedError(fmt::format("{} has become shorter", moved_.entry.key));
    at += *copied;
    shared_->copied += *copied;
  }
  return true;
}

// Reads back a range that an earlier start has noted at `offset`. False: there is none, or its bytes have changed.
bool Copying::ReadBack(StagedFile& staged, uint64_t offset, size_t* length) {
  for (const StagedRange& note : staged.noted()) {
    if (note.range.offset != offset || note.range.length > buffer_.size()) continue;
    auto got = staged.Read(offset, buffer_.data(), note.range.length);
    *length = note.range.length;
    return got.ok() && *got == *length && Crc32c(0, {buffer_.data(), *length}) == note.crc32c;
  }
  return false;
}

Status Copying::ByHand(int source, StagedFile& staged) {
  const auto& expected = moved_.entry.expected;
  Verifier verifier(moved_.entry.size, expected);
  PieceHash hash(verifier.kind(), verifier.PieceSize(), 0);
  const ReadAt read = ReadAtOf(source);
  for (uint64_t at = 0; at < moved_.entry.size;) {
    if (Stopped()) return absl::CancelledError("stopped");
    size_t length = 0;
    if (ReadBack(staged, at, &length)) {
      shared_->kept += length;
    } else {
      MUSTER_ASSIGN_OR_RETURN(length, read(at, buffer_.data(), buffer_.size()));
      if (length == 0) return absl::AbortedError(fmt::format("{} has become shorter", moved_.entry.key));
      MUSTER_RETURN_IF_ERROR(staged.Write(at, {buffer_.data(), length}));
      MUSTER_RETURN_IF_ERROR(staged.Note({{at, length}, Crc32c(0, {buffer_.data(), length})}));
      shared_->copied += length;
    }
    if (options_.verify) hash.Update({buffer_.data(), length});
    at += length;
  }
  if (!options_.verify) return absl::OkStatus();
  TakeHash(hash, verifier);
  return absl::OkStatus();
}

class LocalCopy final : public Mover {
 public:
  LocalCopy(asio::io_context& loop, Staging& staging, DiskPool& pool, LocalCopyOptions options, MoveEvents events)
      : loop_(loop), staging_(staging), pool_(pool), options_(std::move(options)), events_(std::move(events)) {}
  ~LocalCopy() override { shared_->stop = true; }

  void Add(const std::vector<Entry>& entries) override {
    for (const Entry& entry : entries) {
      ++counts_.files;
      counts_.bytes += entry.size;
      queue_.Push(entry);
    }
    Dispatch();
  }
  void EndOfList() override {
    listed_ = true;
    asio::post(loop_, [this, alive = std::weak_ptr<bool>(alive_)] {
      if (!alive.expired()) Dispatch();
    });
  }
  const MoveCounts& counts() const override {
    counts_.bytes_received = shared_->copied;
    counts_.bytes_kept = shared_->kept;
    counts_.bytes_done = std::min(counts_.bytes, counts_.bytes_received + counts_.bytes_kept);
    return counts_;
  }

 private:
  void Dispatch();
  void Start(Entry entry, std::shared_ptr<Block> block);
  void Done(Copying& copying, const Status& status);
  void End(Status status);

  asio::io_context& loop_;
  Staging& staging_;
  DiskPool& pool_;
  const LocalCopyOptions options_;
  MoveEvents events_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  mutable MoveCounts counts_;
  EntryQueue queue_;
  int busy_ = 0;
  bool listed_ = false;
  bool ended_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

void LocalCopy::Dispatch() {
  while (!ended_ && !queue_.empty() && busy_ < kMostAtOnce) {
    auto block = pool_.blocks().Take();
    if (!block) break;  // each running copy has a block, and calls Dispatch when it ends
    Start(queue_.Pop(), std::move(block));
  }
  if (listed_ && queue_.empty() && busy_ == 0) End(absl::OkStatus());
}

void LocalCopy::Start(Entry entry, std::shared_ptr<Block> block) {
  ++busy_;
  struct Work {
    Copying copying;
    std::shared_ptr<Block> block;
    std::shared_ptr<Shared> shared;
    Status status;
  };
  const std::span<char> buffer(block->data, kBlockBytes);
  auto work = std::make_shared<Work>(Work{Copying(staging_, options_, std::move(entry), buffer, shared_.get()),
                                          std::move(block), shared_, absl::OkStatus()});
  auto strand = pool_.NewStrand();
  pool_.Run(
      strand, [work] { work->status = work->copying.Run(); },
      [this, work, alive = std::weak_ptr<bool>(alive_)] {
        work->block.reset();  // for the next file
        if (!alive.expired()) Done(work->copying, work->status);
      });
}

void LocalCopy::Done(Copying& copying, const Status& status) {
  --busy_;
  if (ended_) return;
  for (const std::string& note : copying.notes()) events_.say(note);
  counts_.changed += static_cast<uint64_t>(copying.changes());
  counts_.refetched += static_cast<uint64_t>(copying.refetched());
  if (!status.ok()) return End(status);
  ++counts_.files_done;
  events_.file(std::move(copying.moved()));
  Dispatch();
}

void LocalCopy::End(Status status) {
  if (std::exchange(ended_, true)) return;
  shared_->stop = true;
  asio::post(loop_, [this, status = std::move(status), alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) events_.end(status);
  });
}

}  // namespace

bool ComesWithoutRoom(Staging& staging, const Entry& entry, bool hard_links) {
  return hard_links || (!IsSmall(entry) && staging.CanClone(entry.key));
}

std::unique_ptr<Mover> MakeLocalCopy(asio::io_context& loop, Staging& staging, DiskPool& pool, LocalCopyOptions options,
                                     MoveEvents events) {
  return std::make_unique<LocalCopy>(loop, staging, pool, std::move(options), std::move(events));
}

}  // namespace muster::initializers
