// SPDX-License-Identifier: Apache-2.0
// What a standby prints while it imports: it goes to the debug log, since no worker has printed it. An event has one
// line, or a piece of one.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>

#include "base/status.h"

namespace muster::agent::standby {

class StandbyOutput {
 public:
  static StatusOr<std::unique_ptr<StandbyOutput>> Open(boost::asio::io_context& loop, int local_rank);
  ~StandbyOutput();
  StandbyOutput(const StandbyOutput&) = delete;
  StandbyOutput& operator=(const StandbyOutput&) = delete;

  // The process's descriptors 1 and 2.
  int writing() const;
  // Call it when the process has them. Closes this process's copy, and begins to read.
  void Started();

 private:
  class Impl;
  explicit StandbyOutput(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent::standby
