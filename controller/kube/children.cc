#include "controller/kube/children.h"

#include "base/text.h"
#include "controller/api/labels.h"

namespace muster::controller {
namespace {

// Of the same object: neither older nor what is known. Who reads an object again is not woken by it.
bool IsNews(const Meta& meta, const Meta& known) {
  return !IsOlder(meta, known) && (meta.resource_version.empty() || meta.resource_version != known.resource_version);
}

// True: `known` is `object` by now.
template <class Object>
bool Take(Object object, Object* known) {
  if (known->meta.uid == object.meta.uid && !IsNews(object.meta, known->meta)) return false;
  *known = std::move(object);
  return true;
}

// Whose the object was, by its key; empty: nobody's.
std::string RemoveOwner(const std::string& key, std::map<std::string, std::string>* owners) {
  const auto found = owners->find(key);
  if (found == owners->end()) return "";
  std::string owner = std::move(found->second);
  owners->erase(found);
  return owner;
}

}  // namespace

std::string KeyOf(std::string_view ns, std::string_view name) { return fmt::format("{}/{}", ns, name); }

std::string OwnerKeyOf(const Meta& meta) {
  const std::string_view name = meta.Label(kJobSetNameLabel);
  return name.empty() ? "" : KeyOf(meta.ns, name);
}

bool IsOlder(const Meta& a, const Meta& b) {
  const auto first = ParseInt(a.resource_version), second = ParseInt(b.resource_version);
  return first && second && *first < *second;
}

bool Children::Put(ObservedJob job) {
  const std::string owner = OwnerKeyOf(job.meta);
  if (owner.empty()) return false;
  job_owners_[KeyOf(job.meta.ns, job.meta.name)] = owner;
  const auto [known, added] = families_[owner].jobs.try_emplace(job.meta.name);
  if (!added) return Take(std::move(job), &known->second);
  known->second = std::move(job);
  return true;
}

bool Children::Put(ObservedPod pod) {
  const std::string owner = OwnerKeyOf(pod.meta);
  if (owner.empty()) return false;
  pod_owners_[KeyOf(pod.meta.ns, pod.meta.name)] = owner;
  Family& family = families_[owner];
  std::vector<ObservedPod>& pods = family.seen.pods;
  const auto [place, added] = family.pod_places.try_emplace(pod.meta.name, pods.size());
  if (!added) return Take(std::move(pod), &pods[place->second]);
  pods.push_back(std::move(pod));
  return true;
}

std::string Children::Put(ObservedRefusal refusal) {
  const auto owner = job_owners_.find(KeyOf(refusal.meta.ns, refusal.job));
  refused_jobs_[KeyOf(refusal.meta.ns, refusal.meta.name)] = refusal.job_uid;
  ObservedRefusal& known = refusals_[refusal.job_uid];
  if (known.last <= refusal.last) known = std::move(refusal);
  return owner == job_owners_.end() ? "" : owner->second;
}

void Children::RemoveRefusal(const std::string& ns, const std::string& name) {
  const auto found = refused_jobs_.find(KeyOf(ns, name));
  if (found == refused_jobs_.end()) return;
  const auto refusal = refusals_.find(found->second);
  if (refusal != refusals_.end() && refusal->second.meta.name == name) refusals_.erase(refusal);
  refused_jobs_.erase(found);
}

void Children::PutService(const Meta& meta) { services_[KeyOf(meta.ns, meta.name)] = meta; }

std::string Children::RemoveJob(const std::string& ns, const std::string& name) {
  std::string owner = RemoveOwner(KeyOf(ns, name), &job_owners_);
  const auto family = families_.find(owner);
  if (family == families_.end()) return owner;
  family->second.jobs.erase(name);
  if (family->second.jobs.empty() && family->second.seen.pods.empty()) families_.erase(family);
  return owner;
}

std::string Children::RemovePod(const std::string& ns, const std::string& name) {
  std::string owner = RemoveOwner(KeyOf(ns, name), &pod_owners_);
  const auto family = families_.find(owner);
  if (family == families_.end()) return owner;
  auto& [jobs, places, seen] = family->second;
  if (const auto place = places.find(name); place != places.end()) {
    ObservedPod& gone = seen.pods[place->second];
    if (&gone != &seen.pods.back()) {
      gone = std::move(seen.pods.back());
      places[gone.meta.name] = place->second;
    }
    seen.pods.pop_back();
    places.erase(place);
  }
  if (jobs.empty() && seen.pods.empty()) families_.erase(family);
  return owner;
}

std::string Children::RemoveService(const std::string& ns, const std::string& name) {
  const auto found = services_.find(KeyOf(ns, name));
  if (found == services_.end()) return "";
  std::string owner = OwnerKeyOf(found->second);
  services_.erase(found);
  return owner;
}

Observed& Children::Of(const Meta& owner, const std::string& subdomain) {
  const auto is_owners = [&owner](const Meta& meta) {
    const OwnerReference* controller = meta.Controller();
    return controller != nullptr && controller->uid == owner.uid;
  };
  const auto family = families_.find(KeyOf(owner.ns, owner.name));
  Observed& seen = family == families_.end() ? nothing_ : family->second.seen;
  const auto service = services_.find(KeyOf(owner.ns, subdomain));
  seen.service = service != services_.end() && is_owners(service->second);
  seen.jobs.clear();
  if (family == families_.end()) return seen;
  for (const auto& [name, job] : family->second.jobs) {
    if (!is_owners(job.meta)) continue;
    seen.jobs.push_back(job);
    const auto refusal = refusals_.find(job.meta.uid);
    if (refusal == refusals_.end()) continue;
    seen.jobs.back().refusal = refusal->second.why;
    seen.jobs.back().refused_at = refusal->second.last;
  }
  return seen;
}

}  // namespace muster::controller
