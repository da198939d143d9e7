// SPDX-License-Identifier: Apache-2.0
// Runs nvidia-smi while somebody looks at the run, and keeps what it said last. It is a program, not a library, since
// the static agent cannot load one. Where there is none, nothing is known of the GPUs. Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>

#include "agent/live/gpu_use.h"
#include "launcher/reaper.h"

namespace muster::agent {

class GpuWatch {
 public:
  // Both must outlive it.
  GpuWatch(boost::asio::io_context& loop, launcher::Reaper& reaper);
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  void Begin();  // nothing if it runs, or could not be started before
  void End();
  std::map<int, GpuLine> gpus() const;  // by index; empty: nothing is known

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent
