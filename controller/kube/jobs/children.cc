#include "controller/kube/jobs/children.h"

#include "base/text.h"
#include "controller/api/labels.h"

namespace muster::controller {
namespace {

// Replaces `known`, unless `object` is no newer state of it. True: it was replaced.
template <class Object>
bool Take(Object object, Object* known) {
  if (known->meta.uid == object.meta.uid && !IsNews(object.meta, known->meta)) return false;
  *known = std::move(object);
  return true;
}

}  // namespace

std::string OwnerKeyOf(const Meta& meta) {
  const std::string_view name = meta.Label(kJobSetNameLabel);
  return name.empty() ? "" : KeyOf(meta.ns, name);
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
  return family.places.Put(std::move(pod), &family.seen.pods);
}

std::string Children::Put(ObservedRefusal refusal) {
  const auto owner = job_owners_.find(KeyOf(refusal.meta.ns, refusal.job));
  const std::string job = KeyOf(refusal.meta.ns, refusal.job_uid);
  refused_jobs_[KeyOf(refusal.meta.ns, refusal.meta.name)] = job;
  ObservedRefusal& known = refusals_[job];
  if (known.last <= refusal.last) known = std::move(refusal);
  return owner == job_owners_.end() ? "" : owner->second;
}

std::string Children::Put(ObservedPodEvent event) {
  const auto owner = pod_owners_.find(KeyOf(event.meta.ns, event.pod));
  if (owner == pod_owners_.end()) return "";
  Family& family = families_[owner->second];
  return family.places.Note(std::move(event), &family.seen.pods) ? owner->second : "";
}

void Children::RemoveRefusal(const GoneObject& gone) {
  const auto found = refused_jobs_.find(KeyOf(gone.ns, gone.name));
  if (found == refused_jobs_.end()) return;
  const auto refusal = refusals_.find(found->second);
  if (refusal != refusals_.end() && refusal->second.meta.name == gone.name) refusals_.erase(refusal);
  refused_jobs_.erase(found);
}

void Children::PutService(const Meta& meta) {
  const auto [known, added] = services_.try_emplace(KeyOf(meta.ns, meta.name), meta);
  if (!added && !IsOlder(meta, known->second)) known->second = meta;
}

std::string Children::RemoveJob(const GoneObject& gone) {
  const auto owner = job_owners_.find(KeyOf(gone.ns, gone.name));
  if (owner == job_owners_.end()) return "";
  Family& family = families_[owner->second];
  const auto job = family.jobs.find(gone.name);
  if (job != family.jobs.end() && !IsGone(job->second.meta, gone)) return "";
  if (job != family.jobs.end()) family.jobs.erase(job);
  return Leave(owner, &job_owners_);
}

std::string Children::RemovePod(const GoneObject& gone) {
  const auto owner = pod_owners_.find(KeyOf(gone.ns, gone.name));
  if (owner == pod_owners_.end()) return "";
  Family& family = families_[owner->second];
  if (!family.places.Remove(gone, &family.seen.pods)) return "";
  return Leave(owner, &pod_owners_);
}

std::string Children::RemoveService(const GoneObject& gone) {
  const auto found = services_.find(KeyOf(gone.ns, gone.name));
  if (found == services_.end() || !IsGone(found->second, gone)) return "";
  std::string owner = OwnerKeyOf(found->second);
  services_.erase(found);
  return owner;
}

std::string Children::Leave(std::map<std::string, std::string>::iterator child,
                            std::map<std::string, std::string>* owners) {
  std::string owner = std::move(child->second);
  owners->erase(child);
  const auto family = families_.find(owner);
  if (family->second.jobs.empty() && family->second.seen.pods.empty()) families_.erase(family);
  return owner;
}

Observed& Children::Of(const Meta& owner, const std::string& subdomain) {
  const auto family = families_.find(KeyOf(owner.ns, owner.name));
  Observed& seen = family == families_.end() ? nothing_ : family->second.seen;
  const auto service = services_.find(KeyOf(owner.ns, subdomain));
  seen.service = service != services_.end() && service->second.IsControlledBy(owner);
  seen.jobs.clear();
  if (family == families_.end()) return seen;
  for (const auto& [name, job] : family->second.jobs) {
    if (!job.meta.IsControlledBy(owner)) continue;
    seen.jobs.push_back(job);
    const auto refusal = refusals_.find(KeyOf(job.meta.ns, job.meta.uid));
    if (refusal == refusals_.end()) continue;
    seen.jobs.back().refusal = refusal->second.why;
    seen.jobs.back().refused_at = refusal->second.last;
  }
  return seen;
}

}  // namespace muster::controller
