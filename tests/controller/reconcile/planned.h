// A planned Job of the TrainJob `a`, with the fields that reconcile reads.
#pragma once

#include <string>

#include "base/text.h"
#include "controller/plan/plan.h"

namespace muster::controller {

inline PlannedJob Planned(const std::string& rjob, Step step, int pods, bool agent) {
  PlannedJob planned;
  planned.name = fmt::format("a-{}-0", rjob);
  planned.replicated_job = rjob;
  planned.step = step;
  planned.are_nodes = step == Step::kTrainer;
  planned.pods = pods;
  planned.agent = agent;
  planned.restart = agent ? RestartPolicy::kExitCode : RestartPolicy::kOwn;
  planned.common = PackedJson(
      Json{{"metadata", {{"name", planned.name}, {"labels", Json::object()}, {"annotations", Json::object()}}},
           {"spec", {{"template", {{"metadata", Json::object()}, {"spec", {{"containers", Json::array()}}}}}}}});
  return planned;
}

}  // namespace muster::controller
