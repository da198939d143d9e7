// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/runtime_cache.h"

#include "base/log.h"
#include "controller/kube/client/freshness.h"

namespace muster::controller {

RuntimeCache::RuntimeCache(boost::asio::io_context& loop, ApiClient& client, const std::string& ns) {
  for (const Resource* resource : {&kTrainingRuntimes, &kClusterTrainingRuntimes}) {
    Informer::Events events;
    events.put = [this](const ObjectView& object) { Put(*object.json()); };
    events.gone = [this](const GoneObject& gone) { runtimes_.erase(KeyOf(gone.ns, gone.name)); };
    events.synced = [this] {
      if (--unsynced_ == 0 && events_.synced) events_.synced();
    };
    events.say = [](const std::string& text) { log::Warning(text); };
    informers_.push_back(
        std::make_unique<Informer>(loop, client, *resource, resource->namespaced ? ns : "", "", std::move(events)));
  }
}

void RuntimeCache::Begin() {
  if (std::exchange(begun_, true)) return;
  for (const auto& informer : informers_) informer->Begin();
}

const PackedJson* RuntimeCache::Known(const RuntimeRef& ref, const std::string& ns) const {
  const Resource* resource = RuntimeResource(ref);
  if (resource == nullptr) return nullptr;
  const auto found = runtimes_.find(KeyOf(resource->namespaced ? ns : "", ref.name));
  return found == runtimes_.end() ? nullptr : &found->second;
}

std::optional<Json> RuntimeCache::Find(const RuntimeRef& ref, const std::string& ns) const {
  const PackedJson* known = Known(ref, ns);
  return known == nullptr ? std::nullopt : std::optional(known->Unpack());
}

PackedJson RuntimeCache::Pack(const RuntimeRef& ref, const std::string& ns, const Json& runtime) const {
  PackedJson packed(runtime);
  const PackedJson* known = Known(ref, ns);
  return known != nullptr && *known == packed ? *known : packed;
}

void RuntimeCache::Put(const Json& object) {
  auto meta = ReadMeta(object);
  if (!meta.ok()) return;
  Json kept = object;
  kept["metadata"].erase("resourceVersion");
  runtimes_[KeyOf(meta->ns, meta->name)] = PackedJson(kept);
  if (events_.changed) events_.changed(*meta);
}

const Resource* RuntimeResource(const RuntimeRef& ref) {
  if (ref.api_group != kTrainerGroup) return nullptr;
  if (ref.kind == "ClusterTrainingRuntime") return &kClusterTrainingRuntimes;
  return ref.kind == "TrainingRuntime" ? &kTrainingRuntimes : nullptr;
}

}  // namespace muster::controller
