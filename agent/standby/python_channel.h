// SPDX-License-Identifier: Apache-2.0
// The socket to Muster's part of one Python process, and the change of a command line that makes Python run it.
// Loop thread only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/standby/frames.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/status.h"

namespace muster::agent::standby {

enum class Mode { kLearn, kWait, kProbe };  // sitecustomize.py

// What a process needs to run sitecustomize.py: it keeps `descriptors` and has `environment`.
struct PythonStart {
  std::vector<std::string> environment;
  std::vector<int> descriptors;  // borrowed from the channel and the archive, until the process has been started
};

class PythonChannel {
 public:
  // `frame` is called for each frame; `ended` once, when the other side has closed the socket or has sent what is not a
  // frame (`error` then says what).
  struct Events {
    std::function<void(const Frame&)> frame;
    std::function<void(const Status& error)> ended;
  };
  static StatusOr<std::unique_ptr<PythonChannel>> Open(boost::asio::io_context& loop, Events events);
  ~PythonChannel();
  PythonChannel(const PythonChannel&) = delete;
  PythonChannel& operator=(const PythonChannel&) = delete;

  // `environment` with what makes a Python that starts with it run sitecustomize.py. `archive`: start_archive.h.
  // `of_round`: the names of the variables that come with the start.
  PythonStart StartWith(const std::vector<std::string>& environment, Mode mode, int archive,
                        const std::vector<std::string>& of_round) const;
  // Calls these from now on.
  void Redirect(Events events);

  // Call it when the process has been started. Closes this process's copy of its end, and begins to read.
  void Started();

  // Sends a frame, with `descriptors` if there are any. Waits for room in the socket until `deadline`.
  Status Send(std::string_view frame, const std::vector<int>& descriptors, TimePoint deadline);
  // Waits for the answer to a ping that was sent. Blocks until `deadline`; a process that waits answers when it has
  // looked at its files, after milliseconds. Other frames that come meanwhile are lost: call it on a channel that is
  // given up otherwise. FailedPrecondition: what it has imported has changed.
  Status AwaitAnswer(TimePoint deadline);

 private:
  class Impl;
  explicit PythonChannel(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::agent::standby
