// SPDX-License-Identifier: Apache-2.0
#include "local/cluster/world.h"

#include "base/iso_time.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/api/meta.h"

namespace muster::local {

using namespace controller;

namespace {

bool IsBeingDeleted(const Json& object) {
  return FindField(PartOf(object, "metadata"), "deletionTimestamp") != nullptr;
}

// Whether the object may be removed now: it has no finalizers and, if it is a pod, has ended.
bool MayGo(const Json& object) {
  if (!ListField(PartOf(object, "metadata"), "finalizers").empty()) return false;
  if (TextField(object, "kind") != "Pod") return true;
  const std::string phase = TextField(PartOf(object, "status"), "phase");
  return phase == "Succeeded" || phase == "Failed";
}

// Keeps the fields that only an API server writes.
void KeepStamps(const Json& known, Json* object) {
  for (const char* field : {"uid", "creationTimestamp", "deletionTimestamp", "resourceVersion", "generation"}) {
    const Json* value = FindField(PartOf(known, "metadata"), field);
    if (value != nullptr) {
      (*object)["metadata"][field] = *value;
    } else {
      (*object)["metadata"].erase(field);
    }
  }
}

bool IsControlledBy(const Json& object, std::string_view uid) {
  for (const Json& owner : ListField(PartOf(object, "metadata"), "ownerReferences")) {
    if (TextField(owner, "uid") == uid && FlagField(owner, "controller", false)) return true;
  }
  return false;
}

// Adds the labels by which the pods of a Job are found. Source: Kubernetes 1.36, pkg/registry/batch/job/strategy.go.
void AddJobLabels(const std::string& name, Json* job) {
  if (FindField(PartOf(*job, "spec"), "template") == nullptr) return;
  Json& labels = (*job)["spec"]["template"]["metadata"]["labels"];
  for (const char* prefix : {"", "batch.kubernetes.io/"}) {
    labels[fmt::format("{}job-name", prefix)] = name;
    labels[fmt::format("{}controller-uid", prefix)] = UidOf(*job);
  }
}

}  // namespace

StatusOr<const Json*> World::Create(Json object, WallTime now) {
  const std::string kind = TextField(object, "kind");
  if (kind.empty()) return absl::InvalidArgumentError("kind: it is missing");
  MUSTER_ASSIGN_OR_RETURN(const Meta meta, ReadMeta(object));
  if (Find(kind, meta.name) != nullptr) {
    return absl::AlreadyExistsError(fmt::format("{} {} exists already", kind, meta.name));
  }
  Json& metadata = object["metadata"];
  metadata["uid"] = fmt::format("{:08x}-{}-4{}-8{}-{:0>12}", ++uids_, run_.substr(0, 4), run_.substr(4, 3),
                                run_.substr(7, 3), run_.substr(10));
  metadata["creationTimestamp"] = IsoMicroTime(now);
  metadata["generation"] = 1;
  metadata.erase("deletionTimestamp");
  if (kind == "Pod" && !object.contains("status")) object["status"] = {{"phase", "Pending"}};
  if (kind == "Job") AddJobLabels(meta.name, &object);
  Stamp(&object);
  return &(objects_[{kind, meta.name}] = std::move(object));
}

Status World::Update(Json object, WallTime now) {
  const std::string kind = TextField(object, "kind"), name = NameOf(object);
  const auto known = objects_.find({kind, name});
  const std::string uid = UidOf(object);
  if (known == objects_.end() || (!uid.empty() && uid != UidOf(known->second))) {
    return absl::NotFoundError(fmt::format("{} {} is gone", kind, name));
  }
  KeepStamps(known->second, &object);
  if (known->second == object) return absl::OkStatus();
  if (PartOf(known->second, "spec") != PartOf(object, "spec")) {
    object["metadata"]["generation"] = CountField(known->second["metadata"], "generation") + 1;
  }
  Stamp(&object);
  known->second = std::move(object);
  if (IsBeingDeleted(known->second) && MayGo(known->second)) Remove(known, now);
  return absl::OkStatus();
}

void World::Delete(std::string_view kind, std::string_view name, std::string_view uid, WallTime now) {
  const auto known = objects_.find(std::pair<std::string, std::string>(kind, name));
  if (known == objects_.end() || (!uid.empty() && uid != UidOf(known->second))) return;
  if (MayGo(known->second)) return Remove(known, now);
  if (IsBeingDeleted(known->second)) return;
  known->second["metadata"]["deletionTimestamp"] = IsoMicroTime(now);
  Stamp(&known->second);
}

void World::Remove(Objects::iterator object, WallTime now) {
  const std::string uid = UidOf(object->second);
  objects_.erase(object);
  ++version_;
  std::vector<std::pair<std::string, std::string>> controlled;
  for (const auto& [key, other] : objects_) {
    if (IsControlledBy(other, uid)) controlled.push_back(key);
  }
  for (const auto& [kind, name] : controlled) Delete(kind, name, "", now);
}

const Json* World::Find(std::string_view kind, std::string_view name) const {
  const auto known = objects_.find(std::pair<std::string, std::string>(kind, name));
  return known == objects_.end() ? nullptr : &known->second;
}

std::vector<const Json*> World::List(std::string_view kind) const {
  std::vector<const Json*> found;
  for (auto one = objects_.lower_bound(std::pair<std::string, std::string>(kind, "")); one != objects_.end(); ++one) {
    if (one->first.first != kind) break;
    found.push_back(&one->second);
  }
  return found;
}

std::vector<const Json*> World::ControlledBy(std::string_view kind, std::string_view uid) const {
  std::vector<const Json*> found = List(kind);
  std::erase_if(found, [uid](const Json* object) { return !IsControlledBy(*object, uid); });
  return found;
}

void World::Stamp(Json* object) { (*object)["metadata"]["resourceVersion"] = fmt::format("{}", ++version_); }

}  // namespace muster::local
