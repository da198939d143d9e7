// One command that a caller elsewhere asked for: a process group of its own whose three streams are pipes of ours.
// Knows no network.
//
// Loop thread only. Nothing blocks; nothing is read from the command before there is room for it with the caller.
#pragma once

#include <grpcpp/support/slice.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "launcher/console.h"
#include "launcher/exit_record.h"
#include "launcher/reaper.h"
#include "rsh/protocol.h"

namespace muster::rsh {

struct RemoteProcessEvents {
  // At most kChunk bytes of stdout (or stderr). Nothing more comes until Continue().
  std::function<void(bool err, grpc::Slice bytes)> output;
  // So much of the input is in the command's pipe, or was dropped because it closed its stdin.
  std::function<void(size_t bytes)> taken;
  // The command has ended, and what it had written has been handed over. Processes it left in the background, and what
  // they still write, are not waited for. Once.
  std::function<void(const launcher::ExitRecord&)> ended;
  // No process of it is left. Once; the last call.
  std::function<void()> gone;
};

class RemoteProcess {
 public:
  RemoteProcess(boost::asio::io_context& loop, launcher::Reaper& reaper, launcher::Console& console,
                RemoteProcessEvents events);
  ~RemoteProcess();  // kills what is left
  RemoteProcess(const RemoteProcess&) = delete;
  RemoteProcess& operator=(const RemoteProcess&) = delete;

  // `sh -c command` in a session of its own, with `environment` ("KEY=VALUE", complete; one entry should be this
  // command's alone, so that what leaves its group is known as its). The pid. Errors as of launcher/process.h; no event
  // follows one.
  StatusOr<int64_t> Start(const std::string& command, std::vector<std::string> environment);

  void Continue();          // the caller has room again
  void Input(Bytes bytes);  // queued; `taken` follows
  void EndInput();          // after what is queued
  void Signal(int signal);  // to the whole group, no more
  // To the group, then KILL after `grace`; also to what has left the group. The events go on.
  void Stop(int signal, Duration grace);
  // Nobody listens any more: closes the streams. Only `gone` follows.
  void Detach();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rsh
