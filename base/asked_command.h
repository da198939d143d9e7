// A command that is asked for something, as a coroutine on the loop: run without input, and heard out.
//
// Loop thread only. A coroutine that is cancelled kills it, and so does our end (guarded_process.h).
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
  std::string complaints;  // the last lines of its stderr, quoted, for people; empty: none
};

// Its stdin is at its end. It is over when it ends, whoever of its own still has its pipes open;
// killed with its group where that takes longer than `time`, or where it says more than `most` bytes on stdout.
//
// Errors: as StartGuarded. DeadlineExceeded: it took too long. FailedPrecondition: it said too much. What it said on
// stderr is in the message, what it said on stdout is not. Throws
// boost::system::system_error only where its coroutine is cancelled.
boost::asio::awaitable<StatusOr<CommandAnswer>> AskedCommand(std::vector<std::string> words, Environment environment,
                                                             size_t most, Duration time);

}  // namespace muster
