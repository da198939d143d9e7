// SPDX-License-Identifier: Apache-2.0
#include "local/pod/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/api/yaml.h"

namespace muster::local {

using namespace controller;

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json YamlOf(const std::string& text) { return ReadYaml(text)->at(0).object; }

Json Pod(const std::string& container) {
  return YamlOf("{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i, " + container + "}]}}");
}

struct Row {
  std::string container;
  std::vector<GivenObject> given;
  std::string wrong, remark;
};

TEST(PodCheck, FindsWhatIsMissingAndWhatIsTooMuch) {
  const Json secret = YamlOf("{kind: Secret, metadata: {name: key}, stringData: {a: b}}");
  const Json made = YamlOf("{kind: Secret, metadata: {name: made}, data: {token: eA==}}");
  const FindObject find = [&secret](std::string_view kind, std::string_view name) {
    return kind == "Secret" && name == "key" ? &secret : nullptr;
  };
  const auto fits = [](const PodProgram& program) {
    return program.containers[0].command[0] == "unfit" ? absl::InvalidArgumentError("it does not fit")
                                                       : absl::OkStatus();
  };
  const std::string uses = "command: [x], env: [{name: A, valueFrom: {secretKeyRef: {name: ";
  const GivenObject key{"--secret", "Secret", "key"}, other{"--secret", "Secret", "kez"},
      map{"--config-map", "ConfigMap", "key"};
  const Row rows[] = {
      {"command: [x]", {}, "", ""},
      {"args: [x]", {}, "p: spec.containers[0].command: it is missing", ""},
      {uses + "key, key: a}}}]", {key}, "", ""},
      {uses + "key, key: c}}}]", {}, "has no key 'c'; it has 'a'", ""},
      {uses + "made, key: token}}}]", {}, "", ""},
      {uses + "made, key: token}}}, {name: B, valueFrom: {secretKeyRef: {name: none, key: a}}}]",
       {},
       "p: spec.containers[0].env[1].valueFrom.secretKeyRef.name: there is no Secret",
       ""},
      {"command: [unfit]", {}, "p: it does not fit", ""},
      {uses + "none, key: a}}}]",
       {},
       "p: spec.containers[0].env[0].valueFrom.secretKeyRef.name: there is no Secret",
       ""},
      {uses + "key, key: a}}}]", {other}, "", "--secret 'kez': no pod uses a Secret of that name; they use 'key'"},
      {uses + "key, key: a}}}]", {map}, "", "--config-map 'key': no pod uses a ConfigMap of that name"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.container);
    const PodCheck check =
        CheckPods({made, Pod(row.container)}, {.folder = "/pod", .claims = "/claims"}, row.given, find, fits);
    EXPECT_EQ(check.status.ok(), row.wrong.empty());
    EXPECT_THAT(std::string(Message(check.status)), HasSubstr(row.wrong));
    if (row.remark.empty()) {
      EXPECT_THAT(check.remarks, IsEmpty());
    } else {
      EXPECT_THAT(check.remarks, ElementsAre(row.remark));
    }
  }
}

TEST(PodCheck, OtherPodsThanStepsAreOnlyRemarkedOn) {
  EXPECT_TRUE(IsStep(YamlOf("{kind: Pod, spec: {containers: [{name: pytorch}]}}")));
  EXPECT_TRUE(IsStep(YamlOf("{kind: Pod, spec: {containers: [{name: a}, {name: node}]}}")));
  EXPECT_FALSE(IsStep(YamlOf("{kind: Pod, spec: {containers: [{name: exporter}]}}")));
}

TEST(PodCheck, CountsPods) {
  PlannedFiles planned;
  planned.jobs.resize(1);
  planned.jobs[0].plan.jobs = {{.pods = 1}, {.pods = 999}};
  EXPECT_TRUE(CheckPodCount(planned).ok());
  planned.pytorch_jobs.resize(1);
  planned.pytorch_jobs[0].plan.replicas = {{.count = 1}};
  EXPECT_THAT(std::string(Message(CheckPodCount(planned))), HasSubstr("has 1001 pods; one machine runs at most 1000"));
}

}  // namespace
}  // namespace muster::local
