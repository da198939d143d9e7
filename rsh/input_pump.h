// Reads a descriptor that is shared with others - our stdin - as fast as somebody takes it, without blocking the loop
// and without touching the descriptor's flags. Loop thread only.
#pragma once

#include <grpcpp/support/slice.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

namespace muster::rsh {

class InputPump {
 public:
  struct Events {
    std::function<size_t()> room;            // bytes that are taken now
    std::function<void(grpc::Slice)> bytes;  // at most that many
    std::function<void()> ended;             // end of file, or an error: once
  };
  InputPump(boost::asio::io_context& loop, int descriptor, Events events);
  ~InputPump();
  InputPump(const InputPump&) = delete;
  InputPump& operator=(const InputPump&) = delete;

  // There is room now: reads on. Any number of times.
  void Continue();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rsh
