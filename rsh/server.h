// SPDX-License-Identifier: Apache-2.0
// The pod's end of the remote shell: runs the commands of callers, and receives the launcher's verdict.
//
// A session lives as long as its caller's stream. If the stream breaks, the command's process group gets TERM, and KILL
// after the grace. Loop thread only. The Reaper and the Console must outlive the Server.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/console.h"
#include "launcher/reaper.h"
#include "net/credentials.h"
#include "rsh/protocol.h"

namespace muster::rsh {

class Server {
 public:
  struct Options {
    std::string host;  // numeric address to bind; empty: every address
    int port = 0;      // 0: the kernel chooses
    net::Credentials credentials;
    std::vector<std::string> environment;  // of the commands: "KEY=VALUE", complete
    Duration grace = std::chrono::seconds(25);
    // How long a stream may wait with its first message. Then it is closed.
    Duration greeting = std::chrono::seconds(10);
  };
  struct Events {
    // The launcher's job is over. Called once, at the end of the stream that brought the verdict and got the answer.
    std::function<void(const Verdict&)> verdict;
    // A launcher's agent came or went: a sentence for the log.
    std::function<void(const std::string&)> say;
  };

  // Binds and serves. AlreadyExists: the port is taken. InvalidArgument: `host` is not a numeric address.
  static StatusOr<std::unique_ptr<Server>> Serve(boost::asio::io_context& loop, launcher::Reaper& reaper,
                                                 launcher::Console& console, Options options, Events events);
  ~Server();  // kills the processes that are left
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  int sessions() const;  // commands that have a caller, or a process left
  // Accepts no new session. Every command gets `signal`, and KILL after `grace`. `done` is called, never from within
  // this call, when no process is left and the callers know how their commands ended; for the latter it waits two
  // seconds at most. A second call with a shorter grace shortens the grace; the first `done` stays.
  void Stop(int signal, Duration grace, std::function<void()> done);

 private:
  class Impl;
  explicit Server(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rsh
