// SPDX-License-Identifier: Apache-2.0
// The ranges of large files: opens the file, reads back, fetches, writes, hashes.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "initializers/facts/crc.h"
#include "initializers/target/recheck.h"
#include "initializers/transfer/transfer_impl.h"

namespace muster::initializers {
namespace {

namespace asio = boost::asio;

constexpr uint64_t kHashedAtOnce = 4 << 20;  // bytes
constexpr Duration kAwaited = std::chrono::milliseconds(5);

}  // namespace

void Transfer::Impl::StartLarge(const std::shared_ptr<File>& file) {
  open_.push_back(file);
  file->entry.known || !options_.verify ? Open(file) : LookAt(file);
}

void Transfer::Impl::LookAt(const std::shared_ptr<File>& file) {
  file->Apply(FileEvent::kLook);
  ++active_;
  ++counts_.requests;
  file->looking = provider_.Look(file->entry, [this, weak = std::weak_ptr<File>(file)](StatusOr<Entry> entry) {
    auto file = weak.lock();
    if (!file || ended_) return;
    --active_;
    if (absl::IsNotFound(entry.status())) {
      return Fail(absl::AbortedError(fmt::format(
          "{}; it was listed, and has been removed meanwhile: start it again, to list anew", Message(entry.status()))));
    }
    if (!entry.ok()) return Fail(entry.status());
    const bool other =
        entry->size != file->entry.size || (!file->entry.version.empty() && entry->version != file->entry.version);
    if (other && file->changes() == 0) {  // Refused has reported a later change
      (void)file->Change();
      ++counts_.changed;
      events_.say(fmt::format("{}: another version is there now than was listed; bringing in that", file->entry.key));
    }
    counts_.bytes += entry->size - file->entry.size;
    file->entry = *std::move(entry);
    file->entry.known = true;
    file->name = Staging::NameOf(options_.source, file->entry);
    Open(file);
  });
}

void Transfer::Impl::Open(const std::shared_ptr<File>& file) {
  if (IsStaged(*file)) return OpenStaged(file);
  file->Apply(FileEvent::kOpen);
  ++active_;
  if (!provider_.GivesRanges()) file->entry.ranges = false;
  file->verifier = std::make_unique<Verifier>(file->entry.size, file->entry.expected);
  const uint64_t piece = std::max<uint64_t>(1, file->verifier->PieceSize());
  const bool one = piece == file->entry.size;
  const bool ordered = one && !file->verifier->AnyRange();
  file->unit = one ? kBlockBytes : piece;
  const bool direct = options_.direct && !ordered && file->unit % kBlockAlignment == 0 && file->entry.ranges &&
                      file->entry.size >= kDirectFrom;
  auto opened = std::make_shared<StatusOr<std::shared_ptr<StagedFile>>>(absl::UnknownError("not yet"));
  auto work = [&staging = staging_, opened, name = file->name, size = file->entry.size, direct] {
    *opened = staging.OpenFile(name, size, direct);
  };
  Run(file, file->strand, std::move(work), [this, file, opened, ordered] {
    --active_;
    if (!opened->ok()) return Fail(Annotate(opened->status(), file->entry.key));
    file->Apply(FileEvent::kReceive);
    file->staged = **std::move(opened);
    file->noted = std::make_shared<const std::vector<StagedRange>>(
        file->entry.version.empty() || !file->entry.ranges ? std::vector<StagedRange>() : file->staged->noted());
    if (ordered && options_.verify) {
      file->ordered = std::make_shared<OrderedHash>(
          file->verifier->kind(), file->entry.size,
          [staged = file->staged](uint64_t offset, char* bytes, size_t length) {
            return staged->Read(offset, bytes, length);
          },
          ahead_);
    }
    if (file->entry.size == 0) return Whole(file);
    Dispatch();
  });
}

// Uses a file that is whole from an earlier start, if its bytes are unchanged.
void Transfer::Impl::OpenStaged(const std::shared_ptr<File>& file) {
  file->Apply(FileEvent::kRecheck);
  ++active_;
  auto found = std::make_shared<StatusOr<StagedHash>>(absl::UnknownError("not yet"));
  if (staging_.IsAdopted(file->name) && file->entry.expected) {
    *found = StagedHash{Describe(*file->entry.expected), true};
    return Post(file, [this, found](const std::shared_ptr<File>& file) { Rechecked(file, *found); });
  }
  const StagedHash* noted = staging_.HashOf(file->name);
  auto work = [&staging = staging_, found, name = file->name, size = file->entry.size, expected = file->entry.expected,
               noted = noted == nullptr ? StagedHash() : *noted, verify = options_.verify, stopped = stopped_] {
    std::string buffer(verify ? kBlockBytes : 0, '\0');
    *found = Recheck(staging, name, {size, expected, noted, verify}, buffer, *stopped);
  };
  Run(file, file->strand, std::move(work), [this, file, found] { Rechecked(file, *found); });
}

void Transfer::Impl::Rechecked(const std::shared_ptr<File>& file, const StatusOr<StagedHash>& found) {
  --active_;
  if (!found.ok()) {
    if (!std::exchange(said_damaged_, true)) events_.say(DamageText(file->entry.key, found.status()));
    staging_.Drop(file->name);
    return file->large() ? Open(file) : StartSmall(file);
  }
  if (found->verified && !file->entry.expected) {  // the source sends the hash only in the answer to a request
    auto expected = ParseExpectation(found->hash);
    if (expected.ok()) file->entry.expected = *std::move(expected);
  }
  counts_.bytes_kept += file->entry.size;
  counts_.bytes_done += file->entry.size;
  FileDone(file, found->hash);
}

ByteRange Transfer::Impl::NextOf(const File& file) const {
  const uint64_t left = file.entry.size - file.next;
  if (!file.entry.ranges) return {file.next, left};
  const bool waits = file.ordered && !InPassing();  // its bytes wait for their turn to be hashed
  const uint64_t most = waits ? range_size_.NextInOrder() : range_size_.Next(left, request_limit_.target());
  return NextRange(file.next, file.entry.size, most, file.unit, *file.noted);
}

bool Transfer::Impl::StartRange(const std::shared_ptr<File>& file) {
  const ByteRange what = NextOf(*file);
  file->next += what.length;
  auto range = std::make_shared<Range>(file, what);
  if (!file->ordered && options_.verify) {
    range->hash = std::make_shared<PieceHash>(file->verifier->kind(), file->verifier->PieceSize(), what.offset);
  }
  file->ranges.push_back(range);
  ++active_;
  const uint64_t ends = file->staged->direct() ? kBlockAlignment : 1;
  const auto notes = NotedIn(what, file->entry.size, kBlockBytes, ends, *file->noted);
  notes.empty() ? FetchRest(range) : ReadBack(range, notes);
  return true;
}

// Reads back the bytes that an earlier start has noted at the beginning of the range; they count if they are unchanged.
void Transfer::Impl::ReadBack(const std::shared_ptr<Range>& range, std::span<const StagedRange> notes) {
  const auto& file = range->file;
  auto have = std::make_shared<uint64_t>(0);
  auto work = [have, notes, owner = file->noted, hash = range->hash, staged = file->staged] {
    std::unique_ptr<char, void (*)(void*)> buffer(static_cast<char*>(std::aligned_alloc(kBlockAlignment, kBlockBytes)),
                                                  &std::free);
    for (const StagedRange& note : notes) {
      auto got = staged->Read(note.range.offset, buffer.get(), note.range.length);
      if (!got.ok() || *got != note.range.length) break;
      const std::string_view bytes(buffer.get(), *got);
      if (Crc32c(0, bytes) != note.crc32c) break;
      if (hash) hash->UpdateKnown(bytes, note.crc32c);
      *have += note.range.length;
    }
  };
  auto strand = pool_.NewStrand();
  Run(file, strand, std::move(work), [this, range, have] {
    range->have = *have;
    counts_.bytes_kept += *have;
    if (range->file->ordered && *have > 0) range->file->ordered->Written({range->range.offset, *have});
    Have(range->file, *have);
    FetchRest(range);
  });
}

void Transfer::Impl::FetchRest(const std::shared_ptr<Range>& range) {
  const ByteRange rest{range->range.offset + range->have, range->range.length - range->have};
  if (rest.length == 0) {
    range->fetched = true;
    return RangeDone(range);
  }
  range->intake = MakeIntake(range, rest);
  Fetch::Taker taker = TakerFor(range->file);
  std::weak_ptr<Range> weak = range;
  taker.intake = [this, weak] { return Lend(weak.lock()); };  // `weak` is alive: its own fetch calls this
  taker.restart = [this, weak] {
    // The bytes so far do not count: Fetch::Taker::restart.
    auto range = weak.lock();
    if (!range) return;
    Post(range->file, [this](const std::shared_ptr<File>& file) {
      if (file->Change()) return FetchAgain(file, FileEvent::kRestart);
      Fail(absl::UnavailableError(
          fmt::format("{}: its server cut it {} times, and gives no version (ETag) or no ranges to continue it with",
                      file->entry.key, file->changes())));
    });
  };
  taker.done = [this, weak] {
    auto range = weak.lock();
    if (!range) return;
    range->fetched = true;
    range_size_.Fetched(range->intake->received(), range->began - range->asked, MonotonicClock::now() - range->began);
    RangeDone(range);
  };
  range->asked = MonotonicClock::now();
  range->fetch = std::make_unique<Fetch>(context_, large_http_, range->file->entry, rest, std::move(taker));
  range->fetch->Begin();
}

// The intake calls its owner on the receiving thread; `tell` posts to the loop.
std::shared_ptr<RangeIntake> Transfer::Impl::MakeIntake(const std::shared_ptr<Range>& range, ByteRange rest) {
  const auto tell = [&loop = loop_, self = weak_from_this(), of = std::weak_ptr<Range>(range)](auto call) {
    asio::post(loop, [self, of, call = std::move(call)] {
      auto transfer = self.lock();
      auto range = of.lock();
      if (transfer && !transfer->ended_ && range && range->file->life() == range->life) call(*transfer, range);
    });
  };
  const auto starved = [tell] {
    tell([](Impl& transfer, const std::shared_ptr<Range>& range) { transfer.Starved(range); });
  };
  const auto written = [tell](ByteRange what, Status status) {
    tell([what, status = std::move(status)](Impl& transfer, const std::shared_ptr<Range>& range) {
      if (!status.ok()) return transfer.Fail(Annotate(status, range->file->entry.key));
      transfer.CountReceived(*range);
      transfer.Have(range->file, what.length);
    });
  };
  return std::make_shared<RangeIntake>(rest, pool_.blocks(), range->file->staged,
                                       RangeIntake::Hashes{range->hash, range->file->ordered, InPassing()},
                                       RangeIntake::Owner{starved, written});
}

// Lends the intake to one answer, which may write until it releases it, also after it was cancelled.
std::shared_ptr<http::Intake> Transfer::Impl::Lend(const std::shared_ptr<Range>& range) {
  ++range->writing;
  range->file->Lend();
  if (range->began == TimePoint()) range->began = MonotonicClock::now();
  const auto let_go = [&loop = loop_, self = weak_from_this(), file = std::weak_ptr<File>(range->file),
                       of = std::weak_ptr<Range>(range), intake = range->intake](http::Intake*) {
    asio::post(loop, [self, file, of] {
      auto transfer = self.lock();
      auto locked = file.lock();
      if (transfer && !transfer->ended_ && locked) transfer->DoneWith(locked, of.lock());
    });
  };
  return {range->intake.get(), let_go};
}

void Transfer::Impl::Starved(const std::shared_ptr<Range>& range) {
  pool_.blocks().WhenFree([of = std::weak_ptr<Range>(range)](std::shared_ptr<Block> block) {
    auto range = of.lock();
    if (!range) return;
    range->intake->Give(std::move(block));
    if (range->fetch) range->fetch->Resume();
  });
}

void Transfer::Impl::Have(const std::shared_ptr<File>& file, uint64_t bytes) {
  counts_.bytes_done += bytes;
  file->counted += bytes;
  if (file->ordered) HashOn(file);
}

// Hashes, on one thread, the bytes that are next in order and those that arrive meanwhile. If hashing is the slowest
// step, each change of threads would cost time, and so would each message over the loop. It works in parts: a stop
// waits for one part only, and each part makes room for a range.
void Transfer::Impl::HashOn(const std::shared_ptr<File>& file) {
  if (file->hashing || file->ordered->written() <= file->ordered->hashed()) return;
  file->hashing = true;
  auto status = std::make_shared<Status>();
  const Duration awhile = open_.size() == 1 ? kAwaited : Duration::zero();  // else other files need the thread
  auto work = [&loop = loop_, self = weak_from_this(), status, ordered = file->ordered, stopped = stopped_, awhile] {
    while (status->ok() && !*stopped && ordered->AwaitMore(awhile)) {
      const uint64_t end = std::min(ordered->written(), ordered->hashed() + kHashedAtOnce);
      *status = ordered->HashTo(end);
      asio::post(loop, [self] {
        if (auto transfer = self.lock()) transfer->Dispatch();
      });
    }
  };
  Run(file, file->strand, std::move(work), [this, file, status] {
    if (!status->ok()) return Fail(Annotate(*status, file->entry.key));
    file->hashing = false;
    HashOn(file);
    WholeIfDone(file);
    Dispatch();
  });
}

void Transfer::Impl::CountReceived(Range& range) {
  if (!range.intake) return;
  const uint64_t received = range.intake->received();
  counts_.bytes_received += received - std::exchange(range.counted, received);
}

// A lent intake was released and writes no more. `range`: its range; null: that is gone.
void Transfer::Impl::DoneWith(const std::shared_ptr<File>& file, const std::shared_ptr<Range>& range) {
  file->GiveBack();
  if (file->draining()) return DiscardIfDrained(file);
  if (!range || file->life() != range->life) return;
  --range->writing;
  CountReceived(*range);
  RangeDone(range);
}

void Transfer::Impl::RangeDone(const std::shared_ptr<Range>& range) {
  if (!range->fetched || range->writing > 0) return;
  const auto& file = range->file;
  if (range->hash) {
    for (auto& value : range->hash->Finish()) file->verifier->Add(value.offset, value.length, std::move(value.value));
  }
  const bool busy = active_ >= request_limit_.target();
  --active_;
  file->ranges.remove(range);
  request_limit_.Progressed(range->range.length, 1, busy, MonotonicClock::now());
  WholeIfDone(file);
  Dispatch();
}

void Transfer::Impl::WholeIfDone(const std::shared_ptr<File>& file) {
  const bool fetched = file->next >= file->entry.size && file->ranges.empty();
  if (fetched && (!file->ordered || (!file->hashing && file->ordered->hashed() == file->entry.size))) Whole(file);
}

void Transfer::Impl::Whole(const std::shared_ptr<File>& file) {
  file->Apply(FileEvent::kFinish);
  if (!options_.verify) return Verified(file, std::nullopt, "");
  if (file->ordered) {
    file->verifier->Add(0, file->entry.size, file->ordered->Finish());
  }
  const auto& expected = file->entry.expected;
  Verified(file, file->verifier->Mismatch(),
           Describe({file->verifier->kind(), file->verifier->Value(), expected ? expected->part_size : 0}));
}

}  // namespace muster::initializers
