// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/client/informer.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <random>
#include <utility>

#include "base/text.h"
#include "controller/kube/client/informer_state.h"
#include "http/percent.h"

namespace muster::controller {

namespace asio = boost::asio;

namespace {

constexpr int kPage = 500;   // objects: a page is parsed in one go
constexpr int kSmaller = 8;  // divides the page size after an unreadable page

}  // namespace

class Informer::Impl : public std::enable_shared_from_this<Informer::Impl> {
 public:
  Impl(asio::io_context& loop, ApiClient& client, Resource resource, std::string ns, const std::string& selector,
       Events events, const std::string& fields)
      : client_(client),
        resource_(std::move(resource)),
        ns_(std::move(ns)),
        selector_(fmt::format("{}{}",
                              selector.empty() ? "" : fmt::format("&labelSelector={}", http::PercentEncode(selector)),
                              fields.empty() ? "" : fmt::format("&fieldSelector={}", http::PercentEncode(fields)))),
        events_(std::move(events)),
        state_(resource_),
        timer_(loop),
        random_(std::random_device{}()) {}

  void Begin() { Do(state_.Begin()); }
  bool synced() const { return state_.synced(); }
  void Close() {
    closed_ = true;
    under_way_.reset();
    timer_.cancel();
  }

 private:
  void Do(InformerState::Actions actions) {
    const auto self = shared_from_this();
    for (InformerAction& action : actions) {
      if (closed_) return;
      switch (action.kind) {
        case InformerAction::Kind::kPut:
          events_.put(action.View());
          break;
        case InformerAction::Kind::kGone:
          events_.gone(action.gone);
          break;
        case InformerAction::Kind::kSynced:
          events_.synced();
          break;
        case InformerAction::Kind::kSay:
          events_.say(action.text);
          break;
        case InformerAction::Kind::kList:
          List(action.text);
          break;
        case InformerAction::Kind::kStream:
          Watch(fmt::format("sendInitialEvents=true&resourceVersionMatch=NotOlderThan{}", selector_));
          break;
        case InformerAction::Kind::kWatch:
          Watch(fmt::format("resourceVersion={}{}", http::PercentEncode(action.text), selector_));
          break;
        case InformerAction::Kind::kPause:
          Pause(action.pause);
          break;
      }
      action.object = nullptr;  // frees it once reported: a page may be large
    }
  }

  void List(const std::string& continuation) {
    std::string query = fmt::format("limit={}{}", page_, selector_);
    if (!continuation.empty()) query += fmt::format("&continue={}", http::PercentEncode(continuation));
    under_way_ = client_.List(resource_, ns_, query, [weak = weak_from_this()](StatusOr<Json> page) {
      auto self = weak.lock();
      if (!self) return;
      // The page may be longer than the client allows, if objects have a megabyte. Smaller pages fit.
      if (absl::IsFailedPrecondition(page.status())) self->page_ = std::max(1, self->page_ / kSmaller);
      if (page.ok()) self->page_ = std::min(kPage, self->page_ * 2);
      self->Do(self->state_.Listed(std::move(page)));
    });
  }
  void Watch(const std::string& query) {
    under_way_ = client_.Watch(resource_, ns_, query,
                               {.line =
                                    [weak = weak_from_this()](std::string_view line, bool whole, Encoding encoding) {
                                      if (auto self = weak.lock()) self->Do(self->state_.Line(line, whole, encoding));
                                    },
                                .end =
                                    [weak = weak_from_this(), began = MonotonicClock::now()](const Status& status) {
                                      const auto self = weak.lock();
                                      if (self) self->Do(self->state_.Ended(status, MonotonicClock::now() - began));
                                    }});
  }
  void Pause(Duration pause) {
    under_way_.reset();
    timer_.expires_after(Spread(pause, std::uniform_real_distribution<double>(0, 1)(random_)));
    timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
      auto self = weak.lock();
      if (!error && self && !self->closed_) self->Do(self->state_.Resume());
    });
  }

  ApiClient& client_;
  const Resource resource_;
  const std::string ns_, selector_;
  const Events events_;
  InformerState state_;
  asio::steady_timer timer_;
  std::mt19937 random_;
  ApiClient::Handle under_way_;
  int page_ = kPage;
  bool closed_ = false;
};

Informer::Informer(asio::io_context& loop, ApiClient& client, Resource resource, std::string ns,
                   const std::string& selector, Events events, const std::string& fields)
    : impl_(std::make_shared<Impl>(loop, client, std::move(resource), std::move(ns), selector, std::move(events),
                                   fields)) {}
Informer::~Informer() { impl_->Close(); }
void Informer::Begin() { impl_->Begin(); }
bool Informer::synced() const { return impl_->synced(); }

}  // namespace muster::controller
