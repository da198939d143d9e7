// SPDX-License-Identifier: Apache-2.0
#include "agent/flags/early_signals.h"

#include <csignal>

namespace muster::agent {
namespace {

constexpr int kHeld[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
sigset_t before_hold;  // the mask that the parent process gave; empty if HoldSignals() has not run

}  // namespace

void HoldSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (int signal : kHeld) sigaddset(&held, signal);
  pthread_sigmask(SIG_BLOCK, &held, &before_hold);
}

std::vector<int> AddSignals(boost::asio::signal_set& set, const std::vector<int>& signals) {
  std::vector<int> refused;
  for (int signal : signals) {
    boost::system::error_code error;
    set.add(signal, error);
    if (error) refused.push_back(signal);
  }
  return refused;
}

void ReleaseSignals(const std::vector<int>& handled) {
  sigset_t released;
  sigemptyset(&released);
  for (int signal : kHeld) {
    if (sigismember(&before_hold, signal) == 0) sigaddset(&released, signal);
  }
  for (int signal : handled) sigaddset(&released, signal);
  pthread_sigmask(SIG_UNBLOCK, &released, nullptr);
}

}  // namespace muster::agent
