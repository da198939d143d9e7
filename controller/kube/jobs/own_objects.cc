// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/own_objects.h"

#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "controller/reconcile/repair.h"

namespace muster::controller {

void OwnObjects::Put(const Json& object) {
  auto read = ReadObject(object);
  if (!read.ok()) return log::Warning(fmt::format("an object cannot be read: {}", Message(read.status())));
  const std::string job = owner_of_(read->meta), key = KeyOf(read->meta.ns, read->meta.name);
  const auto owner = owners_.find({read->kind, key});
  if (owner != owners_.end() && owner->second != job) {
    Remove(read->kind, {read->meta.ns, read->meta.name, read->meta.resource_version});
  }
  if (job.empty()) return;
  owners_[{read->kind, key}] = job;
  std::vector<ObservedObject>& objects = objects_[job];
  const auto known = std::find_if(objects.begin(), objects.end(), [&read](const ObservedObject& other) {
    return other.kind == read->kind && other.meta.name == read->meta.name;
  });
  if (known == objects.end()) {
    objects.push_back(*std::move(read));
    return changed_(job);
  }
  if (!IsNews(read->meta, known->meta)) return;
  // The status of an autoscaler changes every few seconds, and wakes nobody.
  const bool changed =
      known->meta.uid != read->meta.uid || known->meta.owners != read->meta.owners || known->fields != read->fields;
  *known = *std::move(read);
  if (changed) changed_(job);
}

void OwnObjects::Remove(const std::string& kind, const GoneObject& gone) {
  const auto owner = owners_.find({kind, KeyOf(gone.ns, gone.name)});
  if (owner == owners_.end()) return;
  const std::string job = owner->second;
  const auto objects = objects_.find(job);
  const auto count = std::erase_if(objects->second, [&](const ObservedObject& object) {
    return object.kind == kind && object.meta.name == gone.name && IsGone(object.meta, gone);
  });
  if (count == 0) return;
  owners_.erase(owner);
  if (objects->second.empty()) objects_.erase(objects);
  changed_(job);
}

const std::vector<ObservedObject>& OwnObjects::Of(const std::string& job) const {
  const auto objects = objects_.find(job);
  return objects == objects_.end() ? none_ : objects->second;
}

}  // namespace muster::controller
