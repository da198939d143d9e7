// SPDX-License-Identifier: Apache-2.0
#include "local/stop_request.h"

#include <csignal>
#include <utility>

namespace muster::local {

StopRequest::Answer StopRequest::Take(int signal) {
  const bool at_once = signal == SIGUSR1;
  const bool first = std::exchange(signal_, signal_ != 0 ? signal_ : at_once ? SIGTERM : signal) == 0;
  if (at_once) return Answer::kKill;
  if (first) return Answer::kStop;
  return signal == SIGHUP ? Answer::kNothing : Answer::kKill;
}

}  // namespace muster::local
