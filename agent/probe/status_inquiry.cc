// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/status_inquiry.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "net/grpc_channel.h"
#include "rendezvous/grpc_link.h"
#include "rendezvous/local_link.h"

namespace muster::agent {

namespace asio = boost::asio;
using rendezvous::StatusReport;

namespace {

constexpr int kMostRedirects = 8;  // two coordinators may redirect to each other
// By default nodes give up a silent coordinator after 15 s; then one of them stands in.
constexpr Duration kSuccessionLimit = std::chrono::seconds(60);
constexpr Duration kCandidateLimit = std::chrono::seconds(2);
constexpr Duration kPause = std::chrono::milliseconds(100);  // between two walks over the candidates

Status Refused(const std::string& who, const rendezvous::Refuse& refuse) {
  std::string text = fmt::format("{}: {}", who, refuse.reason);
  if (refuse.exit_code == kExitUsage) return absl::InvalidArgumentError(text);
  if (refuse.exit_code == kExitBadConfiguration) return absl::FailedPreconditionError(text);
  return absl::NotFoundError(text);
}

double InSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

class StatusInquiry::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, std::string run_id, bool telemetry)
      : loop_(loop), run_id_(std::move(run_id)), telemetry_(telemetry), deadline_(loop), pause_(loop) {}

  void Ask(const std::string& address, rendezvous::Coordinator* coordinator, const net::Credentials& credentials,
           Duration limit, Done done) {
    waiting_.push_back(std::move(done));
    if (waiting_.size() > 1) return;
    Begin(address, coordinator, credentials, limit);
  }

  void Follow(const std::string& address, rendezvous::Coordinator* coordinator, const net::Credentials& credentials,
              Duration limit, Follower follower) {
    follower_ = std::move(follower);
    endpoint_ = address;
    Begin(address, coordinator, credentials, limit);
  }

  void Drop() {
    ++dialled_;
    waiting_.clear();
    follower_.reset();
    deadline_.cancel();
    pause_.cancel();
    link_.reset();
  }

 private:
  void Begin(const std::string& address, rendezvous::Coordinator* coordinator, const net::Credentials& credentials,
             Duration limit) {
    credentials_ = credentials;
    redirects_ = 0;
    lost_.clear();
    last_.reset();
    Dial(address, coordinator, limit);
    Await(limit, absl::DeadlineExceededError(fmt::format("{} did not answer within {} s", who_, InSeconds(limit))));
  }

  void Await(Duration limit, Status late) {
    deadline_.expires_after(limit);
    deadline_.async_wait([weak = weak_from_this(), late = std::move(late)](boost::system::error_code error) {
      auto self = weak.lock();
      if (self && !error) self->End(late);
    });
  }

  void Dial(const std::string& address, rendezvous::Coordinator* coordinator, Duration limit) {
    const uint64_t number = ++dialled_;
    who_ = address.empty() ? "the coordinator in this process" : "the coordinator at " + address;
    auto mine = [weak = weak_from_this(), number](auto step) {
      auto self = weak.lock();
      if (self && self->dialled_ == number) step(*self);
    };
    rendezvous::Link::Events events;
    events.connected = [mine] {
      mine([](Impl& self) {
        self.link_->Send(rendezvous::Inspect{
            .run_id = self.run_id_, .follow = self.follower_.has_value(), .telemetry = self.telemetry_});
      });
    };
    events.message = [mine](const rendezvous::CoordinatorMessage& message) {
      mine([&](Impl& self) { self.Hear(message); });
    };
    events.closed = [mine](rendezvous::attendance::Loss loss, const std::string& detail) {
      mine([&](Impl& self) { self.Lose(loss, detail); });
    };
    LetGo();
    if (address.empty()) {
      link_ = rendezvous::DialLocally(loop_, *coordinator, std::move(events));
      return;
    }
    if (queue_ == nullptr) queue_ = net::MakeCallQueue(loop_);  // only if an address is dialled
    if (resolver_ == nullptr) resolver_ = std::make_unique<net::Resolver>(loop_);
    link_ = rendezvous::DialGrpc(loop_, *queue_, *resolver_, address, credentials_, limit, std::move(events));
  }

  void Hear(const rendezvous::CoordinatorMessage& message) {
    if (const auto* redirect = std::get_if<rendezvous::Redirect>(&message)) {
      if (redirect->address.empty() || ++redirects_ > kMostRedirects) {
        if (Looking()) return TryNext();
        return End(absl::UnavailableError(fmt::format("{} redirects to \"{}\": no coordinator was found after {}", who_,
                                                      redirect->address, Counted(redirects_, "redirect"))));
      }
      return Dial(redirect->address, nullptr, kCandidateLimit);
    }
    if (const auto* refuse = std::get_if<rendezvous::Refuse>(&message)) {
      return Looking() ? TryNext() : End(Refused(who_, *refuse));
    }
    if (const auto* notice = std::get_if<rendezvous::Notice>(&message); notice != nullptr && follower_) {
      Answered();
      return follower_->say(notice->text);
    }
    const auto* report = std::get_if<StatusReport>(&message);
    if (report == nullptr) return;
    if (!follower_) return End(*report);
    Answered();
    last_ = *report;
    auto told = follower_->told;
    told(*report);
    if (report->phase == "finished") End(absl::OkStatus());
  }

  void Answered() {
    deadline_.cancel();
    redirects_ = 0;
    lost_.clear();
  }

  void Lose(rendezvous::attendance::Loss loss, const std::string& detail) {
    if (Looking()) return TryNext();
    if (!last_) {
      return End(loss == rendezvous::attendance::Loss::kUnauthenticated ? absl::UnauthenticatedError(detail)
                                                                        : absl::UnavailableError(detail));
    }
    lost_ = fmt::format("{} was lost: {}", who_, detail);
    follower_->say(fmt::format("{}; looking for its successor (up to {} s)", lost_, InSeconds(kSuccessionLimit)));
    candidates_.clear();
    for (const rendezvous::StatusLine& line : last_->nodes) {
      if (!line.control_address.empty()) candidates_.push_back(line.control_address);
    }
    if (!endpoint_.empty()) candidates_.push_back(endpoint_);
    next_ = 0;
    Await(kSuccessionLimit, absl::AbortedError(fmt::format("{}, and no successor answered within {} s", lost_,
                                                           InSeconds(kSuccessionLimit))));
    TryNext();
  }

  // True while it looks for the successor of a lost coordinator.
  bool Looking() const { return !lost_.empty(); }

  void TryNext() {
    const bool one = next_ < candidates_.size();
    redirects_ = 0;
    if (one) {
      Dial(candidates_[next_++], nullptr, kCandidateLimit);
    } else {
      next_ = 0;
      ++dialled_;
      LetGo();
    }
    pause_.expires_after(one ? kCandidateLimit : kPause);  // a frozen process accepts, but does not answer
    pause_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
      auto self = weak.lock();
      if (self && !error && self->Looking()) self->TryNext();
    });
  }

  // Destroys the link later, since it may be calling this object, but before queue_ is destroyed.
  void LetGo() {
    if (!link_) return;
    asio::post(loop_, [self = shared_from_this(), old = std::shared_ptr<rendezvous::Link>(std::move(link_))] {});
  }

  void End(const StatusOr<StatusReport>& answer) {
    for (const Done& done : Ended()) done(answer);
  }
  void End(const Status& status) {
    std::optional<Follower> follower = std::exchange(follower_, std::nullopt);
    for (const Done& done : Ended()) done(status);
    if (follower) follower->over(status);
  }
  std::vector<Done> Ended() {
    ++dialled_;
    deadline_.cancel();
    pause_.cancel();
    lost_.clear();
    LetGo();
    return std::exchange(waiting_, {});
  }

  asio::io_context& loop_;
  const std::string run_id_;
  const bool telemetry_;
  asio::steady_timer deadline_;  // of the first answer, or of the search for a successor
  asio::steady_timer pause_;
  std::unique_ptr<net::Resolver> resolver_;
  std::unique_ptr<net::GrpcQueue> queue_;
  std::unique_ptr<rendezvous::Link> link_;  // after resolver_ and queue_, which it uses
  net::Credentials credentials_;
  uint64_t dialled_ = 0;  // tells callbacks of an older link from those of this one
  int redirects_ = 0;
  std::string who_;
  std::vector<Done> waiting_;
  std::optional<Follower> follower_;
  std::string endpoint_;
  std::optional<StatusReport> last_;
  std::string lost_;  // set while a successor is looked for
  std::vector<std::string> candidates_;
  size_t next_ = 0;
};

StatusInquiry::StatusInquiry(asio::io_context& loop, std::string run_id, bool telemetry)
    : impl_(std::make_shared<Impl>(loop, std::move(run_id), telemetry)) {}
StatusInquiry::~StatusInquiry() { impl_->Drop(); }

void StatusInquiry::Ask(const std::string& address, rendezvous::Coordinator* coordinator,
                        const net::Credentials& credentials, Duration limit, Done done) {
  impl_->Ask(address, coordinator, credentials, limit, std::move(done));
}

void StatusInquiry::Follow(const std::string& address, rendezvous::Coordinator* coordinator,
                           const net::Credentials& credentials, Duration limit, Follower follower) {
  impl_->Follow(address, coordinator, credentials, limit, std::move(follower));
}

}  // namespace muster::agent
