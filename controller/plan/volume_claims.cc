// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/volume_claims.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

constexpr size_t kMostEntries = 50;  // in a list: of policies, or of a policy's templates

bool MountsVolume(const Json& pod, std::string_view volume) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : ListField(pod, list)) {
      if (FindNamed(container, "volumeMounts", volume) != nullptr) return true;
    }
  }
  return false;
}

void CheckCount(Fields& fields, const char* name, size_t count) {
  if (count > kMostEntries) fields.Wrong(name, fmt::format("{} entries are more than {}", count, kMostEntries));
}

// Plans the claim. Returns its name in the runtime, which is also the name of the pods' volume.
std::string ReadClaim(Fields& claim, bool retain, Draft* draft) {
  Fields metadata = claim.Object("metadata");
  std::string name = metadata.NeedText("name");
  if (!name.empty() && !IsLabel(name)) metadata.Wrong("name", name, "is not a DNS label");
  if (metadata.Find("namespace") != nullptr) {
    metadata.Wrong("namespace", "namespace cannot be set for VolumeClaimPolicies templates; leave it out");
  }
  if (!claim.Object("spec")) claim.Wrong("spec", "it is missing");
  PlannedObject planned;
  Json made = {{"name", fmt::format("{}-{}", name, draft->job.meta.name)}};
  for (const char* field : {"labels", "annotations"}) {
    if (auto texts = metadata.TextMap(field); !texts.empty()) made[field] = std::move(texts);
  }
  if (retain) made["ownerReferences"] = Json::array();
  planned.object = {{"apiVersion", "v1"},
                    {"kind", "PersistentVolumeClaim"},
                    {"metadata", std::move(made)},
                    {"spec", claim.Copy("spec")}};
  planned.for_initializers = true;
  planned.if_there = PlannedObject::IfThere::kUse;
  draft->objects.push_back(std::move(planned));
  return name;
}

Status MountClaim(const std::string& name, std::string_view path, Draft* draft) {
  for (ReplicatedJob& of : draft->jobs) {
    Json& pod = PodSpec(of.job_template);
    if (!MountsVolume(pod, name)) continue;
    if (FindNamed(pod, "volumes", name) != nullptr) {
      return absl::InvalidArgumentError(fmt::format(
          "{}: job '{}' has a volume '{}' of its own; give the claim another name, or leave that volume out", path,
          of.name, name));
    }
    UpsertNamed(
        {{"name", name}, {"persistentVolumeClaim", {{"claimName", fmt::format("{}-{}", name, draft->job.meta.name)}}}},
        "volumes", &pod);
  }
  return absl::OkStatus();
}

}  // namespace

Status AddVolumeClaims(Draft* draft) {
  const Json set = {{"volumeClaimPolicies", draft->runtime.volume_claim_policies}};
  Complaints complaints;
  Fields fields(&set, fmt::format("runtime '{}': spec.template.spec", draft->runtime.meta.name), &complaints);
  std::vector<Fields> policies = fields.Objects("volumeClaimPolicies");
  CheckCount(fields, "volumeClaimPolicies", policies.size());
  std::set<std::string> names;
  for (Fields& policy : policies) {
    const bool retain = policy.Object("retentionPolicy").Word("whenDeleted", {"Delete", "Retain"}) == "Retain";
    std::vector<Fields> templates = policy.Objects("templates");
    CheckCount(policy, "templates", templates.size());
    for (Fields& claim : templates) {
      const std::string name = ReadClaim(claim, retain, draft);
      const std::string path = claim.PathOf("metadata.name");
      if (!names.insert(name).second) {
        complaints.Wrong(path, std::string_view(name), "is there twice; give each claim its own name");
      }
      MUSTER_RETURN_IF_ERROR(complaints.status());
      MUSTER_RETURN_IF_ERROR(MountClaim(name, path, draft));
    }
  }
  return complaints.status();
}

}  // namespace muster::controller
