// SPDX-License-Identifier: Apache-2.0
// A coroutine that runs a command without input and returns its output.
//
// Loop thread only. The command is killed when the coroutine is cancelled or this process ends (guarded_process.h).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/environment.h"
#include "base/status.h"

namespace muster {

struct CommandAnswer {
  int code = 0;            // 128 + n for a signal
  std::string out;         // all of stdout
  std::string complaints;  // the last lines of stderr, quoted, for people; empty: none
};

// Stdin of the command is empty. The coroutine returns when the command ends, even if its children still hold its
// pipes. It kills the command and its process group after `time`, or after more than `most` bytes on stdout.
//
// Errors: those of StartGuarded; DeadlineExceeded after `time`; FailedPrecondition after too much output. The message
// contains the end of stderr, but nothing of stdout. Throws boost::system::system_error only if the coroutine is
// cancelled.
boost::asio::awaitable<StatusOr<CommandAnswer>> AskedCommand(std::vector<std::string> words, Environment environment,
                                                             size_t most, Duration time);

}  // namespace muster
