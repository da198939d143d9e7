#include "controller/kube/passes.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "base/log.h"
#include "base/text.h"
#include "controller/kube/answer.h"
#include "controller/kube/freshness.h"
#include "http/conversation.h"

namespace muster::controller {

namespace asio = boost::asio;

Passes::Passes(ServingMeans means, WorkQueue::Options options, std::string kind, Reconcile reconcile)
    : means_(std::move(means)),
      kind_(std::move(kind)),
      reconcile_(std::move(reconcile)),
      queue_(means_.loop, options, [this](const std::string& key, auto done) { Begin(key, std::move(done)); }) {}

void Passes::Begin(const std::string& key, WorkQueue::Done done) {
  passes_[key] = http::Converse(means_.loop, Pass(key, std::move(done)));
}

asio::awaitable<void> Passes::Pass(std::string key, WorkQueue::Done done) {
  ++counts_.all;
  Duration spent{};
  const Status status = co_await reconcile_(key, &spent);
  if (!status.ok()) {
    ++counts_.failed;
    log::Warning(fmt::format("{} {}: {}", kind_, key, Message(status)));
  }
  // The pass is over before the next one of this key begins.
  asio::post(means_.loop, [self = weak_from_this(), key, done = std::move(done), ok = status.ok(), spent] {
    const auto alive = self.lock();
    if (alive == nullptr) return;
    alive->passes_.erase(key);
    done(ok ? WorkQueue::Outcome::kDone : WorkQueue::Outcome::kAgain, spent);
  });
}

asio::awaitable<Status> Passes::CarryOut(ActionOwner owner, const Steps& steps, std::optional<Json> status,
                                         ObjectCache& cache) {
  const std::string key = KeyOf(owner.meta.ns, owner.meta.name);
  if (!steps.reason.empty()) log::Debug(fmt::format("{} {}: {}", kind_, key, steps.reason));
  const bool writes = status.has_value() && !steps.status_may_wait;
  if (writes && steps.status_first) {
    const Status written = co_await Write(owner, steps, *status, cache);
    if (!written.ok()) co_return written;
  }
  for (const Action& action : steps.actions) {
    if (!means_.may_act()) co_return absl::AbortedError(kNotLeading);
    const Status done = co_await controller::CarryOut(means_.client, cache, owner, action);
    if (!done.ok()) co_return done;
  }
  if (writes && !steps.status_first) {
    const Status written = co_await Write(owner, steps, *status, cache);
    if (!written.ok()) co_return written;
  }
  if (!writes && !steps.status_may_wait) Tell(owner, steps);
  if (steps.again) queue_.AddAfter(key, std::max(Duration::zero(), Duration(*steps.again - WallNow())));
  co_return absl::OkStatus();
}

// The status, then the events about it.
asio::awaitable<Status> Passes::Write(const ActionOwner& owner, const Steps& steps, const Json& status,
                                      ObjectCache& cache) {
  if (!means_.may_act()) co_return absl::AbortedError(kNotLeading);
  auto written = co_await Answer([&](ApiClient::Done done) {
    return means_.client.Apply(owner.resource, owner.meta.ns, owner.meta.name, "status", status, std::move(done));
  });
  if (absl::IsNotFound(written.status())) co_return absl::OkStatus();
  if (!written.ok()) co_return written.status();
  Tell(owner, steps);
  cache.Put(owner.resource, *written);
  co_return absl::OkStatus();
}

void Passes::Tell(const ActionOwner& owner, const Steps& steps) {
  for (const EventText& event : steps.events) {
    means_.events.Record(owner.resource.api, owner.kind, owner.meta, event.warning, event.reason, event.message,
                         WallNow());
  }
}

Json StatusOf(const ActionOwner& owner, Json status) {
  const Json metadata = {{"name", owner.meta.name}, {"namespace", owner.meta.ns}, {"uid", owner.meta.uid}};
  return {
      {"apiVersion", owner.resource.api}, {"kind", owner.kind}, {"metadata", metadata}, {"status", std::move(status)}};
}

}  // namespace muster::controller
