// The probes of one container while it runs: asks when it is time (probe_rule.h), and tells what has been found. Loop
// thread only. It asks until it is destroyed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "controller/local/pod_program.h"
#include "controller/local/probe_ask.h"
#include "controller/local/probe_rule.h"

namespace muster::controller {

class ProbeRun {
 public:
  // `found`: a verdict, with what was said in the answer that made it; only where it is another than the probe's
  // verdict before. kUnknown, once for each probe: it cannot be asked. On the loop, never from inside a call; it may
  // destroy the run.
  using Found = std::function<void(ProbeKind kind, const ProbeAnswer& answer)>;

  // The container has started now. Both outlive it: `program` and what `means` refers to.
  ProbeRun(ProbeMeans means, const ContainerProgram& program, Found found);
  ~ProbeRun();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::controller
