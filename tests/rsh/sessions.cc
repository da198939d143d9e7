// SPDX-License-Identifier: Apache-2.0
// Opens many short sessions of the remote shell from one process and checks each: rsh_sessions HOST:PORT COUNT PARALLEL
#include <boost/asio/post.hpp>
#include <cstdio>
#include <cstdlib>
#include <list>

#include "base/text.h"
#include "net/grpc_channel.h"
#include "rsh/session.h"

namespace muster::rsh {
namespace {

namespace asio = boost::asio;

class Crowd {
 public:
  Crowd(std::string address, int count, int parallel) : address_(std::move(address)), left_(count) {
    for (int i = 0; i < parallel; ++i) places_.emplace_back();
    running_ = places_.size();
    for (Place& place : places_) Next(place);
  }

  int Run() {
    loop_.run();
    return failed_;
  }

 private:
  struct Place {
    std::unique_ptr<Session> session;
    int code = 0;
    std::string out;
  };

  // Starts a command that sends one line back and ends with a code of its own.
  void Next(Place& place) {
    place.session.reset();
    if (left_ == 0) {
      if (--running_ == 0) loop_.stop();
      return;
    }
    place.code = left_-- % 256;
    place.out.clear();
    Session::Options options;
    options.address = address_;
    options.command = fmt::format("read line; echo $line; exit {}", place.code);
    options.caller = "a test";
    Session::Events events;
    events.started = [&place] { place.session->Write(grpc::Slice(fmt::format("line {}\n", place.code))); };
    events.output = [&place](bool, const Bytes& bytes) {
      place.out += net::Joined(bytes);
      place.session->Continue();
    };
    events.ended = [this, &place](const Ended& ended) {
      if (ended.exit_code != place.code || place.out != fmt::format("line {}\n", place.code)) {
        fmt::print(stderr, "want {}, have {} '{}' {}\n", place.code, ended.exit_code, place.out, ended.reason);
        failed_ = 1;
      }
      asio::post(loop_, [this, &place] { Next(place); });
    };
    place.session = std::make_unique<Session>(loop_, *queue_, resolver_, std::move(options), std::move(events));
  }

  asio::io_context loop_{1};
  net::Resolver resolver_{loop_};
  std::unique_ptr<net::GrpcQueue> queue_ = net::MakeCallQueue(loop_);
  const std::string address_;
  int left_;
  std::list<Place> places_;
  size_t running_ = 0;
  int failed_ = 0;
};

}  // namespace
}  // namespace muster::rsh

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  return muster::rsh::Crowd(argv[1], std::atoi(argv[2]), std::atoi(argv[3])).Run();
}
