// SPDX-License-Identifier: Apache-2.0
// Plans a TrainJob with its runtime: a Service and batch/v1 Jobs, with the names and labels of Kubeflow Trainer and
// JobSet. Pure: the same inputs give the same bytes. docs/api.md says what each field does.
//
// A container whose command is known runs under the agent, `muster exec`. An init container copies the agent into an
// emptyDir that both mount. A job without the agent is planned exactly as by upstream.
#pragma once

#include "base/status.h"
#include "controller/plan/plan.h"

namespace muster::controller {

// InvalidArgument: `job` and `runtime` do not fit together, or make more or larger objects than limits.h and sizes.h
// allow; names the path, the value and the remedy. Takes memory for each template once, however many replicas it has.
StatusOr<TrainJobPlan> PlanTrainJob(const TrainJob& job, const Runtime& runtime, const PlanOptions& options);

}  // namespace muster::controller
