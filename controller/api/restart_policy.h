// What a failure of a job's pod means. docs/restarts.md, docs/pytorchjob.md.
#pragma once

namespace muster::controller {

enum class RestartPolicy {
  kOwn,       // what the Job itself says: restartPolicy, backoffLimit ...
  kExitCode,  // a fatal code fails the job; of others the pod is replaced
  kOnFailure,
  kNever,  // it fails the job
  kAlways
};

}  // namespace muster::controller
