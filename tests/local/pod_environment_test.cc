// SPDX-License-Identifier: Apache-2.0
// Variables: their sources, their order, and the messages about wrong ones.
#include "local/pod/environment.h"

#include "tests/local/pod_made.h"

namespace muster::local {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PodEnvironment, ExpandsAsTheKubelet) {
  const Variables variables{{"A", "1"}, {"B", "$(A)"}, {"E", ""}, {"x y", "2"}};
  for (const auto& [text, expanded] : std::vector<std::pair<std::string, std::string>>{
           {"", ""},
           {"a$(A)b$(A)", "a1b1"},
           {"$(B)", "$(A)"},
           {"[$(E)]", "[]"},
           {"$(x y)", "2"},
           {"$(NO)$(A)", "$(NO)1"},
           {"$()", "$()"},
           {"$$(A)", "$(A)"},
           {"$$$(A)", "$1"},
           {"$$$$(A)", "$$(A)"},
           {"$$", "$"},
           {"$", "$"},
           {"5$ $A ${A}", "5$ $A ${A}"},
           {"$(A", "$(A"},
           {"$($(A))", "$($(A))"},
           {"$(A)$", "1$"},
       }) {
    EXPECT_EQ(Expand(text, variables), expanded) << text;
  }
}

TEST(PodEnvironment, ValuesComeFromWhatEnvNames) {
  struct Row {
    std::string variable, value;
  };
  for (const Row& row : std::vector<Row>{
           {"value: plain", "plain"},
           {"value: ''", ""},
           {"valueFrom: {fieldRef: {fieldPath: metadata.name}}", "train-0"},
           {"valueFrom: {fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}", "team"},
           {"valueFrom: {fieldRef: {fieldPath: metadata.uid}}", "u-1"},
           {"valueFrom: {fieldRef: {fieldPath: \"metadata.labels['x/y']\"}}", "2"},
           {"valueFrom: {fieldRef: {fieldPath: \"metadata.labels['none']\"}}", ""},
           {"valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['muster.dev/nodes']\"}}", "4"},
           {"valueFrom: {fieldRef: {fieldPath: spec.nodeName}}", "desk"},
           {"valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}", "default"},
           {"valueFrom: {fieldRef: {fieldPath: status.podIP}}", "127.0.1.1"},
           {"valueFrom: {fieldRef: {fieldPath: status.podIPs}}", "127.0.1.1"},
           {"valueFrom: {fieldRef: {fieldPath: status.hostIP}}", "127.0.1.1"},
           {"valueFrom: {configMapKeyRef: {name: settings, key: b.c}}", "three"},
           {"valueFrom: {configMapKeyRef: {name: settings, key: lacking, optional: true}}", "-"},
           {"valueFrom: {configMapKeyRef: {name: absent, key: lacking, optional: true}}", "-"},
           {"valueFrom: {secretKeyRef: {name: keys, key: token}}", "t0"},
           {"valueFrom: {secretKeyRef: {name: keys, key: other}}", "said"},
           {"valueFrom: {secretKeyRef: {name: absent, key: lacking, optional: true}}", "-"},
           {"valueFrom: {secretKeyRef: {name: keys, key: lacking, optional: true}}", "-"},
       }) {
    const auto container = ContainerFor(fmt::format("{{name: c, command: [x], env: [{{name: V, {}}}]}}", row.variable));
    EXPECT_EQ(VariableOf(container, "V"), row.value) << row.variable;
  }
  EXPECT_EQ(VariableOf(ContainerFor("{name: c, command: [x], env: [{name: V, valueFrom: {fieldRef: {fieldPath: "
                                    "spec.serviceAccountName}}}]}",
                                    PlaceHere(), ", serviceAccountName: trainer"),
                       "V"),
            "trainer");
}

TEST(PodEnvironment, ResourcesAreDividedAndRoundedUp) {
  struct Row {
    std::string resources, resource, divisor, value;
  };
  for (const Row& row : std::vector<Row>{
           {"{limits: {cpu: 1500m}}", "limits.cpu", "", "2"},
           {"{limits: {cpu: 1500m}}", "limits.cpu", "'0'", "2"},
           {"{limits: {cpu: 1500m}}", "limits.cpu", "1m", "1500"},
           {"{limits: {cpu: 2}}", "limits.cpu", "1000m", "2"},
           {"{}", "limits.cpu", "", "3"},
           {"{}", "limits.cpu", "1m", "2500"},
           {"{limits: {cpu: 0}}", "limits.cpu", "1m", "2500"},
           {"{limits: {memory: 1Gi}}", "limits.memory", "", "1073741824"},
           {"{limits: {memory: 1Gi}}", "limits.memory", "1Mi", "1024"},
           {"{limits: {memory: 1Gi}}", "limits.memory", "1G", "2"},
           {"{limits: {memory: 1Gi}}", "limits.memory", "1Ki", "1048576"},
           {"{}", "limits.memory", "1M", "4000"},
           {"{requests: {cpu: 250m}, limits: {cpu: 4}}", "requests.cpu", "1m", "250"},
           {"{limits: {cpu: 4}}", "requests.cpu", "", "4"},
           {"{}", "requests.cpu", "", "0"},
           {"{}", "requests.memory", "", "0"},
           {"{limits: {ephemeral-storage: 3Gi}}", "limits.ephemeral-storage", "1Gi", "3"},
           {"{limits: {hugepages-2Mi: 4Mi}}", "limits.hugepages-2Mi", "1Mi", "4"},
       }) {
    const std::string divisor = row.divisor.empty() ? "" : fmt::format(", divisor: {}", row.divisor);
    const auto container = ContainerFor(
        fmt::format("{{name: c, command: [x], resources: {}, env: [{{name: V, valueFrom: {{resourceFieldRef: "
                    "{{resource: {}{}}}}}}}]}}",
                    row.resources, row.resource, divisor));
    EXPECT_EQ(VariableOf(container, "V"), row.value) << row.resources << row.resource << row.divisor;
  }
}

TEST(PodEnvironment, ResourcesMayBeThoseOfAnotherContainer) {
  const PodProgram program = ProgramFor(R"({containers: [
    {name: a, command: [x], env: [{name: V, valueFrom: {resourceFieldRef: {containerName: b, resource: limits.cpu}}}]},
    {name: b, command: [x], resources: {limits: {cpu: 7}}}]})");
  EXPECT_EQ(VariableOf(program.containers[0], "V"), "7");
}

TEST(PodEnvironment, EnvGoesBeforeEnvFromAndThePlace) {
  const ContainerProgram container = ContainerFor(R"({name: c, command: [x],
    envFrom: [{configMapRef: {name: settings}}, {prefix: S_, secretRef: {name: keys}},
              {configMapRef: {name: absent, optional: true}}, {secretRef: {name: absent, optional: true}},
              {prefix: P_, configMapRef: {name: settings}}],
    env: [{name: A, value: own}, {name: TWICE, value: first}, {name: TWICE, value: '$(TWICE)-$(B)-$(S_token)'},
          {name: EARLY, value: '$(LATE)$(PATH)'}, {name: LATE, value: x}, {name: HOME, value: /h}]})");
  EXPECT_THAT(container.environment, ElementsAre("A=own", "B=two", "EARLY=$(LATE)$(PATH)", "HOME=/h", "LATE=x",
                                                 "PATH=/usr/bin", "P_A=one", "P_B=two", "P_b.c=three", "S_other=said",
                                                 "S_plain=as it is", "S_token=t0", "TWICE=first-two-t0", "b.c=three"));
}

// The message about a wrong variable `env[0]`.
std::string RefusedVariable(const std::string& variable, absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  return Refused(fmt::format("{{containers: [{{name: c, command: [x], env: [{}]}}]}}", variable), code);
}

TEST(PodEnvironment, WhatIsMissingIsNotFound) {
  struct Row {
    std::string variable, message;
  };
  const std::string from = "spec.containers[0].env[0].valueFrom.";
  for (const Row& row : std::vector<Row>{
           {"{name: V, valueFrom: {secretKeyRef: {name: absent, key: k}}}",
            from +
                "secretKeyRef.name: there is no Secret 'absent': give it by --secret absent=DIR, or as a file by -f"},
           {"{name: V, valueFrom: {configMapKeyRef: {name: absent, key: k}}}",
            from + "configMapKeyRef.name: there is no ConfigMap 'absent': give it by --config-map absent=DIR, or as a "
                   "file by -f"},
           {"{name: V, valueFrom: {secretKeyRef: {name: keys, key: k}}}",
            from + "secretKeyRef.key: Secret 'keys' has no key 'k'; it has 'other, plain, token'"},
           {"{name: V, valueFrom: {configMapKeyRef: {name: none, key: k}}}",
            from + "configMapKeyRef.key: ConfigMap 'none' has no key 'k'; it has none"},
           {"{name: V, valueFrom: {configMapKeyRef: {name: settings, key: raw}}}",
            from + "configMapKeyRef.key: ConfigMap 'settings' has no key 'raw'"},
       }) {
    EXPECT_THAT(RefusedVariable(row.variable, absl::StatusCode::kNotFound), HasSubstr(row.message));
  }
  EXPECT_THAT(Refused("{containers: [{name: c, command: [x], envFrom: [{secretRef: {name: absent}}]}]}",
                      absl::StatusCode::kNotFound),
              HasSubstr("spec.containers[0].envFrom[0].secretRef.name: there is no Secret 'absent'"));
}

TEST(PodEnvironment, WrongVariablesAreRefused) {
  struct Row {
    std::string variable, message;
  };
  const std::string at = "spec.containers[0].env[0].";
  for (const Row& row : std::vector<Row>{
           {"{value: x}", at + "name: '' is not a name of a variable: it is empty or has a '='"},
           {"{name: 'a=b', value: x}", at + "name: 'a=b' is not a name of a variable"},
           {"{name: V, value: 5}", at + "value: 5 is not a string; put it in quotes"},
           {R"({name: V, value: "a\0"})", at + "name: it has a byte 0"},
           {"{name: V, valueFrom: {secretKeyRef: {name: zero, key: token}}}", at + "name: it has a byte 0"},
           {"{name: V, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}",
            at + "valueFrom: there is a value, too; take one of them out"},
           {"{name: V, valueFrom: {}}", at + "valueFrom: it has none of fieldRef, resourceFieldRef, configMapKeyRef"},
           {"{name: V, valueFrom: {fileKeyRef: {}}}", at + "valueFrom: it has none of fieldRef"},
           {"{name: V, valueFrom: {fieldRef: {}}}", at + "valueFrom.fieldRef.fieldPath: it is missing"},
           {"{name: V, valueFrom: {fieldRef: {fieldPath: metadata.labels}}}",
            at + "valueFrom.fieldRef.fieldPath: 'metadata.labels' is not one of metadata.labels['KEY'], "
                 "metadata.annotations['KEY'], metadata.name, metadata.namespace, metadata.uid, spec.nodeName"},
           {"{name: V, valueFrom: {fieldRef: {fieldPath: \"spec.x['y']\"}}}", "'spec.x['y']' is not one of"},
           {"{name: V, valueFrom: {fieldRef: {fieldPath: status.phase}}}", "'status.phase' is not one of"},
           {"{name: V, valueFrom: {resourceFieldRef: {resource: cpu}}}",
            at + "valueFrom.resourceFieldRef.resource: 'cpu' is not one of limits.R, requests.R"},
           {"{name: V, valueFrom: {resourceFieldRef: {resource: limits.nvidia.com/gpu}}}",
            "'limits.nvidia.com/gpu' is not one of limits.R"},
           {"{name: V, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 2}}}",
            at + "valueFrom.resourceFieldRef.divisor: '2' is neither 1 nor 1m"},
           {"{name: V, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1m}}}",
            at + "valueFrom.resourceFieldRef.divisor: '1m' is not one of 1, 1k"},
           {"{name: V, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: x}}}",
            at + "valueFrom.resourceFieldRef.divisor: 'x' is not a quantity"},
           {"{name: V, valueFrom: {resourceFieldRef: {resource: limits.cpu, containerName: d}}}",
            at + "valueFrom.resourceFieldRef.containerName: 'd' is not a container of the pod; it has: c"},
           {"{name: V, valueFrom: {configMapKeyRef: {key: k}}}", at + "valueFrom.configMapKeyRef.name: it is missing"},
           {"{name: V, valueFrom: {configMapKeyRef: {name: settings}}}",
            at + "valueFrom.configMapKeyRef.key: it is missing"},
           {"{name: V, valueFrom: {configMapKeyRef: {name: wrong, key: A}}}",
            at + "valueFrom.configMapKeyRef.name: ConfigMap 'wrong': data.A: 5 is not a string"},
       }) {
    EXPECT_THAT(RefusedVariable(row.variable), HasSubstr(row.message)) << row.variable;
  }
  EXPECT_THAT(Refused("{containers: [{name: c, command: [x], envFrom: [{prefix: a}]}]}"),
              HasSubstr("spec.containers[0].envFrom[0]: it has neither configMapRef nor secretRef"));
  EXPECT_THAT(
      Refused("{containers: [{name: c, command: [x], envFrom: [{prefix: '=', configMapRef: {name: settings}}]}]}"),
      HasSubstr("spec.containers[0].envFrom[0]: '=A' is not a name of a variable"));
}

TEST(PodEnvironment, AWrongSecretIsNotShown) {
  const std::string said = RefusedVariable("{name: V, valueFrom: {secretKeyRef: {name: broken, key: token}}}");
  EXPECT_THAT(said,
              HasSubstr("spec.containers[0].env[0].valueFrom.secretKeyRef.name: Secret 'broken': data.token: it is not "
                        "Base64; encode it, or put it into stringData as it is"));
  EXPECT_THAT(said, Not(HasSubstr("hunter2")));
}

}  // namespace
}  // namespace muster::local
