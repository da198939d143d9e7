// SPDX-License-Identifier: Apache-2.0
#include "rsh/server.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "base/exit_codes.h"
#include "base/log.h"
#include "base/text.h"
#include "net/grpc_port.h"
#include "rsh/remote_process.h"

namespace muster::rsh {

namespace asio = boost::asio;
using net::GrpcPort;
using net::GrpcServerCall;

namespace {

constexpr size_t kWritesAhead = 2;    // one message being written, one waiting
constexpr int kKeptDescriptors = 64;  // for the pipes of commands

constexpr Duration kFarewell = std::chrono::seconds(2);

grpc::Status Refusal(const Status& status) {
  return {grpc::StatusCode::INVALID_ARGUMENT, std::string(Message(status))};
}

int CodeOf(const Status& start_error) {
  if (absl::IsNotFound(start_error)) return kExitNotFound;
  return absl::IsPermissionDenied(start_error) ? kExitNotExecutable : 1;
}

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, launcher::Reaper& reaper, launcher::Console& console, Options options, Events events)
      : loop_(loop),
        reaper_(reaper),
        console_(console),
        options_(std::move(options)),
        events_(std::move(events)),
        mark_(fmt::format("{:08x}", std::random_device()())),
        farewell_(loop) {}

  Status Serve();
  int port() const { return port_->port(); }
  int sessions() const { return static_cast<int>(commands_.size()); }
  void Stop(int signal, Duration grace, std::function<void()> done);
  void Close();

 private:
  class Call;
  struct Command {
    std::unique_ptr<RemoteProcess> process;
    Call* call = nullptr;  // the caller's stream; nullptr: it has ended
    bool gone = false;     // no process is left
  };

  // Starts a command for `call`. Returns its number and its pid.
  StatusOr<std::pair<int64_t, int64_t>> Start(Call* call, const Open& open);
  Command* Find(int64_t number);
  void Forget(int64_t number);  // if it has no caller and no process any more
  void FinishIfStopped();

  asio::io_context& loop_;
  launcher::Reaper& reaper_;
  launcher::Console& console_;
  const Options options_;
  Events events_;
  const std::string mark_;
  std::map<int64_t, Command> commands_;
  int64_t last_number_ = 0;
  bool stopping_ = false;
  std::function<void()> stopped_;
  int sessions_ = 0;      // streams of callers; a stream ends after the caller was told how its command ended
  bool parting_ = false;  // farewell_ is running
  asio::steady_timer farewell_;
  std::unique_ptr<GrpcPort> port_;
};

// One stream: a caller's session, or a launcher's Attend.
class Server::Impl::Call final : public GrpcServerCall {
 public:
  Call(GrpcPort& port, Impl& owner) : GrpcServerCall(port), owner_(owner), greeting_(owner.loop_) {}

  void SendOutput(bool err, grpc::Slice bytes) {
    Send(Encode(FromPod(Output{err, {std::move(bytes)}})));
    Continue();
  }
  void Taken(size_t bytes) {
    taken_ += bytes;
    if (taken_ < kInputWindow / 8) return;  // the caller still has enough room
    input_ahead_ -= taken_;
    Send(Encode(FromPod(InputTaken{std::exchange(taken_, 0)})));
  }
  void EndSession(int exit_code, const std::string& reason) {
    Detach();
    Send(Encode(FromPod(rsh::Ended{exit_code, reason})));
    FinishWhenSent();
  }

 private:
  void Called() override {
    if (method() != kSessionMethod && method() != kAttendMethod) {
      return Finish({grpc::StatusCode::UNIMPLEMENTED, "this is a Muster remote shell; it serves Session and Attend"});
    }
    greeting_.expires_after(owner_.options_.greeting);
    greeting_.async_wait([this, alive = std::weak_ptr<bool>(alive_)](boost::system::error_code error) {
      if (!error && !alive.expired()) Finish({grpc::StatusCode::DEADLINE_EXCEEDED, "no message in time"});
    });
    StartRead();
  }

  void Read(bool ok) override {
    greeting_.cancel();
    if (!ok || finishing()) {
      Leave();
      return Finish(grpc::Status::OK);
    }
    Status status = method() == kSessionMethod ? ReadSession() : ReadLauncher();
    if (!status.ok()) {
      Leave();
      return Finish(Refusal(status));
    }
    if (!finishing()) StartRead();
  }

  Status ReadSession() {
    MUSTER_ASSIGN_OR_RETURN(FromCaller message, DecodeFromCaller(incoming()));
    if (auto* open = std::get_if<Open>(&message)) {
      if (opened_) return absl::InvalidArgumentError("a session is opened once");
      opened_ = true;
      ++owner_.sessions_;
      return Begin(*open);
    }
    if (!opened_) return absl::InvalidArgumentError("a session begins with a command");
    Command* command = owner_.Find(number_);
    if (command == nullptr) return absl::OkStatus();  // it has just ended
    if (auto* input = std::get_if<Input>(&message)) {
      input_ahead_ += Size(input->bytes);
      if (input_ahead_ > kInputWindow) return absl::InvalidArgumentError("more input than was asked for");
      command->process->Input(std::move(input->bytes));
    } else if (auto* sent = std::get_if<SignalSent>(&message)) {
      command->process->Signal(sent->signal);
    } else {
      command->process->EndInput();
    }
    return absl::OkStatus();
  }

  Status Begin(const Open& open) {
    if (owner_.stopping_) {  // the caller dials again, until the pod's replacement is there
      Finish({grpc::StatusCode::UNAVAILABLE, kPodStopping});
      return absl::OkStatus();
    }
    auto started = owner_.Start(this, open);
    if (!started.ok()) {
      EndSession(CodeOf(started.status()), std::string(Message(started.status())));
      return absl::OkStatus();
    }
    number_ = started->first;
    Send(Encode(FromPod(Started{started->second})));
    return absl::OkStatus();
  }

  Status ReadLauncher() {
    MUSTER_ASSIGN_OR_RETURN(FromLauncher message, DecodeFromLauncher(incoming()));
    if (auto* hello = std::get_if<Hello>(&message)) {
      if (opened_) return absl::InvalidArgumentError("a launcher says hello once");
      opened_ = true;
      launcher_ = fmt::format("{} ({})", hello->launcher, peer());
      owner_.events_.say(fmt::format("the launcher is {}", launcher_));
      Send(Encode(FromWorker(Welcome())));
      return absl::OkStatus();
    }
    if (!opened_) return absl::InvalidArgumentError("a launcher says hello first");
    verdict_ = std::get<Verdict>(message);
    Send(Encode(FromWorker(Heard())));
    FinishWhenSent();
    return absl::OkStatus();
  }

  void Written() override { Continue(); }

  void Continue() {
    if (unsent() >= kWritesAhead) return;
    if (Command* command = owner_.Find(number_)) command->process->Continue();
  }

  void Over() override {
    Leave();
    if (opened_ && method() == kSessionMethod) {
      --owner_.sessions_;
      owner_.Forget(0);  // Stop() may be waiting for the end of this stream
    }
    if (verdict_) {
      asio::post(owner_.loop_, [weak = owner_.weak_from_this(), verdict = *verdict_] {
        auto owner = weak.lock();
        if (owner && owner->events_.verdict) std::exchange(owner->events_.verdict, nullptr)(verdict);
      });
    } else if (!launcher_.empty()) {
      owner_.events_.say(fmt::format("the launcher {} is gone without a verdict; waiting for it", launcher_));
    }
  }

  // The caller is gone: stops its command.
  void Leave() {
    greeting_.cancel();
    Command* command = owner_.Find(number_);
    if (command == nullptr) return;
    command->process->Detach();
    command->process->Stop(SIGTERM, owner_.options_.grace);
    Detach();
  }

  void Detach() {
    if (Command* command = owner_.Find(number_)) {
      command->call = nullptr;
      owner_.Forget(number_);
    }
    number_ = 0;
  }

  Impl& owner_;
  asio::steady_timer greeting_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  int64_t number_ = 0;      // of the command; 0: none
  size_t input_ahead_ = 0;  // bytes that the caller has sent and that InputTaken has not confirmed yet
  size_t taken_ = 0;        // those of them that the command has taken
  std::string launcher_;
  std::optional<Verdict> verdict_;
  bool opened_ = false;
};

Status Server::Impl::Serve() {
  GrpcPort::Options serving;
  serving.host = options_.host;
  serving.port = options_.port;
  serving.credentials = options_.credentials;
  serving.keep_descriptors = [] { return kKeptDescriptors; };
  serving.longest_message = static_cast<int>(kLongestMessage);
  serving.tuning = kTuning;
  MUSTER_ASSIGN_OR_RETURN(
      port_, GrpcPort::Serve(loop_, serving, [this](GrpcPort& port) { return std::make_unique<Call>(port, *this); }));
  return absl::OkStatus();
}

StatusOr<std::pair<int64_t, int64_t>> Server::Impl::Start(Call* call, const Open& open) {
  const int64_t number = ++last_number_;
  RemoteProcessEvents events;
  events.output = [call](bool err, grpc::Slice bytes) { call->SendOutput(err, std::move(bytes)); };
  events.taken = [call](size_t bytes) { call->Taken(bytes); };
  events.ended = [this, call](const launcher::ExitRecord& record) {
    std::string why = stopping_ ? kPodStopping : "";
    if (why.empty() && record.oom_killed && record.exit_code == 128 + SIGKILL) {
      why = fmt::format("the command was killed there: {}", DescribeOom(record.exit_code));
    }
    call->EndSession(record.exit_code, why);
  };
  events.gone = [this, number] {
    if (Command* command = Find(number)) command->gone = true;
    Forget(number);
  };
  auto process = std::make_unique<RemoteProcess>(loop_, reaper_, console_, std::move(events));
  std::vector<std::string> environment = options_.environment;
  environment.push_back(fmt::format("MUSTER_RSH_SESSION={}-{}", mark_, number));
  MUSTER_ASSIGN_OR_RETURN(int64_t pid, process->Start(open.command, std::move(environment)));
  log::Debug("a remote command", {{"caller", open.caller}, {"pid", std::to_string(pid)}, {"command", open.command}});
  commands_[number] = {std::move(process), call, false};
  return std::pair(number, pid);
}

Server::Impl::Command* Server::Impl::Find(int64_t number) {
  auto found = commands_.find(number);
  return found == commands_.end() ? nullptr : &found->second;
}

// Posted: the caller of this may be a callback of the process that it destroys.
void Server::Impl::Forget(int64_t number) {
  asio::post(loop_, [weak = weak_from_this(), number] {
    auto self = weak.lock();
    if (!self) return;
    Command* command = self->Find(number);
    if (command != nullptr && command->gone && command->call == nullptr) self->commands_.erase(number);
    if (self->stopped_) self->FinishIfStopped();
  });
}

// Waits at most kFarewell for callers that do not read the last output of their commands.
void Server::Impl::FinishIfStopped() {
  const bool all_gone = std::all_of(commands_.begin(), commands_.end(), [](auto& entry) { return entry.second.gone; });
  if (!all_gone) return;
  if (commands_.empty() && sessions_ == 0) {
    farewell_.cancel();
    return std::exchange(stopped_, nullptr)();
  }
  if (std::exchange(parting_, true)) return;
  farewell_.expires_after(kFarewell);
  farewell_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    auto self = weak.lock();
    if (self && !error && self->stopped_) std::exchange(self->stopped_, nullptr)();
  });
}

void Server::Impl::Stop(int signal, Duration grace, std::function<void()> done) {
  if (!std::exchange(stopping_, true)) stopped_ = std::move(done);
  for (auto& [number, command] : commands_) command.process->Stop(signal, grace);
  Forget(0);  // calls FinishIfStopped, also if there is no command
}

void Server::Impl::Close() {
  events_ = {};
  farewell_.cancel();
  port_.reset();
  commands_.clear();
}

StatusOr<std::unique_ptr<Server>> Server::Serve(asio::io_context& loop, launcher::Reaper& reaper,
                                                launcher::Console& console, Options options, Events events) {
  auto impl = std::make_shared<Impl>(loop, reaper, console, std::move(options), std::move(events));
  MUSTER_RETURN_IF_ERROR(impl->Serve());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { impl_->Close(); }
int Server::port() const { return impl_->port(); }
int Server::sessions() const { return impl_->sessions(); }
void Server::Stop(int signal, Duration grace, std::function<void()> done) {
  impl_->Stop(signal, grace, std::move(done));
}

}  // namespace muster::rsh
