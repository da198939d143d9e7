// SPDX-License-Identifier: Apache-2.0
// Reads a descriptor (our stdin) as fast as the consumer takes the bytes. Never blocks the loop, and never changes the
// descriptor's flags, since other processes may share it. Loop thread only.
#pragma once

#include <grpcpp/support/slice.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

namespace muster::rsh {

class InputPump {
 public:
  struct Events {
    std::function<size_t()> room;            // bytes that the consumer takes now
    std::function<void(grpc::Slice)> bytes;  // at most that many
    std::function<void()> ended;             // end of file, or an error: once
  };
  InputPump(boost::asio::io_context& loop, int descriptor, Events events);
  ~InputPump();
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

  // There is room now: reads on. May be called any number of times.
  void Continue();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rsh
