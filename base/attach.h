// Descriptors that a loop watches.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <string_view>

#include "base/descriptors.h"
#include "base/status.h"

namespace muster {

// `watched` owns it from now on. ErrnoStatus of `what` where the loop cannot wait for it (no memory, a limit of
// epoll's): it is closed then.
inline Status Attach(boost::asio::posix::stream_descriptor& watched, Descriptor descriptor, std::string_view what) {
  boost::system::error_code error;
  watched.assign(descriptor.get(), error);
  if (error) return ErrnoStatus(error.value(), what);
  descriptor.Release();
  return absl::OkStatus();
}

}  // namespace muster
