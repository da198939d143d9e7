// SPDX-License-Identifier: Apache-2.0
// Descriptors that a loop watches.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <string_view>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster {

// Makes `watched` the owner of `descriptor`. If the loop cannot watch it (no memory, a limit of epoll), closes it and
// returns ErrnoStatus with `what`.
inline Status Attach(boost::asio::posix::stream_descriptor& watched, Descriptor descriptor, std::string_view what) {
  boost::system::error_code error;
  watched.assign(descriptor.get(), error);
  if (error) return ErrnoStatus(error.value(), what);
  descriptor.Release();
  return absl::OkStatus();
}

}  // namespace muster
