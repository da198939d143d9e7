// SPDX-License-Identifier: Apache-2.0
// Conversion of files with PyTorchJobs, and the messages for wrong ones.
#include "controller/plan/convert/convert_files.h"

#include <gmock/gmock.h>

#include "controller/plan/plan_files.h"
#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kJob[] = R"(apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: digits
spec:
  runPolicy:
    backoffLimit: 3
    cleanPodPolicy: All
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: pytorch, image: i, command: [x]}]}}
)";

TEST(ConvertFiles, OtherObjectsStayInTheirPlaces) {
  const auto converted = ConvertFiles({{"a.yaml", kJob}, {"b.yaml", Replaced(kJob, "digits", "letters")}}, {});
  ASSERT_TRUE(converted.ok()) << converted.status();
  std::vector<std::string> made;
  for (const Json& object : converted->objects) {
    made.push_back(At(object, "/kind").get<std::string>() + " " + At(object, "/metadata/name").get<std::string>());
  }
  EXPECT_THAT(made, ElementsAre("ConfigMap settings", "TrainingRuntime digits", "TrainJob digits", "ConfigMap settings",
                                "TrainingRuntime letters", "TrainJob letters"));
  EXPECT_THAT(converted->remarks,
              ElementsAre("a.yaml:2: ConfigMap 'settings' is not a PyTorchJob: it stays as it is",
                          HasSubstr("a.yaml:12: spec.runPolicy.cleanPodPolicy: All has no counterpart"),
                          "b.yaml:2: ConfigMap 'settings' is not a PyTorchJob: it stays as it is",
                          HasSubstr("b.yaml:12: spec.runPolicy.cleanPodPolicy")));
}

TEST(ConvertFiles, WhatIsWrittenCanBePlanned) {
  const auto converted = ConvertFiles({{"a.yaml", kJob}}, {});
  ASSERT_TRUE(converted.ok()) << converted.status();
  for (const std::string& text : {ObjectsAsYaml(converted->objects), ObjectsAsJson(converted->objects)}) {
    const auto planned = PlanFiles({{"converted", text}}, {});
    ASSERT_TRUE(planned.ok()) << planned.status();
    ASSERT_EQ(planned->jobs.size(), 1);
    EXPECT_EQ(JobNamed(planned->jobs[0].plan, "node").pods, 2);
  }
}

TEST(ConvertFiles, SayWhereTheyAreWrong) {
  struct Row {
    std::string from, to, message;
  };
  for (const Row& row : std::vector<Row>{
           {"replicas: 2", "replicas: many", "a.yaml:15: spec.pytorchReplicaSpecs.Worker.replicas: 'many'"},
           {"name: digits", "generateName: digits-", "a.yaml:7: metadata.name: it is missing; give one"},
           {"name: digits", "name: 1digits", "a.yaml:8: metadata.name: '1digits' must match RFC 1035"},
           {"kind: PyTorchJob", "kind: MPIJob", "a.yaml: there is no PyTorchJob to convert; give its file with -f"},
           {"kind: PyTorchJob", "kin: PyTorchJob", "a.yaml:5: kind: it is missing"},
           {"spec:", "spec: [", "a.yaml:"},
       }) {
    SCOPED_TRACE(row.to);
    const auto converted = ConvertFiles({{"a.yaml", Replaced(kJob, row.from, row.to)}}, {});
    EXPECT_TRUE(absl::IsInvalidArgument(converted.status()));
    EXPECT_THAT(std::string(Message(converted.status())), HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace muster::controller
