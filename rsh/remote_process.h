// SPDX-License-Identifier: Apache-2.0
// Runs one command for a remote caller, in a process group of its own. Its stdin, stdout and stderr are pipes to this
// process. Knows no network.
//
// Loop thread only. Never blocks. Reads nothing from the command before the caller has room for it.
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
  // So many bytes of the input are in the command's pipe, or were dropped because the command closed its stdin.
  std::function<void(size_t bytes)> taken;
  // The command has ended, and everything that it wrote has been handed over. Does not wait for processes that the
  // command left in the background, nor for their output. Once.
  std::function<void(const launcher::ExitRecord&)> ended;
  // No process of the command is left. Once; the last call.
  std::function<void()> gone;
};

class RemoteProcess {
 public:
  RemoteProcess(boost::asio::io_context& loop, launcher::Reaper& reaper, launcher::Console& console,
                RemoteProcessEvents events);
  ~RemoteProcess();  // kills what is left
  RemoteProcess(const RemoteProcess&) = delete;
  RemoteProcess& operator=(const RemoteProcess&) = delete;

  // Starts `sh -c command` in a session of its own; returns its pid. `environment` is complete ("KEY=VALUE"); one entry
  // should be unique, to recognise processes that leave the group. Errors of launcher/process.h; no event follows one.
  StatusOr<int64_t> Start(const std::string& command, std::vector<std::string> environment);

  void Continue();          // the caller has room again
  void Input(Bytes bytes);  // queued; `taken` follows
  void EndInput();          // closes stdin after everything queued
  void Signal(int signal);  // to the whole process group, and to nothing else
  // Sends `signal`, and KILL after `grace`, to the group and to processes that have left it. The events go on.
  void Stop(int signal, Duration grace);
  // The caller has gone: closes the streams. Only `gone` follows.
  void Detach();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::rsh
