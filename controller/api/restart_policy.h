// SPDX-License-Identifier: Apache-2.0
// What a failure of a job's pod leads to. docs/restarts.md, docs/pytorchjob.md.
#pragma once

namespace muster::controller {

enum class RestartPolicy {
  kOwn,       // the Job's own fields decide: restartPolicy, backoffLimit ...
  kExitCode,  // a fatal code fails the job; after another code the pod is replaced
  kOnFailure,
  kNever,  // any failure fails the job
  kAlways
};

}  // namespace muster::controller
