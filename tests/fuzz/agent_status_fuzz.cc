// SPDX-License-Identifier: Apache-2.0
// libFuzzer: an agent's answer to the controller, of a pod of a running job.
#include "base/text.h"
#include "controller/reconcile/agent_status.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  using namespace muster::controller;
  const WallTime now = WallTime(std::chrono::seconds(1'800'000'000));
  const auto answer = ReadAgentStatus("uid", {reinterpret_cast<const char*>(data), size}, now);
  MustBeTold(answer.status());
  if (!answer.ok()) return 0;
  Must(answer->said.pod_uid == "uid" && answer->said.restarts >= 0);
  for (const char c : answer->version) Must((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));  // goes into a URL
  Must(answer->knows || answer->said.lost.empty());
  for (const LostNode& lost : answer->said.lost) Must(!lost.address.empty() && lost.lost <= now);
  if (answer->said.overcome) Must(!WhoFailed(*answer->said.overcome).empty());
  std::optional<AgentsSaid> known;
  TakeNews(answer->said, &known);
  Must(known.has_value() && !TakeNews(std::nullopt, &known) == answer->said.lost.empty());
  return 0;
}
