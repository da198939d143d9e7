// SPDX-License-Identifier: Apache-2.0
#include "rendezvous/attendant.h"

#include <algorithm>
#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "base/text.h"
#include "net/connect.h"
#include "net/grpc_channel.h"
#include "net/resolver.h"
#include "rendezvous/grpc_link.h"
#include "rendezvous/local_link.h"

namespace muster::rendezvous {

namespace asio = boost::asio;
using attendance::Loss;

namespace {

// For one dial: an address that does not answer must not delay the walk to the next one.
constexpr Duration kConnectLimit = std::chrono::seconds(3);
// For a coordinator that was given up, until it has received the last words.
constexpr Duration kPartingLimit = std::chrono::seconds(1);
// The pause between a stand-in's dials of the job's endpoint; it doubles after each failure.
constexpr Duration kFirstKnock = std::chrono::milliseconds(50);
constexpr Duration kSlowestKnock = std::chrono::seconds(2);
// A stand-in knocks again this long after the last time, by a new connection: the old one may lead to a machine that
// has lost its power, while another pod serves the endpoint.
constexpr Duration kKnockAgain = std::chrono::seconds(5);

}  // namespace

class Attendant::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, AttendantOptions options, Coordinator* coordinator, AttendantEvents events)
      : loop_(loop),
        options_(std::move(options)),
        coordinator_(coordinator),
        events_(std::move(events)),
        timer_(loop),
        close_timer_(loop),
        knock_timer_(loop) {
    state_.run_id = options_.run_id;
    state_.endpoint = options_.endpoint;
    state_.self = options_.self;
    state_.options = options_.options;
    state_.may_stand_in = coordinator != nullptr && !options_.self.control_address.empty();
    state_.may_host = events_.host_endpoint != nullptr;
    state_.in_pods = options_.in_pods;
    state_.seed = std::hash<std::string>{}(options_.self.incarnation + options_.self.name) | 1;
    connect_limit_ =
        std::min(kConnectLimit, std::max<Duration>(options_.options.heartbeat_timeout, std::chrono::seconds(1)));
  }

  // Applies `event`, and then, in order, the events that the callbacks of its actions cause.
  void Apply(attendance::Event event) {
    if (dropped_ || closing_) return;
    waiting_.push_back(std::move(event));
    if (busy_) return;
    busy_ = true;
    auto self = shared_from_this();
    while (!waiting_.empty() && !dropped_) {
      attendance::Event next = std::move(waiting_.front());
      waiting_.pop_front();
      attendance::Effects effects = attendance::Apply(state_, next, MonotonicClock::now());
      for (attendance::Action& action : effects.actions) {
        if (dropped_) break;
        std::visit([this](auto& what) { Do(what); }, action);
      }
      if (!state_.standing_in) StopKnocking();
      Arm(effects.look_again);
    }
    busy_ = false;
  }

  std::optional<std::string> attended() const {
    if (dropped_ || state_.stage != attendance::Stage::kAttending) return std::nullopt;
    return state_.target;
  }

  // Decides nothing, so it does not pass through the state machine.
  void Tell(const Telemetry& telemetry) {
    if (attended() && link_ != nullptr) link_->Send(telemetry);
  }

  void Close(Duration limit, std::function<void()> done) {
    closing_ = true;
    closed_ = std::move(done);
    events_ = {};
    // What was told before, perhaps by the event that is being applied, is sent first.
    asio::post(loop_, [weak = weak_from_this(), limit] {
      if (auto self = weak.lock()) self->HangUp(limit);
    });
  }

  void Drop() {
    dropped_ = true;
    events_ = {};
    closed_ = nullptr;
    timer_.cancel();
    close_timer_.cancel();
    knock_timer_.cancel();
    knocking_.reset();
    probes_.clear();
    link_.reset();
    // Perhaps within a callback of queue_: it must not be destroyed before the callback has returned.
    if (busy_) asio::post(loop_, [self = shared_from_this()] {});
  }

 private:
  void Do(attendance::Dial& dial) {
    ++dialled_;
    // Destroyed later: this may be a callback of the link.
    if (link_ != nullptr) asio::post(loop_, [old = std::shared_ptr<Link>(std::move(link_))] {});
    Link::Events events;
    events.connected = Mine([](Impl& self) { self.Apply(attendance::Connected{}); });
    events.message = [weak = weak_from_this(), number = dialled_](CoordinatorMessage message) {
      auto self = weak.lock();
      if (self && self->dialled_ == number) self->Apply(attendance::Heard{std::move(message)});
    };
    events.closed = [weak = weak_from_this(), number = dialled_](Loss loss, const std::string& detail) {
      auto self = weak.lock();
      if (self && self->dialled_ == number) self->Apply(attendance::Disconnected{loss, detail});
    };
    if (dial.address.empty()) {
      if (coordinator_ == nullptr) {  // not expected: `may_stand_in` is false then
        return Apply(attendance::Disconnected{Loss::kUnreachable, "this agent does not coordinate"});
      }
      link_ = DialLocally(loop_, *coordinator_, std::move(events));
    } else {
      link_ = DialOut(dial.address, std::move(events));
    }
  }
  void Do(attendance::Send& tell) {
    if (link_ != nullptr) link_->Send(tell.message);
  }
  void Do(attendance::HangUp&) {
    ++dialled_;
    if (link_ == nullptr) return;
    // What was told last (Doubt) must still arrive.
    struct Parting {
      std::unique_ptr<Link> link;
      asio::steady_timer limit;
    };
    auto parting = std::make_shared<Parting>(Parting{std::move(link_), asio::steady_timer(loop_, kPartingLimit)});
    auto drop = [loop = &loop_, parting] {
      parting->limit.cancel();
      asio::post(*loop, [link = std::shared_ptr<Link>(std::move(parting->link))] {});  // may be in its callback now
    };
    parting->limit.async_wait([drop](const boost::system::error_code& error) {
      if (!error) drop();
    });
    parting->link->HangUp(drop);
  }
  void Do(attendance::StartRound& start) {
    if (events_.start) Copy(events_.start)(start.assignment);
  }
  void Do(attendance::StopRound& stop) {
    if (events_.stop) Copy(events_.stop)(stop);
  }
  void Do(attendance::AllSilent&) {
    if (events_.all_silent) Copy(events_.all_silent)();
  }
  void Do(attendance::PrepareNow&) {
    if (events_.prepare) Copy(events_.prepare)();
  }
  void Do(attendance::GiveImports& given) {
    if (events_.imports) Copy(events_.imports)(given.names);
  }
  void Do(attendance::WantTelemetry&) {
    if (events_.telemetry_wanted) Copy(events_.telemetry_wanted)();
  }
  void Do(attendance::End& end) {
    StopKnocking();
    if (events_.end) Copy(events_.end)(end.verdict);
  }
  void Do(attendance::Say& say) {
    if (events_.say) Copy(events_.say)(say.text);
  }
  void Do(attendance::CoordinateHere& here) {
    if (coordinator_ == nullptr) return;
    coordinator_->TakeOver(options_.run_id,
                           StandIn{here.assignment, options_.options, here.proof, here.dead, here.known_term});
    if (options_.endpoint.empty() || options_.endpoint == options_.self.control_address) return;
    knock_pause_ = kFirstKnock;
    Knock();
  }
  void Do(attendance::HostEndpoint&) {
    if (events_.host_endpoint && Copy(events_.host_endpoint)()) Apply(attendance::Hosting{});
  }

  void Do(attendance::Probe& probe) {
    auto probed = [weak = weak_from_this(), name = probe.name](Loss loss) {
      auto self = weak.lock();
      if (!self || self->dropped_) return;
      // Destroyed later: this may be a callback of the probe.
      asio::post(self->loop_, [old = std::make_shared<Probing>(std::move(self->probes_[name]))] {});
      self->Apply(attendance::Probed{name, loss});
    };
    Probing& probing = probes_[probe.name];
    auto connected = [this, &probing, probed](const net::Connecting::Connected& open) {  // `probing` outlives it
      probing.socket = std::make_shared<asio::posix::stream_descriptor>(loop_, open.fd);
      UntilClosed(probing.socket, std::make_shared<std::array<char, 512>>(), probed);
    };
    auto failed = [probed](const net::Connecting::Failed& what) { probed(what.loss); };
    probing.connecting =
        net::Connecting::Start(loop_, AnyResolver(), probe.address, connect_limit_, {connected, failed});
  }
  // Ignores what the server sends, until the server dies or closes the idle connection.
  static void UntilClosed(const std::weak_ptr<asio::posix::stream_descriptor>& socket,
                          const std::shared_ptr<std::array<char, 512>>& buffer,
                          const std::function<void(Loss)>& closed) {
    auto open = socket.lock();
    if (open == nullptr) return;
    open->async_read_some(asio::buffer(*buffer), [=](const boost::system::error_code& error, size_t) {
      error ? closed(Loss::kClosed) : UntilClosed(socket, buffer, closed);
    });
  }
  void Do(attendance::TellDead& dead) {
    if (coordinator_ != nullptr) coordinator_->KnowDead(options_.run_id, Gone{dead.name});
  }

  void StopKnocking() {
    if (!knock_pause_) return;
    knock_pause_.reset();
    ++knocks_;
    knock_timer_.cancel();
    // Destroyed later: this may be a callback of the link.
    asio::post(loop_, [old = std::shared_ptr<Link>(std::move(knocking_))] {});
  }

  // --- a stand-in tells the agent at the job's endpoint that the run is coordinated here ---
  void Knock() {
    if (dropped_ || !knock_pause_) return;
    ++knocks_;
    Link::Events events;
    auto mine = [weak = weak_from_this(), number = knocks_](auto step) {
      auto self = weak.lock();
      if (self && self->knocks_ == number && !self->dropped_) step(*self);
    };
    events.connected = [mine] {
      mine([](Impl& self) {
        self.knock_pause_ = kFirstKnock;
        Supersede supersede = self.coordinator_->AsStandIn(self.options_.run_id);
        supersede.address = self.options_.self.control_address;
        self.knocking_->Send(supersede);
      });
    };
    events.message = [mine](CoordinatorMessage message) {
      mine([&](Impl& self) {
        // Another agent coordinates with a higher term: all peers of this one are sent there.
        if (auto* redirect = std::get_if<Redirect>(&message)) {
          self.coordinator_->Yield(self.options_.run_id, *redirect);
        }
      });
    };
    events.closed = [mine](Loss, const std::string&) {
      mine([](Impl& self) {
        if (!self.knock_pause_) return;
        self.KnockAfter(*self.knock_pause_);
        self.knock_pause_ = std::min(*self.knock_pause_ * 2, kSlowestKnock);
      });
    };
    knocking_ = DialOut(options_.endpoint, std::move(events));
    KnockAfter(kKnockAgain);
  }

  void KnockAfter(Duration pause) {
    knock_timer_.expires_after(pause);
    knock_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (self && !error) self->Knock();
    });
  }

  std::unique_ptr<Link> DialOut(const std::string& address, Link::Events events) {
    if (queue_ == nullptr) queue_ = net::MakeCallQueue(loop_);  // only an agent that dials out pays for gRPC
    return DialGrpc(loop_, *queue_, AnyResolver(), address, options_.credentials, connect_limit_, std::move(events));
  }

  net::Resolver& AnyResolver() {
    if (resolver_ == nullptr) resolver_ = std::make_unique<net::Resolver>(loop_);
    return *resolver_;
  }

  // Wraps `step`: it does nothing if another dial has followed this one.
  std::function<void()> Mine(std::function<void(Impl&)> step) {
    return [weak = weak_from_this(), number = dialled_, step = std::move(step)] {
      auto self = weak.lock();
      if (self && self->dialled_ == number) step(*self);
    };
  }

  // A callback may replace or destroy the function object that holds it, so a copy is called.
  template <typename Function>
  static Function Copy(const Function& function) {
    return function;
  }

  void Arm(std::optional<TimePoint> look_again) {
    if (dropped_ || look_again == armed_) return;
    armed_ = look_again;
    timer_.cancel();
    if (!armed_) return;
    timer_.expires_at(*armed_);
    timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (!self || error) return;
      self->armed_.reset();
      self->Apply(attendance::Tick{});
    });
  }

  void HangUp(Duration limit) {
    if (dropped_) return;
    if (link_ == nullptr) return Closed();
    close_timer_.expires_after(limit);
    close_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      auto self = weak.lock();
      if (self && !error) self->Closed();
    });
    link_->HangUp([weak = weak_from_this()] {
      if (auto self = weak.lock()) self->Closed();
    });
  }
  void Closed() {
    if (!closed_) return;
    close_timer_.cancel();
    ++dialled_;
    asio::post(loop_,
               [old = std::shared_ptr<Link>(std::move(link_)), done = std::exchange(closed_, nullptr)] { done(); });
  }

  asio::io_context& loop_;
  const AttendantOptions options_;
  Coordinator* const coordinator_;
  AttendantEvents events_;
  attendance::State state_;
  Duration connect_limit_{};

  std::deque<attendance::Event> waiting_;
  bool busy_ = false;
  bool dropped_ = false;
  bool closing_ = false;
  asio::steady_timer timer_;
  std::optional<TimePoint> armed_;
  asio::steady_timer close_timer_;
  std::function<void()> closed_;

  std::unique_ptr<net::Resolver> resolver_;
  std::unique_ptr<net::GrpcQueue> queue_;
  uint64_t dialled_ = 0;  // tells callbacks of an older link from those of this one
  std::unique_ptr<Link> link_;

  asio::steady_timer knock_timer_;
  std::optional<Duration> knock_pause_;  // set while this node stands in
  uint64_t knocks_ = 0;
  struct Probing {
    std::unique_ptr<net::Connecting> connecting;
    std::shared_ptr<asio::posix::stream_descriptor> socket;
  };
  std::map<std::string, Probing> probes_;  // by node name
  std::unique_ptr<Link> knocking_;
};

Attendant::Attendant(asio::io_context& loop, AttendantOptions options, Coordinator* coordinator, AttendantEvents events)
    : impl_(std::make_shared<Impl>(loop, std::move(options), coordinator, std::move(events))) {}
Attendant::~Attendant() { impl_->Drop(); }

std::optional<std::string> Attendant::attended() const { return impl_->attended(); }
void Attendant::Begin() { impl_->Apply(attendance::Begin{}); }
void Attendant::Prepares(bool preparing) { impl_->Apply(attendance::Prepares{preparing}); }
void Attendant::RunIsOver() { impl_->Apply(attendance::Over{}); }
void Attendant::ShareImports(const std::string& names) { impl_->Apply(attendance::ShareImports{names}); }
void Attendant::WorkersSilent(bool silent) { impl_->Apply(attendance::Silence{silent}); }
void Attendant::Tell(const Telemetry& telemetry) { impl_->Tell(telemetry); }
void Attendant::WorkersEnded(Report report) { impl_->Apply(attendance::WorkersEnded{std::move(report)}); }
void Attendant::NoWorkerLeft(int store_port, std::optional<int64_t> progress, std::vector<WorkerFailure> late) {
  impl_->Apply(attendance::NoWorkerLeft{store_port, progress, std::move(late)});
}
void Attendant::Leave(const std::string& reason, LeaveCause cause) { impl_->Apply(attendance::Going{reason, cause}); }
void Attendant::Close(Duration limit, std::function<void()> done) { impl_->Close(limit, std::move(done)); }

}  // namespace muster::rendezvous
