// SPDX-License-Identifier: Apache-2.0
// The webhooks accept the objects to which PyTorchJobs are converted.
#include "controller/admission/validate_runtime.h"
#include "controller/admission/validate_train_job.h"
#include "controller/plan/convert/convert.h"
#include "tests/controller/admission/requests.h"
#include "tests/controller/plan/pytorch_examples.h"

namespace muster::controller {
namespace {

TEST(ConvertPyTorchJob, GivesObjectsThatTheWebhooksAccept) {
  for (const PyTorchExample& example : PyTorchExamples()) {
    if (!example.file.empty()) continue;
    SCOPED_TRACE(example.what);
    Json object = {{"metadata", {{"name", "train"}, {"namespace", "ns"}}}, {"spec", YamlOf(example.spec)}};
    object["metadata"].merge_patch(YamlOf(example.metadata));
    const auto converted = ConvertPyTorchJob(object, {});
    ASSERT_TRUE(converted.ok()) << converted.status();
    const Verdict runtime = ValidateRuntime(RequestOf("CREATE", "trainingruntimes", converted->runtime), {});
    EXPECT_EQ(Said(runtime), "");
    EXPECT_THAT(runtime.warnings, ::testing::IsEmpty());
    EXPECT_EQ(Said(ValidateTrainJob(RequestOf("CREATE", "trainjobs", converted->train_job),
                                    {.runtime = &converted->runtime}, {})),
              "");
  }
}

}  // namespace
}  // namespace muster::controller
