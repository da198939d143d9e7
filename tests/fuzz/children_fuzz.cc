// SPDX-License-Identifier: Apache-2.0
// libFuzzer: a Job from a watch (first byte 'j'), or one of its pods, and the description of its failure; or a Job
// whose pod is replaced ('n').
#include "base/text.h"
#include "controller/plan/pod_object.h"
#include "controller/reconcile/failure.h"
#include "tests/fuzz/input.h"

namespace muster::controller {
namespace {

constexpr int kDeepest = 100;
constexpr size_t kMostText = 8192;
constexpr int kBudget = 3;

void AJob(const Json& object) {
  const auto job = ReadJob(object);
  if (!job.ok()) return;
  Must(job->attempt >= 0 && job->active >= 0 && job->failed >= 0);
  for (const auto& [from, to] : job->completed) Must(0 <= from && from <= to);
}

void APod(const Json& object) {
  const auto pod = ReadPod(object);
  if (!pod.ok()) return;
  Must(!pod->index || *pod->index >= 0);
  PlannedJob planned;
  planned.agent = true;
  planned.step = Step::kTrainer;
  std::vector<PodFailure> failures;
  if (auto failure = FailureOf(*pod, RulesOf(*pod, planned))) failures.push_back(*std::move(failure));
  const int used = RestartsUsed({&*pod}, failures, kBudget);
  Must(0 <= used && used <= kBudget + 1);
  const PodFailure* cause = RootCause(failures);
  if (cause == nullptr) return;
  for (const char byte : cause->failure.message) {
    const auto code = static_cast<unsigned char>(byte);
    Must(code >= 0x20 && code != 0x7F);
  }
  Must(cause->failure.message.size() < kMostText);
  Must(!Describe(cause->failure).empty());
}

void ANewPod(const Json& object) {
  const auto pod = PodOfJob(object, 1, "name");
  if (pod.ok()) Must((*pod)["metadata"]["name"] == "name");
}

}  // namespace
}  // namespace muster::controller

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::controller;
  const auto [choice, text] = Choose(data, size);
  const auto object = muster::ReadJson(text, kDeepest);
  if (!object.ok()) return 0;
  switch (choice) {
    case 'j':
      AJob(*object);
      break;
    case 'n':
      ANewPod(*object);
      break;
    default:
      APod(*object);
  }
  return 0;
}
