#include "controller/kube/children.h"

#include "base/text.h"
#include "controller/api/labels.h"

namespace muster::controller {
namespace {

// Of the same object: neither older nor what is known. Who reads an object again is not woken by it.
bool IsNews(const Meta& meta, const Meta& known) {
  return !IsOlder(meta, known) && (meta.resource_version.empty() || meta.resource_version != known.resource_version);
}

template <class Object>
bool PutInto(std::map<std::string, std::map<std::string, Object>>* all, std::map<std::string, std::string>* owners,
             Object object) {
  const std::string owner = OwnerKeyOf(object.meta);
  if (owner.empty()) return false;
  (*owners)[KeyOf(object.meta.ns, object.meta.name)] = owner;
  auto& mine = (*all)[owner];
  auto found = mine.find(object.meta.name);
  if (found == mine.end()) {
    std::string name = object.meta.name;
    mine.emplace(std::move(name), std::move(object));
    return true;
  }
  if (found->second.meta.uid == object.meta.uid && !IsNews(object.meta, found->second.meta)) return false;
  found->second = std::move(object);
  return true;
}

template <class Object>
std::string RemoveFrom(std::map<std::string, std::map<std::string, Object>>* all,
                       std::map<std::string, std::string>* owners, const std::string& ns, const std::string& name) {
  const auto owned = owners->find(KeyOf(ns, name));
  if (owned == owners->end()) return "";
  std::string owner = std::move(owned->second);
  owners->erase(owned);
  if (auto mine = all->find(owner); mine != all->end()) {
    mine->second.erase(name);
    if (mine->second.empty()) all->erase(mine);
  }
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

bool Children::Put(ObservedJob job) { return PutInto(&jobs_, &job_owners_, std::move(job)); }
bool Children::Put(ObservedPod pod) { return PutInto(&pods_, &pod_owners_, std::move(pod)); }
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
  return RemoveFrom(&jobs_, &job_owners_, ns, name);
}
std::string Children::RemovePod(const std::string& ns, const std::string& name) {
  return RemoveFrom(&pods_, &pod_owners_, ns, name);
}
std::string Children::RemoveService(const std::string& ns, const std::string& name) {
  const auto found = services_.find(KeyOf(ns, name));
  if (found == services_.end()) return "";
  std::string owner = OwnerKeyOf(found->second);
  services_.erase(found);
  return owner;
}

Observed Children::Of(const Meta& owner, const std::string& subdomain) const {
  Observed observed;
  const std::string key = KeyOf(owner.ns, owner.name);
  const auto is_owners = [&owner](const Meta& meta) {
    const OwnerReference* controller = meta.Controller();
    return controller != nullptr && controller->uid == owner.uid;
  };
  if (auto found = jobs_.find(key); found != jobs_.end()) {
    for (const auto& [name, job] : found->second) {
      if (!is_owners(job.meta)) continue;
      observed.jobs.push_back(job);
      const auto refusal = refusals_.find(job.meta.uid);
      if (refusal == refusals_.end()) continue;
      observed.jobs.back().refusal = refusal->second.why;
      observed.jobs.back().refused_at = refusal->second.last;
    }
  }
  if (auto found = pods_.find(key); found != pods_.end()) {
    for (const auto& [name, pod] : found->second) observed.pods.push_back(pod);
  }
  const auto service = services_.find(KeyOf(owner.ns, subdomain));
  observed.service = service != services_.end() && is_owners(service->second);
  return observed;
}

}  // namespace muster::controller
