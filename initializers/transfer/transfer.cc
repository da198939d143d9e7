// SPDX-License-Identifier: Apache-2.0
#include "initializers/transfer/transfer.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstring>

#include "base/text.h"
#include "initializers/transfer/transfer_impl.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

constexpr size_t kMostOpen = 8;  // large files open at once: each has descriptors, and pages in the page cache
// How far the bytes of a file that is hashed in order may be ahead of the hash. If the hash is too slow, bytes that do
// not fit into the blocks must be read back. Near the store, more parallel ranges would delay the first one, for which
// the hash waits.
constexpr size_t kBlocksAhead = 40;
constexpr uint64_t kMostAhead = 16 << 20;  // bytes from the hash to the start of the next range

// Receives the bytes of a small file; on the loop.
class BlockIntake final : public http::Intake {
 public:
  explicit BlockIntake(std::shared_ptr<Block> block) : block_(std::move(block)) {}
  Taken Take(std::string_view bytes) override {
    std::memcpy(block_->data + block_->used, bytes.data(), bytes.size());
    block_->used += bytes.size();
    return Taken::kAll;
  }

 private:
  const std::shared_ptr<Block> block_;
};

}  // namespace

Transfer::Impl::Impl(asio::io_context& loop, TransferContext context, TransferOptions options, MoveEvents events)
    : loop_(loop),
      http_(context.small),
      large_http_(context.large),
      provider_(context.provider),
      staging_(context.staging),
      pool_(context.pool),
      options_(std::move(options)),
      events_(std::move(events)),
      request_limit_(Within(options_.request_limit, pool_.blocks().count())),
      range_size_(options_.range),
      ahead_(std::make_shared<Blocks>(loop_, kBlocksAhead)),
      context_{loop_,
               provider_,
               options_.limits,
               options_.retry,
               [this] { return std::uniform_real_distribution<double>(0, 1)(random_); },
               [this](const std::string& text) {
                 ++counts_.retries;
                 events_.say(text);
               },
               [this] { request_limit_.Throttled(MonotonicClock::now()); },
               [this] { ++counts_.requests; }} {}

void Transfer::Impl::Add(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    ++counts_.files;
    counts_.bytes += entry.size;
    queue_.Push(entry);
  }
  Dispatch();
}

void Transfer::Impl::EndOfList() {
  listed_ = true;
  asio::post(loop_, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->EndIfDone();
  });
}

// Running requests end without a callback; work in the pool owns what it needs.
void Transfer::Impl::Stop() {
  ended_ = true;
  *stopped_ = true;
  queue_.Clear();
  for (const auto& file : busy_) Release(file);
  busy_.clear();
  open_.clear();
}

void Transfer::Impl::Release(const std::shared_ptr<File>& file) {
  file->EndLife();
  file->looking.reset();
  file->small.reset();
  file->block.reset();
  for (const auto& range : file->ranges) {
    CountReceived(*range);
    range->fetch.reset();
  }
  active_ -= static_cast<int>(file->ranges.size());
  file->ranges.clear();
}

void Transfer::Impl::Dispatch() {
  if (ended_ || std::exchange(dispatching_, true)) return;
  while (active_ < request_limit_.target() && StartNext()) {
  }
  dispatching_ = false;
}

// True if enough files are fetched in parallel to keep all cores busy. Then each file has one range at a time, and the
// receiving thread hashes it: its bytes need not go to another core, nor wait for it.
bool Transfer::Impl::InPassing() const {
  return range_size_.near() && open_.size() >= static_cast<size_t>(options_.cores);
}

bool Transfer::Impl::StartNext() {
  // Choose the open file with the fewest running ranges; open a new file if each has as many ranges as there are files.
  std::shared_ptr<File> chosen;
  for (const auto& file : open_) {
    if (file->state() != FileState::kReceiving || file->next >= file->entry.size) continue;
    if (file->ordered && InPassing() && !file->ranges.empty()) continue;
    if (file->ordered && (file->hashing || range_size_.near()) && file->next - file->ordered->hashed() > kMostAhead) {
      continue;
    }
    if (!chosen || file->ranges.size() < chosen->ranges.size()) chosen = file;
  }
  const bool room = !queue_.empty() && (queue_.FrontSize() <= kBlockBytes || open_.size() < kMostOpen);
  if (room && (!chosen || !chosen->ranges.empty())) {
    auto file = std::make_shared<File>(queue_.Pop(), pool_.NewStrand());
    busy_.insert(file);
    file->name = Staging::NameOf(options_.source, file->entry);
    file->large() ? StartLarge(file) : StartSmall(file);
    return true;
  }
  return chosen && StartRange(chosen);
}

Fetch::Taker Transfer::Impl::TakerFor(const std::shared_ptr<File>& file) {
  Fetch::Taker taker;
  taker.expect = [weak = std::weak_ptr<File>(file)](const Expectation& expected) {
    auto file = weak.lock();
    // The hash of a large file is known before its ranges are cut, or never.
    if (file && !file->large() && !file->entry.expected) file->entry.expected = expected;
  };
  taker.failed = [this, weak = std::weak_ptr<File>(file)](const http::Refusal& refusal) {
    if (auto file = weak.lock()) Refused(file, refusal);
  };
  return taker;
}

// True if it is whole from an earlier start. Without a version, or with content in the listing, it comes again.
bool Transfer::Impl::IsStaged(const File& file) const {
  return !file.entry.version.empty() && !file.entry.content && staging_.IsWhole(file.name);
}

// --- small files: one block, one write

void Transfer::Impl::StartSmall(const std::shared_ptr<File>& file) {
  if (IsStaged(*file)) return Open(file);
  file->Apply(FileEvent::kReceive);
  ++active_;
  if (auto block = pool_.blocks().Take()) return FetchSmall(file, std::move(block));
  pool_.blocks().WhenFree([weak = weak_from_this(), file, life = file->life()](std::shared_ptr<Block> block) {
    auto self = weak.lock();
    if (self && !self->ended_ && file->life() == life) self->FetchSmall(file, std::move(block));
  });
}

void Transfer::Impl::FetchSmall(const std::shared_ptr<File>& file, std::shared_ptr<Block> block) {
  file->block = std::move(block);
  if (file->entry.content) {
    file->block->used = std::min(file->entry.content->size(), kBlockBytes);
    std::memcpy(file->block->data, file->entry.content->data(), file->block->used);
  }
  if (file->entry.size == 0 || file->entry.content)
    return Post(file, [this](const std::shared_ptr<File>& file) { SmallDone(file); });
  const std::weak_ptr<File> of = file;
  Fetch::Taker taker = TakerFor(file);
  taker.intake = [of] { return std::make_shared<BlockIntake>(of.lock()->block); };  // `of` lives: its fetch calls
  taker.restart = [of] { of.lock()->block->used = 0; };
  taker.done = [this, of] {
    if (auto file = of.lock()) SmallDone(file);
  };
  file->small = std::make_unique<Fetch>(context_, http_, file->entry, ByteRange{0, file->entry.size}, std::move(taker));
  file->small->Begin();
}

void Transfer::Impl::SmallDone(const std::shared_ptr<File>& file) {
  file->Apply(FileEvent::kFinish);
  --active_;
  const auto block = std::exchange(file->block, nullptr);
  if (!file->entry.content) counts_.bytes_received += block->used;
  struct Outcome {
    Status status;
    std::optional<std::string> mismatch;
    std::string hash;
  };
  auto outcome = std::make_shared<Outcome>();
  auto work = [&staging = staging_, block, outcome, name = file->name, expected = file->entry.expected,
               size = file->entry.size, verify = options_.verify, sync = options_.sync_each] {
    const std::string_view bytes(block->data, block->used);
    if (verify) {
      Verifier verifier(size, expected);
      PieceHash hash(verifier.kind(), verifier.PieceSize(), 0);
      hash.Update(bytes);
      for (auto& value : hash.Finish()) verifier.Add(value.offset, value.length, std::move(value.value));
      outcome->mismatch = verifier.Mismatch();
      outcome->hash = Describe({verifier.kind(), verifier.Value(), expected ? expected->part_size : 0});
    }
    if (!outcome->mismatch) {
      outcome->status = staging.WriteWhole(name, bytes, {outcome->hash, expected.has_value()}, sync);
    }
  };
  Run(file, file->strand, std::move(work), [this, file, outcome] {
    if (!outcome->status.ok()) return Fail(Annotate(outcome->status, file->entry.key));
    Verified(file, outcome->mismatch, std::move(outcome->hash));
  });
  Dispatch();
}

// --- ends of a file

void Transfer::Impl::Verified(const std::shared_ptr<File>& file, const std::optional<std::string>& mismatch,
                              std::string hash) {
  if (mismatch) {
    if (!file->Mismatch()) {
      return Fail(absl::DataLossError(
          fmt::format("{}: {}, also after it was fetched again; nothing was published", file->entry.key, *mismatch)));
    }
    events_.say(fmt::format("{}: {}; fetching it again", file->entry.key, *mismatch));
    ++counts_.refetched;
    // A composite hash is also wrong if the parts have other sizes than assumed.
    file->entry.doubted = file->large() && file->entry.expected->part_size != 0;
    return FetchAgain(file, file->entry.doubted ? FileEvent::kReplace : FileEvent::kRestart);
  }
  if (!file->large()) {
    counts_.bytes_done += file->entry.size;
    const bool busy = active_ >= request_limit_.target() - 1;
    request_limit_.Progressed(file->entry.size, 1, busy, MonotonicClock::now());
    return FileDone(file, std::move(hash));
  }
  auto status = std::make_shared<Status>();
  auto work = [status, staged = file->staged, noted = StagedHash{hash, file->entry.expected.has_value()},
               sync = options_.sync_each] { *status = staged->Finish(noted, sync); };
  Run(file, file->strand, std::move(work), [this, file, status, hash = std::move(hash)] {
    if (!status->ok()) return Fail(Annotate(*status, file->entry.key));
    FileDone(file, hash);
  });
}

void Transfer::Impl::FileDone(const std::shared_ptr<File>& file, std::string hash) {
  file->Apply(FileEvent::kKeep);
  ++counts_.files_done;
  file->staged.reset();
  open_.remove(file);
  busy_.erase(file);
  events_.file({file->entry, file->name, std::move(hash), options_.verify && file->entry.expected.has_value()});
  Dispatch();
  EndIfDone();
}

void Transfer::Impl::Refused(const std::shared_ptr<File>& file, const http::Refusal& refusal) {
  const bool changed = refusal.kind == http::Refusal::Kind::kChanged;
  const bool whole_only = refusal.kind == http::Refusal::Kind::kWholeOnly && file->entry.ranges;
  if (!changed && !whole_only) return Fail(refusal.status);
  // Posted, because the fetch that reported it is on the stack. By `life` it counts once, however many report it.
  Post(file, [this, changed, why = std::string(Message(refusal.status))](const std::shared_ptr<File>& file) {
    if (changed) return Changed(file);
    if (!std::exchange(said_whole_only_, true)) events_.say(fmt::format("{}: a file that is cut off begins anew", why));
    FetchAgain(file, FileEvent::kRestart);
  });
}

void Transfer::Impl::Changed(const std::shared_ptr<File>& file) {
  if (!file->Change()) {
    return Fail(absl::UnavailableError(
        fmt::format("{}: it was overwritten {} times while it was read", file->entry.key, file->changes())));
  }
  ++counts_.changed;
  events_.say(fmt::format("{}: another version is there now; beginning it anew", file->entry.key));
  FetchAgain(file, FileEvent::kReplace);
}

// Fetches the file once more from its start, after the running writes have ended.
void Transfer::Impl::FetchAgain(const std::shared_ptr<File>& file, FileEvent why) {
  if (file->block) --active_;
  Release(file);
  counts_.bytes_done -= std::exchange(file->counted, 0);
  file->Apply(why);
  DiscardIfDrained(file);
}

void Transfer::Impl::DiscardIfDrained(const std::shared_ptr<File>& file) {
  if (!file->Drained()) return;
  const bool old = file->state() == FileState::kDiscarding;
  file->next = 0;
  file->noted.reset();
  file->ordered.reset();
  file->hashing = false;
  file->verifier.reset();
  auto staged = std::exchange(file->staged, nullptr);
  auto discard = [staged, old] {
    if (!staged) return;
    if (old) return staged->Discard();  // frees the space for the next version
    (void)staged->Forget();             // ranges that stay noted are read back and found to be wrong
  };
  Run(file, file->strand, discard, [this, file, old] {
    if (!old) return file->large() ? Open(file) : StartSmall(file);
    if (!file->large()) open_.push_back(file);
    LookAt(file);
  });
}

// Runs `work` on the pool, then `then`, unless the transfer has ended, or the file is fetched again, by then.
void Transfer::Impl::Run(const std::shared_ptr<File>& file, DiskPool::Strand& strand, std::function<void()> work,
                         std::function<void()> then) {
  pool_.Run(strand, std::move(work), [weak = weak_from_this(), file, life = file->life(), then = std::move(then)] {
    auto self = weak.lock();
    if (self && !self->ended_ && file->life() == life) then();
  });
}

// The same without work. `then` must not hold the file.
void Transfer::Impl::Post(const std::shared_ptr<File>& file, std::function<void(const std::shared_ptr<File>&)> then) {
  asio::post(loop_,
             [weak = weak_from_this(), of = std::weak_ptr<File>(file), life = file->life(), then = std::move(then)] {
               auto self = weak.lock();
               auto file = of.lock();
               if (self && file && !self->ended_ && file->life() == life) then(file);
             });
}

void Transfer::Impl::EndIfDone() {
  if (ended_ || !listed_ || !queue_.empty() || !busy_.empty()) return;
  ended_ = true;
  asio::post(loop_, [end = std::move(events_.end)] { end(absl::OkStatus()); });
}

void Transfer::Impl::Fail(Status status) {
  if (ended_) return;
  ended_ = true;
  // Posted, because a fetch may be on the stack.
  asio::post(loop_, [self = shared_from_this(), status = std::move(status)] {
    self->Stop();
    self->events_.end(status);
  });
}

Transfer::Transfer(asio::io_context& loop, TransferContext context, TransferOptions options, MoveEvents events)
    : impl_(std::make_shared<Impl>(loop, context, std::move(options), std::move(events))) {}
Transfer::~Transfer() { impl_->Stop(); }
void Transfer::Add(const std::vector<Entry>& entries) { impl_->Add(entries); }
void Transfer::EndOfList() { impl_->EndOfList(); }
const MoveCounts& Transfer::counts() const { return impl_->counts(); }

}  // namespace muster::initializers
