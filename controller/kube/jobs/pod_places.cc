#include "controller/kube/jobs/pod_places.h"

namespace muster::controller {

bool PodPlaces::Put(ObservedPod pod, std::vector<ObservedPod>* pods) {
  const auto [place, added] = places_.try_emplace(pod.meta.name, pods->size());
  if (added) {
    pods->push_back(std::move(pod));
    return true;
  }
  ObservedPod& known = (*pods)[place->second];
  if (known.meta.uid == pod.meta.uid ? !IsNews(pod.meta, known.meta) : IsOlder(pod.meta, known.meta)) return false;
  if (known.meta.uid == pod.meta.uid) pod.event = std::move(known.event);
  known = std::move(pod);
  return true;
}

bool PodPlaces::Note(ObservedPodEvent event, std::vector<ObservedPod>* pods) {
  const auto place = places_.find(event.pod);
  if (place == places_.end()) return false;
  ObservedPod& pod = (*pods)[place->second];
  if (pod.meta.uid != event.pod_uid || event.last < pod.event.last) return false;
  event.meta = Meta();  // nothing reads it any more
  pod.event = std::move(event);
  return true;
}

bool PodPlaces::Remove(const GoneObject& gone, std::vector<ObservedPod>* pods) {
  const auto place = places_.find(gone.name);
  if (place == places_.end() || !IsGone((*pods)[place->second].meta, gone)) return false;
  ObservedPod& freed = (*pods)[place->second];
  if (&freed != &pods->back()) {
    freed = std::move(pods->back());
    places_[freed.meta.name] = place->second;
  }
  pods->pop_back();
  places_.erase(place);
  return true;
}

}  // namespace muster::controller
