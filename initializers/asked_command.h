// A command that is asked for something, as a coroutine on the loop (conversation.h): run without input, and heard out.
//
// Loop thread only. It goes with its conversation: one that is cancelled kills it, and so does our end
// (guarded_process.h).
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace muster::initializers {

struct CommandAnswer {
  int code = 0;            // 128 + n for a signal
  std::string out;         // all of stdout
  std::string complaints;  // the last lines of its stderr, quoted, for people; empty: none
};

// Its stdin is at its end, its environment ours. It is over when it ends, whoever of its own still has its pipes open;
// killed with its group where that takes longer than `time`, or where it says more than `most` bytes on stdout.
//
// Errors: as StartGuarded. DeadlineExceeded: it took too long. FailedPrecondition: it said too much. What it said on
// stderr is in the message, what it said on stdout is not. Throws as Asked does.
boost::asio::awaitable<StatusOr<CommandAnswer>> AskedCommand(std::vector<std::string> words, size_t most,
                                                             Duration time);

}  // namespace muster::initializers
