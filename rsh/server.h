// The pod's end of the remote shell: runs what callers ask for, and hears the launcher's verdict.
//
// A session lives as long as its caller's stream: when that breaks, the command's process group gets TERM, and KILL
// after the grace. Loop thread only. The Reaper and the Console must outlive it.
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
    // Ends a session at once where somebody is needed and nobody comes: a stream that says nothing.
    Duration greeting = std::chrono::seconds(10);
  };
  struct Events {
    // The launcher's job is over. Once; the launcher has been told that it was heard.
    std::function<void(const Verdict&)> verdict;
    // A launcher's agent came or went: a sentence for the log.
    std::function<void(const std::string&)> say;
  };

  // Binds and serves. AlreadyExists when the port is taken, InvalidArgument for an address that is none.
  static StatusOr<std::unique_ptr<Server>> Serve(boost::asio::io_context& loop, launcher::Reaper& reaper,
                                                 launcher::Console& console, Options options, Events events);
  ~Server();  // kills what is left
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  int sessions() const;  // with a process left
  // No new session. Every command gets `signal`, and KILL after `grace`; `done` is called once none is left, never from
  // within this call. Callers hear how theirs ended; who does not read it within two seconds is left behind. Calling it
  // again with a shorter grace shortens it; the first `done` stays.
  void Stop(int signal, Duration grace, std::function<void()> done);

 private:
  class Impl;
  explicit Server(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rsh
