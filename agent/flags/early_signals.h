// SPDX-License-Identifier: Apache-2.0
// Signals that come before there are handlers, such as a pod's SIGTERM in its first milliseconds. The kernel does not
// deliver a signal without a handler to process 1: the signal would be lost, and the pod killed after its grace.
//
// SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are held (blocked) before the constructors of libraries run,
// which take milliseconds. They are released when the handlers are installed, or when it is clear that there will be
// none. Main thread only, before other threads start.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <vector>

namespace muster::agent {

void HoldSignals();

// Adds `signals` to `set`. Returns those that cannot be handled (SIGKILL, SIGSTOP, no signal), which act as usual.
std::vector<int> AddSignals(boost::asio::signal_set& set, const std::vector<int>& signals);

// Delivers the signals that were held. `handled`: signals that have a handler; they are unblocked even if the parent
// process had blocked them. May be called any number of times.
void ReleaseSignals(const std::vector<int>& handled = {});

}  // namespace muster::agent
