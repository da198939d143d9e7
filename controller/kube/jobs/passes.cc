// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/passes.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <span>

#include "base/log.h"
#include "base/text.h"
#include "controller/kube/client/answer.h"
#include "controller/kube/client/freshness.h"
#include "http/conversation.h"

namespace muster::controller {

namespace asio = boost::asio;

namespace {
constexpr int kMostLanes = 16;  // objects of one namespace that are created at the same time; each pass has one
constexpr size_t kMostUnderWay = size_t{2} << 20;  // bytes of the objects of one job that are created at the same time

bool GoesTogether(Action::Kind kind) {
  return kind == Action::Kind::kCreatePod || kind == Action::Kind::kCreateService || kind == Action::Kind::kCreateJob;
}

// How many of `actions`, which may run at the same time, do.
int LanesFor(std::span<const Action> actions, int lanes_of_namespace) {
  size_t largest = 1;
  for (const Action& action : actions) largest = std::max(largest, action.bytes);
  const auto fit = static_cast<int>(std::min<size_t>(kMostUnderWay / largest, actions.size()));
  return std::max(1, std::min(fit, kMostLanes - lanes_of_namespace));
}

// Such actions are left out after one that was forbidden, since pods may need what that would have made.
bool StartsPods(Action::Kind kind) {
  using Kind = Action::Kind;
  return kind == Kind::kCreateJob || kind == Kind::kCreatePod || kind == Kind::kCreatePodOfJob;
}

}  // namespace

Passes::Passes(ControllerContext context, WorkQueue::Options options, std::string kind, Reconcile reconcile)
    : context_(std::move(context)),
      kind_(std::move(kind)),
      reconcile_(std::move(reconcile)),
      queue_(context_.loop, options, [this](const std::string& key, auto done) { Begin(key, std::move(done)); }) {}

void Passes::Begin(const std::string& key, WorkQueue::Done done) {
  passes_[key] = http::Converse(context_.loop, Pass(key, std::move(done)));
}

asio::awaitable<void> Passes::Pass(std::string key, WorkQueue::Done done) {
  ++counts_.all;
  Duration spent{};
  const Status status = co_await reconcile_(key, &spent);
  if (!status.ok()) {
    ++counts_.failed;
    log::Warning(fmt::format("{} {}: {}", kind_, key, Message(status)));
  }
  // Posted, so that this coroutine has ended before the next pass of this key begins.
  asio::post(context_.loop, [self = weak_from_this(), key, done = std::move(done), ok = status.ok(), spent] {
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
  if (steps.again) queue_.AddAfter(key, std::max(Duration::zero(), Duration(*steps.again - WallNow())));
  const bool writes = status.has_value() && !steps.status_may_wait;
  if (writes && steps.status_first) {
    const Status written = co_await Write(owner, steps, *status, cache);
    if (!written.ok()) co_return written;
  }
  const std::span<const Action> actions(steps.actions);
  const bool goes_on = actions.size() > kMostActions;
  const Status done = co_await Act(owner, actions.first(std::min(actions.size(), kMostActions)), cache);
  if (!done.ok()) co_return done;
  if (writes && !steps.status_first) {
    const Status written = co_await Write(owner, steps, *status, cache);
    if (!written.ok()) co_return written;
  }
  if (!writes && !steps.status_may_wait) RecordEvents(owner, steps);
  if (goes_on) queue_.Add(key);
  co_return absl::OkStatus();
}

// Actions that may run at the same time.
struct Passes::Batch {
  const ActionOwner& owner;
  ObjectCache& cache;
  std::span<const Action> actions;  // not begun yet
  int lanes;
  const Action* failed = nullptr;  // the first in order, so that the same refusals give the same message
  Status status;                   // its error
  asio::steady_timer over;
};

asio::awaitable<void> Passes::Lane(std::shared_ptr<Batch> batch) {
  while (!batch->actions.empty() && batch->status.ok()) {
    const Action& action = batch->actions.front();
    batch->actions = batch->actions.subspan(1);
    Status done = absl::AbortedError(kNotLeading);
    if (context_.may_act()) {
      done = co_await controller::CarryOut(context_.client, context_.master_key, batch->cache, batch->owner, action);
    }
    if (done.ok() || (batch->failed != nullptr && batch->failed < &action)) continue;
    batch->failed = &action;
    batch->status = std::move(done);
  }
  if (--batch->lanes == 0) batch->over.cancel();
}

asio::awaitable<Status> Passes::Act(const ActionOwner& owner, std::span<const Action> actions, ObjectCache& cache) {
  Status forbidden;
  for (auto begin = actions.begin(); begin != actions.end();) {
    const Action::Kind kind = begin->kind;
    const bool together = GoesTogether(kind);
    const auto end =
        std::find_if(begin + 1, actions.end(), [&](const Action& next) { return !together || next.kind != kind; });
    if (!forbidden.ok() && StartsPods(kind)) {
      begin = end;
      continue;
    }
    const int lanes = LanesFor({begin, end}, lanes_[owner.meta.ns]);
    lanes_[owner.meta.ns] += lanes;
    const auto batch = std::make_shared<Batch>(
        Batch{owner, cache, {begin, end}, lanes, nullptr, {}, asio::steady_timer(context_.loop, TimePoint::max())});
    std::vector<std::shared_ptr<void>> under_way;  // the other lanes; end with this coroutine
    for (int i = 1; i < lanes; ++i) under_way.push_back(http::Converse(context_.loop, Lane(batch)));
    co_await Lane(batch);
    if (batch->lanes > 0) co_await batch->over.async_wait(asio::as_tuple(asio::use_awaitable));
    http::ThrowIfCancelled(co_await asio::this_coro::cancellation_state);
    if ((lanes_[owner.meta.ns] -= lanes) == 0) lanes_.erase(owner.meta.ns);
    if (!batch->status.ok() && !absl::IsPermissionDenied(batch->status)) co_return batch->status;
    forbidden.Update(batch->status);
    begin = end;
  }
  co_return forbidden;
}

// Writes the status, then the events about it.
asio::awaitable<Status> Passes::Write(const ActionOwner& owner, const Steps& steps, const Json& status,
                                      ObjectCache& cache) {
  if (!context_.may_act()) co_return absl::AbortedError(kNotLeading);
  auto written = co_await Answer([&](ApiClient::Done done) {
    return context_.client.Apply(owner.resource, owner.meta.ns, owner.meta.name, "status", status, std::move(done));
  });
  if (absl::IsNotFound(written.status())) co_return absl::OkStatus();
  if (!written.ok()) co_return written.status();
  RecordEvents(owner, steps);
  cache.Put(owner.resource, *written);
  co_return absl::OkStatus();
}

void Passes::RecordEvents(const ActionOwner& owner, const Steps& steps) {
  for (const EventText& event : steps.events) {
    context_.events.Record(owner.resource.api, owner.kind, owner.meta, event.warning, event.reason, event.message,
                           WallNow());
  }
}

Json StatusOf(const ActionOwner& owner, Json status) {
  const Json metadata = {{"name", owner.meta.name}, {"namespace", owner.meta.ns}, {"uid", owner.meta.uid}};
  return {
      {"apiVersion", owner.resource.api}, {"kind", owner.kind}, {"metadata", metadata}, {"status", std::move(status)}};
}

}  // namespace muster::controller
