// SPDX-License-Identifier: Apache-2.0
// The caller's end of one remote command. Loop thread only; the queue and the resolver must outlive it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "net/credentials.h"
#include "net/grpc_queue.h"
#include "net/resolver.h"
#include "rsh/protocol.h"

namespace muster::rsh {

class Session {
 public:
  struct Options {
    std::string address;  // "host:port"
    net::Credentials credentials;
    Duration timeout = std::chrono::seconds(300);  // until the command has started
    std::string command;
    std::string caller;
  };
  struct Events {
    std::function<void(const std::string& obstacle)> waiting;  // why the pod is not reached yet, at every change
    std::function<void()> started;
    std::function<void(bool err, Bytes bytes)> output;  // nothing more comes until Continue()
    std::function<void()> room;                         // InputRoom() has grown
    // Once, the last call. Has the command's exit code, or, with a reason: 200 the pod was not reached in time, 78 the
    // pod refuses this caller (token, version), 202 the connection was lost.
    std::function<void(const Ended&)> ended;
  };

  Session(boost::asio::io_context& loop, net::GrpcQueue& queue, net::Resolver& resolver, Options options,
          Events events);
  ~Session();  // closes the stream: the pod ends the command
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Continue();           // there is room for output again
  size_t InputRoom() const;  // bytes that Write takes now; 0 before the command has started
  void Write(grpc::Slice bytes);
  void EndInput();
  void Signal(int signal);  // dropped while there is no stream to the pod

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rsh
