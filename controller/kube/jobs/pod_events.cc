#include "controller/kube/jobs/pod_events.h"

#include "base/log.h"
#include "base/text.h"

namespace muster::controller {
namespace {

bool HasReason(const ObservedPodEvent& event) {
  // Pods are not ready for many reasons, and run on.
  if (event.reason == "Unhealthy") return !event.message.starts_with("Readiness");
  // Behind each Event with the image and the error the kubelet writes one that has neither.
  return event.message != "Error: ErrImagePull" && event.message != "Error: ImagePullBackOff";
}

}  // namespace

PodEvents::PodEvents(boost::asio::io_context& loop, ApiClient& client, std::string ns,
                     std::function<void(ObservedPodEvent)> put)
    : put_(std::move(put)) {
  // The scheduler's Event about a preempted pod is of type Normal, and the only one that names the preemptor.
  for (const char* fields : {"involvedObject.kind=Pod,type=Warning", "involvedObject.kind=Pod,reason=Preempted"}) {
    Informer::Events events;
    events.put = [this](const Json& object) {
      auto event = ReadPodEvent(object);
      if (event.ok() && HasReason(*event)) put_(*std::move(event));
    };
    events.gone = [](const GoneObject&) {};
    events.synced = [] {};
    events.say = [](const std::string& text) { log::Warning(text); };
    informers_.push_back(std::make_unique<Informer>(loop, client, kEvents, ns, "", std::move(events), fields));
  }
}

void PodEvents::Begin() {
  for (const auto& informer : informers_) informer->Begin();
}

}  // namespace muster::controller
