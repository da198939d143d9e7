// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the body of a request to the webhooks, and their answer.
#include "controller/admission/meaning.h"
#include "controller/admission/mutate.h"
#include "controller/admission/validate_pytorch_job.h"
#include "controller/admission/validate_runtime.h"
#include "controller/admission/validate_train_job.h"
#include "tests/fuzz/input.h"

namespace muster::controller {
namespace {

const WallTime kNow = WallTime(std::chrono::seconds(1'700'000'000));

void Said(const Verdict& verdict) {
  for (const Refusal& refusal : verdict.refusals) Must(!refusal.why.empty() && refusal.code >= 400);
  const Json answer = Json::parse(WriteReview("u", verdict), nullptr, false);
  Must(answer.is_object() && answer["response"]["allowed"] == verdict.refusals.empty());
}

// Checks that the patched object needs no further patch.
void Mutate(AdmissionRequest request, const Json* runtime) {
  const Verdict verdict = MutateTrainJob(request, runtime, kNow);
  Said(verdict);
  if (!verdict.refusals.empty()) return;
  request.object = request.object.patch(verdict.patch);
  Must(MutateTrainJob(request, runtime, kNow).patch.empty());
}

void Judge(const AdmissionRequest& request) {
  const TrainJobFacts known{.runtime = &request.old_object, .snapshot = &request.old_object};
  for (const TrainJobFacts& facts : {TrainJobFacts(), known}) Said(ValidateTrainJob(request, facts, {}));
  Said(ValidateRuntime(request, {}));
  const AdmissionRequest scale = UpdateByScale(request, request.old_object);
  if (scale.operation == "UPDATE") Said(ValidateTrainJob(scale, {}, {}));
  Said(ValidatePyTorchJob(request, {}));
  const AdmissionRequest workers = PyTorchUpdateByScale(request, request.old_object);
  if (workers.operation == "UPDATE") Said(ValidatePyTorchJob(workers, {}));
  if (IsProtected(request)) UsesRuntime(request.object, request);
  Must(SameMeaning(&request.object, &request.object));
}

}  // namespace
}  // namespace muster::controller

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::controller;
  const auto request = ReadReview({reinterpret_cast<const char*>(data), size});
  if (!request.ok()) return 0;
  if (request->operation != "DELETE") {
    Mutate(*request, nullptr);
    Mutate(*request, &request->old_object);
  }
  Judge(*request);
  return 0;
}
