// SPDX-License-Identifier: Apache-2.0
// Runs the probes of one container at the times of probe_rule.h, until it is destroyed, and reports the verdicts. Loop
// thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "local/container/probe_ask.h"
#include "local/pod/probe_rule.h"
#include "local/pod/program.h"

namespace muster::local {

class ProbeRun {
 public:
  // `found` gets a verdict that differs from the probe's previous one, with the answer that made it. It gets kUnknown
  // once for each probe, if the probe cannot be run. It is called on the loop, never from inside a call of this class,
  // and may destroy the ProbeRun.
  using Found = std::function<void(ProbeKind kind, const ProbeAnswer& answer)>;

  // Call it when the container has started. `program`, and what `context` refers to, must outlive the ProbeRun.
  ProbeRun(ProbeContext context, const ContainerProgram& program, Found found);
  ~ProbeRun();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace muster::local
