#include "initializers/unpackers.h"

#include <algorithm>
#include <atomic>

#include "initializers/archive_reader.h"

namespace muster::initializers {
namespace {

constexpr size_t kZstdAtOnce = 2;  // archives: each takes a window of memory, 8 MiB where nobody asked for more

}  // namespace

struct Unpackers::Shared {
  Staging& staging;
  const UnpackOptions options;
  std::atomic<bool> stop = false;
};

Unpackers::Unpackers(DiskPool& pool, int count, Staging& staging, UnpackOptions options, Done done)
    : pool_(pool), done_(std::move(done)), shared_(new Shared{staging, std::move(options)}) {
  for (int i = 0; i < count; ++i) strands_.push_back(pool_.NewStrand());
}

Unpackers::~Unpackers() { Stop(); }

void Unpackers::Stop() { shared_->stop = true; }

void Unpackers::Add(MovedFile archive) {
  struct Job {
    MovedFile archive;
    StatusOr<Unpacked> unpacked = absl::UnknownError("not yet");
  };
  auto job = std::make_shared<Job>();
  job->archive = std::move(archive);
  const size_t all = strands_.size();
  const size_t among = IsZstdName(job->archive.entry.path) ? std::min(kZstdAtOnce, all) : all;
  pool_.Run(
      strands_[busy_++ % among],
      [job, shared = shared_] { job->unpacked = Unpack(shared->staging, job->archive, shared->options, shared->stop); },
      [this, job, alive = std::weak_ptr<Shared>(shared_)] {
        if (alive.expired()) return;
        --busy_;
        done_(job->archive, std::move(job->unpacked));
      });
}

}  // namespace muster::initializers
