// SPDX-License-Identifier: Apache-2.0
// Both ends of the remote shell in one process, over loopback.
#pragma once

#include <list>
#include <optional>

#include "base/text.h"
#include "net/grpc_channel.h"
#include "rsh/server.h"
#include "rsh/session.h"
#include "rsh_harness.h"

namespace muster::rsh {

class SessionHarness : public RshHarness {
 protected:
  // A caller and what it has received.
  struct Talk {
    std::unique_ptr<Session> session;
    bool take = true;  // takes output as it comes
    std::string to_write;
    size_t written = 0;
    bool end_input = true;  // after `to_write`
    bool started = false;
    std::string out, err;
    std::vector<std::string> waited;
    std::optional<Ended> ended;
    int ends = 0;
  };

  std::unique_ptr<Server> Serve(Server::Options options = {}) {
    options.host = "127.0.0.1";
    options.environment = Environment();
    Server::Events events;
    events.verdict = [this](const Verdict& verdict) { verdicts_.push_back(verdict); };
    events.say = [this](const std::string& text) { said_.push_back(text); };
    auto server = Server::Serve(loop_, reaper_, console_, std::move(options), std::move(events));
    EXPECT_TRUE(server.ok()) << server.status();
    return server.ok() ? *std::move(server) : nullptr;
  }
  static std::string Address(int port) { return fmt::format("127.0.0.1:{}", port); }

  Talk& Call(int port, const std::string& command, const net::Credentials& credentials = {},
             Duration timeout = std::chrono::seconds(60)) {
    Talk& talk = talks_.emplace_back();
    Session::Options options{Address(port), credentials, timeout, command, "a test"};
    Session::Events events;
    events.waiting = [&talk](const std::string& obstacle) { talk.waited.push_back(obstacle); };
    events.started = [&talk] { talk.started = true; };
    events.output = [&talk](bool err, const Bytes& bytes) {
      (err ? talk.err : talk.out) += net::Joined(bytes);
      if (talk.take) talk.session->Continue();
    };
    events.room = [&talk] { Write(talk); };
    events.ended = [&talk](const Ended& ended) {
      talk.ended = ended;
      ++talk.ends;
    };
    talk.session = std::make_unique<Session>(loop_, *queue_, resolver_, std::move(options), std::move(events));
    return talk;
  }
  static void Write(Talk& talk) {
    while (talk.written < talk.to_write.size() && talk.session->InputRoom() > 0) {
      const size_t size = std::min({talk.session->InputRoom(), kChunk, talk.to_write.size() - talk.written});
      talk.session->Write(grpc::Slice(talk.to_write.substr(talk.written, size)));
      talk.written += size;
    }
    if (talk.written == talk.to_write.size() && std::exchange(talk.end_input, false)) talk.session->EndInput();
  }
  bool UntilEnded(Talk& talk) {
    return Until([&] { return talk.ended.has_value(); });
  }
  bool UntilOut(Talk& talk, const std::string& text) {
    return Until([&] { return talk.out.find(text) != std::string::npos; });
  }

  net::Resolver resolver_{loop_};
  std::unique_ptr<net::GrpcQueue> queue_ = net::MakeCallQueue(loop_);
  std::vector<Verdict> verdicts_;
  std::vector<std::string> said_;
  std::list<Talk> talks_;
};

}  // namespace muster::rsh
