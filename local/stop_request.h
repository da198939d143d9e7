// SPDX-License-Identifier: Apache-2.0
// What signals to `muster local` ask of the run. Pure.
#pragma once

namespace muster::local {

// SIGHUP, which comes when the terminal is closed, is SIGTERM: the pods have their grace. A terminal may send it twice,
// so it never shortens the grace. `muster stop --now` sends SIGUSR1, so that the order of two signals does not matter.
class StopRequest {
 public:
  enum class Answer { kNothing, kStop, kKill };
  Answer Take(int signal);

  // The signal that stopped the run, SIGTERM for SIGUSR1; 0: none has come.
  int signal() const { return signal_; }

 private:
  int signal_ = 0;
};

}  // namespace muster::local
