// SPDX-License-Identifier: Apache-2.0
#include "initializers/archives/archive_queue.h"

#include "initializers/archives/archive_reader.h"

namespace muster::initializers {
namespace {

constexpr size_t kZstdAtOnce = 2;  // each needs memory for a window, 8 MiB by default

}  // namespace

ArchiveQueue::Kind& ArchiveQueue::KindOf(const MovedFile& archive) {
  return IsZstdName(archive.entry.path) ? zstd_ : others_;
}

void ArchiveQueue::Add(MovedFile archive) {
  Kind& kind = KindOf(archive);
  kind.waiting.push_back({added_++, std::move(archive)});
}

std::optional<MovedFile> ArchiveQueue::Begin() {
  if (zstd_.going + others_.going >= at_once_) return std::nullopt;
  const bool zstd = !zstd_.waiting.empty() && zstd_.going < kZstdAtOnce;
  if (!zstd && others_.waiting.empty()) return std::nullopt;
  const bool first = zstd && (others_.waiting.empty() || zstd_.waiting.front().number < others_.waiting.front().number);
  Kind& kind = first ? zstd_ : others_;
  MovedFile next = std::move(kind.waiting.front().archive);
  kind.waiting.pop_front();
  ++kind.going;
  return next;
}

void ArchiveQueue::End(const MovedFile& archive) { --KindOf(archive).going; }

}  // namespace muster::initializers
