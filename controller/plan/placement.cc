// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/placement.h"

#include "base/text.h"
#include "controller/api/labels.h"
#include "controller/api/lenient.h"

namespace muster::controller {
namespace {

constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr char kPreferred[] = "preferredDuringSchedulingIgnoredDuringExecution";
constexpr int kMostWeight = 100;

Json Expression(std::string_view key, std::string_view op, const Json& values = Json()) {
  Json expression = {{"key", key}, {"operator", op}};
  if (!values.is_null()) expression["values"] = values;
  return expression;
}

Json Term(std::string_view topology, Json expressions) {
  return {{"topologyKey", topology}, {"labelSelector", {{"matchExpressions", std::move(expressions)}}}};
}

void AddTerm(const char* kind, const char* rule, Json term, Json* pod) {
  Json& terms = (*pod)["affinity"][kind][rule];
  if (!terms.is_array()) terms = Json::array();
  terms.push_back(std::move(term));
}

}  // namespace

void PlaceTogether(std::string_view topology, std::string_view name, std::string_view value, bool required, Json* pod) {
  Json term = Term(topology, Json::array({Expression(name, "In", Json::array({value}))}));
  if (!required) term = {{"weight", kMostWeight}, {"podAffinityTerm", std::move(term)}};
  AddTerm("podAffinity", required ? kRequired : kPreferred, std::move(term), pod);
}

void PlaceExclusively(std::string_view topology, std::string_view job_key, Json* pod) {
  const Json key = Json::array({job_key});
  Json same = Term(topology, Json::array({Expression(kJobKeyLabel, "In", key)}));
  Json others =
      Term(topology, Json::array({Expression(kJobKeyLabel, "Exists"), Expression(kJobKeyLabel, "NotIn", key)}));
  for (Json* term : {&same, &others}) (*term)["namespaceSelector"] = Json::object();
  AddTerm("podAffinity", kRequired, std::move(same), pod);
  AddTerm("podAntiAffinity", kRequired, std::move(others), pod);
}

void PlaceOnNodesOf(std::string_view ns, std::string_view job_name, Json* pod) {
  (*pod)["nodeSelector"]["alpha.jobset.sigs.k8s.io/namespaced-job"] = fmt::format("{}_{}", ns, job_name);
  Json& tolerations = (*pod)["tolerations"];
  if (!tolerations.is_array()) tolerations = Json::array();
  const Json toleration = {
      {"key", "alpha.jobset.sigs.k8s.io/no-schedule"}, {"operator", "Exists"}, {"effect", "NoSchedule"}};
  tolerations.push_back(toleration);
}

void ExcludeNode(const std::string& node, Json* pod) {
  (*pod)["metadata"]["annotations"][kExcludedNodeAnnotation] = node;
  const Json other = Expression("metadata.name", "NotIn", Json::array({node}));
  Json& wanted = (*pod)["spec"]["affinity"]["nodeAffinity"][kRequired];
  if (ListField(wanted, "nodeSelectorTerms").empty()) {
    wanted = {{"nodeSelectorTerms", {{{"matchFields", {other}}}}}};
    return;
  }
  // The pod may run on a node that any of the terms matches. An empty term matches none.
  for (Json& term : wanted["nodeSelectorTerms"]) {
    if (!term.empty()) term["matchFields"].push_back(other);
  }
}

}  // namespace muster::controller
