// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/local_link.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace muster::rendezvous {
namespace {

// Every step is posted, in both directions, so that neither side is called while it is still in a call of its own.
class LocalLink final : public Link {
 public:
  LocalLink(boost::asio::io_context& loop, Coordinator& coordinator, Events events)
      : shared_(std::make_shared<Shared>(loop, coordinator, std::move(events))) {
    shared_->id = coordinator.Connect(shared_.get(), true);
    shared_->Post([](Shared& shared) {
      if (shared.events.connected) shared.events.connected();
    });
  }
  ~LocalLink() override { shared_->Drop(); }

  void Send(const NodeMessage& message) override {
    shared_->Post([message](Shared& shared) {
      if (shared.open) shared.coordinator.Receive(shared.id, message);
    });
  }

  void HangUp(std::function<void()> done) override {
    boost::asio::post(shared_->loop, std::move(done));  // runs after everything sent before
  }

 private:
  struct Shared final : Coordinator::Peer, std::enable_shared_from_this<Shared> {
    Shared(boost::asio::io_context& loop, Coordinator& coordinator, Events events)
        : loop(loop), coordinator(coordinator), lifetime(coordinator.lifetime()), events(std::move(events)) {}

    void Send(const CoordinatorMessage& message) override {
      Post([message](Shared& shared) {
        if (shared.open) shared.events.message(message);
      });
    }
    void Close() override {
      Post([](Shared& shared) {
        if (!shared.open) return;
        shared.Drop();
        shared.events.closed(attendance::Loss::kClosed, "the coordinator in this process closed the connection");
      });
    }

    template <typename Step>
    void Post(Step step) {
      boost::asio::post(loop, [self = shared_from_this(), step = std::move(step)] {
        if (!self->dropped && !self->lifetime.expired()) step(*self);
      });
    }
    void Drop() {
      dropped = true;
      if (!std::exchange(open, false)) return;
      if (!lifetime.expired()) coordinator.Disconnect(id);
    }

    boost::asio::io_context& loop;
    Coordinator& coordinator;
    const std::weak_ptr<void> lifetime;  // of the coordinator
    const Events events;
    PeerId id = 0;
    bool open = true;
    bool dropped = false;
  };

  std::shared_ptr<Shared> shared_;
};

}  // namespace

std::unique_ptr<Link> DialLocally(boost::asio::io_context& loop, Coordinator& coordinator, Link::Events events) {
  return std::make_unique<LocalLink>(loop, coordinator, std::move(events));
}

}  // namespace muster::rendezvous
