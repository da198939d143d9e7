// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/after_publish.h"

#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <csignal>
#include <utility>

#include "base/attach.h"
#include "base/environment.h"
#include "base/guarded_process.h"
#include "base/text.h"
#include "initializers/facts/entry_path.h"

namespace muster::initializers {

namespace asio = boost::asio;

class AfterPublish::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& loop, std::string target, std::function<void(StatusOr<int>)> ended)
      : loop_(loop), target_(std::move(target)), ended_(std::move(ended)), exit_(loop) {}

  void Run(const std::string& command);
  void Signal(int signal) const {
    if (child_ > 0) kill(-child_, signal);
  }
  void Forget() { ended_ = nullptr; }

 private:
  Status Start(const std::string& command);
  void Collect();

  asio::io_context& loop_;
  const std::string target_;
  std::function<void(StatusOr<int>)> ended_;
  asio::posix::stream_descriptor exit_;  // readable when the child has ended
  pid_t child_ = -1;
};

void AfterPublish::Impl::Run(const std::string& command) {
  Status started = Start(command);
  if (!started.ok()) {
    return asio::post(loop_, [self = shared_from_this(), started] {
      if (self->ended_) self->ended_(started);
    });
  }
  exit_.async_wait(asio::posix::stream_descriptor::wait_read,
                   [self = shared_from_this()](boost::system::error_code error) {
                     if (!error) self->Collect();
                   });
}

Status AfterPublish::Impl::Start(const std::string& command) {
  Environment environment = Environment::OfProcess();
  environment.Set("MUSTER_TARGET", target_);
  auto started = StartGuarded({.words = {"sh", "-c", command}, .environment = environment.entries()});
  if (!started.ok()) return Annotate(started.status(), "--then needs a shell, and it cannot be started");
  child_ = started->pid;
  return Attach(exit_, std::move(started->ended), "epoll");
}

void AfterPublish::Impl::Collect() {
  const int code = CollectGuarded(std::exchange(child_, -1));
  if (code == 0) unlink(fmt::format("{}/{}/{}", target_, kOwnFolder, kThenName).c_str());
  if (ended_) ended_(code);
}

AfterPublish::AfterPublish(asio::io_context& loop, std::string target, std::function<void(StatusOr<int>)> ended)
    : impl_(std::make_shared<Impl>(loop, std::move(target), std::move(ended))) {}
AfterPublish::~AfterPublish() { impl_->Forget(); }
void AfterPublish::Run(const std::string& command) { impl_->Run(command); }
void AfterPublish::Signal(int signal) { impl_->Signal(signal); }

}  // namespace muster::initializers
