// SPDX-License-Identifier: Apache-2.0
// What a user does about a failure: one clause for people, such as "see kubectl logs -n ml a-node-0-1-x7k2p -c node".
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "controller/reconcile/observed.h"

namespace muster::controller {

// `pod`: failure.pod. `never_started`: the command of failure.container could not be started. Empty: there is nothing
// to do, since a new pod replaces one that was ended from outside.
std::string NextStep(const Failure& failure, const ObservedPod& pod, bool never_started);

// The same for a pod that does not start. `reason`, `message`: of a container that waits, or of an Event. Empty: they
// are all that is known.
std::string_view NextStepOfWait(std::string_view reason, std::string_view message);

// Whether `end` says that the container's command could not be started.
bool NeverStarted(const ObservedEnd& end);

}  // namespace muster::controller
