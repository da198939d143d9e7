// Signals that come before anybody can handle them: a pod's TERM in its first milliseconds. To process 1 the kernel
// does not even deliver a signal without a handler: it would be lost, and the pod killed after its grace.
//
// TERM, INT, HUP, QUIT, USR1 and USR2 are held (blocked) before the libraries' own constructors, which take
// milliseconds, and let go of once handlers stand, or where there will be none. Main thread only, before others start.
#pragma once

#include <boost/asio/signal_set.hpp>
#include <vector>

namespace muster::agent {

void HoldSignals();

// Those that cannot be handled (KILL, STOP, what is no signal) are returned: they keep their meaning for us.
std::vector<int> AddSignals(boost::asio::signal_set& set, const std::vector<int>& signals);

// What was held is delivered now. `handled`: signals that have a handler; those are heard even if our parent had
// blocked them. Any number of times.
void ReleaseSignals(const std::vector<int>& handled = {});

}  // namespace muster::agent
