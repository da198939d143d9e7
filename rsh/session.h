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
    std::function<void(const std::string& obstacle)> waiting;  // what stands in the way, whenever that changes
    std::function<void()> started;
    std::function<void(bool err, Bytes bytes)> output;  // nothing more comes until Continue()
    std::function<void()> room;                         // InputRoom() has grown
    std::function<void(const Ended&)> ended;            // by itself: the command's code. Or, with a reason:
    //   200 not reached in time, 78 it may not be reached (token, TLS, version), 202 the connection was lost
    // `ended` comes once, as the last call.
  };

  Session(boost::asio::io_context& loop, net::GrpcQueue& queue, net::Resolver& resolver, Options options,
          Events events);
  ~Session();  // the other end sees its caller go
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void Continue();           // there is room for output again
  size_t InputRoom() const;  // bytes that Write takes now; 0 before it has started
  void Write(grpc::Slice bytes);
  void EndInput();
  void Signal(int signal);  // lost before the command has started

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rsh
