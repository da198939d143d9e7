// SPDX-License-Identifier: Apache-2.0
#include "initializers/archives/unpackers.h"

#include <atomic>

namespace muster::initializers {

struct Unpackers::Shared {
  Staging& staging;
  const UnpackOptions options;
  std::atomic<bool> stop = false;
};

Unpackers::Unpackers(DiskPool& pool, int count, Staging& staging, UnpackOptions options, Done done)
    : pool_(pool),
      done_(std::move(done)),
      queue_(static_cast<size_t>(count)),
      shared_(new Shared{staging, std::move(options)}) {}

Unpackers::~Unpackers() { Stop(); }

void Unpackers::Stop() {
  shared_->stop = true;
  queue_.Clear();
}

void Unpackers::Add(MovedFile archive) {
  queue_.Add(std::move(archive));
  Begin();
}

void Unpackers::Begin() {
  struct Job {
    MovedFile archive;
    StatusOr<Unpacked> unpacked = absl::UnknownError("not yet");
  };
  while (auto archive = queue_.Begin()) {
    auto job = std::make_shared<Job>();
    job->archive = *std::move(archive);
    DiskPool::Strand alone = pool_.NewStrand();
    pool_.Run(
        alone,
        [job, shared = shared_] {
          job->unpacked = Unpack(shared->staging, job->archive, shared->options, shared->stop);
        },
        [this, job, alive = std::weak_ptr<Shared>(shared_)] {
          if (alive.expired()) return;
          queue_.End(job->archive);
          Begin();
          done_(job->archive, std::move(job->unpacked));
        });
  }
}

}  // namespace muster::initializers
