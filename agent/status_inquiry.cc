#include "agent/status_inquiry.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>
#include <vector>

#include "base/text.h"
#include "rendezvous/grpc_channel.h"
#include "rendezvous/grpc_link.h"
#include "rendezvous/local_link.h"

namespace muster::agent {

namespace asio = boost::asio;
using rendezvous::StatusReport;

class StatusInquiry::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, std::string run_id) : loop_(loop), run_id_(std::move(run_id)), deadline_(loop) {}

  void Ask(const std::string& address, rendezvous::Conductor* conductor, const rendezvous::Credentials& credentials,
           Duration limit, Done done) {
    waiting_.push_back(std::move(done));
    if (waiting_.size() > 1) return;
    const uint64_t number = ++asked_;
    who_ = address.empty() ? "the coordinator in this process" : "the coordinator at " + address;
    deadline_.expires_after(limit);
    deadline_.async_wait([weak = weak_from_this(), number, limit](boost::system::error_code error) {
      auto self = weak.lock();
      if (!self || error || self->asked_ != number) return;
      self->Answer(absl::DeadlineExceededError(
          fmt::format("{} did not answer within {} s", self->who_, std::chrono::duration<double>(limit).count())));
    });
    auto mine = [weak = weak_from_this(), number](auto step) {
      auto self = weak.lock();
      if (self && self->asked_ == number && !self->waiting_.empty()) step(*self);
    };
    rendezvous::Link::Events events;
    events.connected = [mine] {
      mine([](Impl& self) { self.link_->Send(rendezvous::Inspect{.run_id = self.run_id_, .follow = false}); });
    };
    events.message = [mine](const rendezvous::CoordinatorMessage& message) {
      mine([&](Impl& self) {
        if (auto* report = std::get_if<StatusReport>(&message)) return self.Answer(*report);
        if (auto* refuse = std::get_if<rendezvous::Refuse>(&message)) {
          self.Answer(absl::UnavailableError(fmt::format("{} refused: {}", self.who_, refuse->reason)));
        } else if (auto* redirect = std::get_if<rendezvous::Redirect>(&message)) {
          self.Answer(absl::UnavailableError(fmt::format("the run is coordinated at {} now", redirect->address)));
        }
      });
    };
    events.closed = [mine](rendezvous::attendance::Loss, const std::string& detail) {
      mine([&](Impl& self) { self.Answer(absl::UnavailableError(fmt::format("{}: {}", self.who_, detail))); });
    };
    if (address.empty()) {
      link_ = rendezvous::DialLocally(loop_, *conductor, std::move(events));
      return;
    }
    if (queue_ == nullptr) queue_ = rendezvous::MakeCallQueue(loop_);  // only who is asked pays for it
    if (resolver_ == nullptr) resolver_ = std::make_unique<rendezvous::Resolver>(loop_);
    link_ = rendezvous::DialGrpc(loop_, *queue_, *resolver_, address, credentials, limit, std::move(events));
  }

  void Drop() {
    ++asked_;
    waiting_.clear();
    deadline_.cancel();
    link_.reset();
  }

 private:
  void Answer(const StatusOr<StatusReport>& answer) {
    ++asked_;
    deadline_.cancel();
    // The link may be calling us just now; it goes before the queue does.
    asio::post(loop_, [self = shared_from_this(), old = std::shared_ptr<rendezvous::Link>(std::move(link_))] {});
    for (const Done& done : std::exchange(waiting_, {})) done(answer);
  }

  asio::io_context& loop_;
  const std::string run_id_;
  asio::steady_timer deadline_;
  std::unique_ptr<rendezvous::Resolver> resolver_;
  std::unique_ptr<rendezvous::GrpcQueue> queue_;
  std::unique_ptr<rendezvous::Link> link_;  // after the two it uses
  uint64_t asked_ = 0;                      // tells callbacks of an older question from those of this one
  std::string who_;
  std::vector<Done> waiting_;
};

StatusInquiry::StatusInquiry(asio::io_context& loop, std::string run_id)
    : impl_(std::make_shared<Impl>(loop, std::move(run_id))) {}
StatusInquiry::~StatusInquiry() { impl_->Drop(); }

void StatusInquiry::Ask(const std::string& address, rendezvous::Conductor* conductor,
                        const rendezvous::Credentials& credentials, Duration limit, Done done) {
  impl_->Ask(address, conductor, credentials, limit, std::move(done));
}

}  // namespace muster::agent
