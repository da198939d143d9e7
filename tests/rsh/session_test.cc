// SPDX-License-Identifier: Apache-2.0
// Sessions over loopback: both ends, with and without credentials, and callers that break the rules.
#include "rsh/session.h"

#include <fstream>
#include <sstream>

#include "base/exit_codes.h"
#include "session_harness.h"

namespace muster::rsh {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr char kObedient[] = "trap 'echo got; exit 9' TERM; sleep 1000 & echo ready; wait";
constexpr char kDeaf[] = "trap '' TERM; echo ready; while :; do sleep 1000; done";

class SessionTest : public SessionHarness {
 protected:
  // A certificate that is its own authority.
  net::Credentials Tls(const std::string& name) {
    const std::string path = folder_ + "/" + name;
    const std::string command = fmt::format(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={1} -addext "
        "subjectAltName=IP:127.0.0.1 -keyout {0}.key -out {0}.pem 2>/dev/null",
        path, name);
    EXPECT_EQ(std::system(command.c_str()), 0);
    return {.tls_cert = File(path + ".pem"), .tls_key = File(path + ".key"), .tls_ca = File(path + ".pem")};
  }
  static std::string File(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  Server::Options With(const net::Credentials& credentials) {
    Server::Options options;
    options.credentials = credentials;
    return options;
  }
  bool UntilIdle(const Server& server) {
    return Until([&] { return server.sessions() == 0; });
  }
};

TEST_F(SessionTest, ACommandHasItsStreamsAndItsCode) {
  auto server = Serve();
  Talk& talk = Call(server->port(), "cat; echo err >&2; exit 7");
  talk.to_write = "in";
  ASSERT_TRUE(UntilEnded(talk));
  EXPECT_EQ(talk.ended->exit_code, 7);
  EXPECT_EQ(talk.ended->reason, "");
  EXPECT_EQ(talk.out, "in");
  EXPECT_EQ(talk.err, "err\n");
  EXPECT_TRUE(UntilIdle(*server));
  EXPECT_EQ(talk.ends, 1);
}

TEST_F(SessionTest, TenMegabytesBothWays) {
  auto server = Serve();
  Talk& talk = Call(server->port(), "cat");
  talk.to_write = Noise(10'000'000);
  ASSERT_TRUE(UntilEnded(talk));
  EXPECT_EQ(talk.ended->exit_code, 0);
  EXPECT_TRUE(talk.out == talk.to_write);
}

TEST_F(SessionTest, ManyCommandsRunAtOnce) {
  auto server = Serve();
  for (int i = 0; i < 60; ++i) Call(server->port(), fmt::format("exit {}", i));
  int code = 0;
  for (Talk& talk : talks_) {
    ASSERT_TRUE(UntilEnded(talk));
    EXPECT_EQ(talk.ended->exit_code, code++);
  }
  EXPECT_TRUE(UntilIdle(*server));
}

TEST_F(SessionTest, AWrongTokenIsRefused) {
  auto server = Serve(With({.token = "ours"}));
  Talk& right = Call(server->port(), "exit 3", {.token = "ours"});
  Talk& wrong = Call(server->port(), "exit 3", {.token = "theirs"});
  Talk& none = Call(server->port(), "exit 3");
  for (Talk* talk : {&right, &wrong, &none}) ASSERT_TRUE(UntilEnded(*talk));
  EXPECT_EQ(right.ended->exit_code, 3);
  for (Talk* talk : {&wrong, &none}) {
    EXPECT_EQ(talk->ended->exit_code, kExitBadConfiguration);
    EXPECT_THAT(talk->ended->reason, HasSubstr("token"));
    EXPECT_FALSE(talk->started);
  }
}

TEST_F(SessionTest, AnotherAuthoritysCertificateIsRefused) {
  const net::Credentials ours = Tls("ours"), theirs = Tls("theirs");
  auto server = Serve(With(ours));
  Talk& right = Call(server->port(), "cat; exit 3", ours);
  right.to_write = Noise(1'000'000);
  ASSERT_TRUE(UntilEnded(right));
  EXPECT_EQ(right.ended->exit_code, 3);
  EXPECT_TRUE(right.out == right.to_write);
  for (const net::Credentials& other : {theirs, net::Credentials{}}) {
    Talk& talk = Call(server->port(), "exit 3", other, seconds(2));
    ASSERT_TRUE(UntilEnded(talk));
    EXPECT_EQ(talk.ended->exit_code, kExitRendezvousTimeout);
    EXPECT_FALSE(talk.started);
    EXPECT_THAT(Join(talk.waited, "\n"), HasSubstr("TLS"));
  }
}

TEST_F(SessionTest, AServerThatIsNotThereEndsWithATimeout) {
  int port = Serve()->port();  // the server is destroyed: nobody listens there
  Talk& talk = Call(port, "true", {}, seconds(1));
  ASSERT_TRUE(UntilEnded(talk));
  EXPECT_EQ(talk.ended->exit_code, kExitRendezvousTimeout);
  EXPECT_THAT(talk.ended->reason, HasSubstr(Address(port)));
  EXPECT_EQ(talk.waited.size(), 1u);
}

TEST_F(SessionTest, AServerThatStartsLaterIsWaitedFor) {
  Server::Options options;
  options.port = Serve()->port();
  Talk& talk = Call(options.port, "exit 3");
  ASSERT_TRUE(Until([&] { return !talk.waited.empty(); }));
  auto server = Serve(options);
  ASSERT_TRUE(UntilEnded(talk));
  EXPECT_EQ(talk.ended->exit_code, 3);
}

TEST_F(SessionTest, SignalsOvertakeInput) {
  auto server = Serve();
  Talk& talk = Call(server->port(), kObedient);
  talk.to_write = Noise(3 * kInputWindow);
  ASSERT_TRUE(UntilOut(talk, "ready"));
  ASSERT_TRUE(Until([&] { return talk.written >= kInputWindow; }));
  EXPECT_LT(talk.written, talk.to_write.size());  // when the command ends, the rest is taken and dropped
  talk.session->Signal(SIGTERM);
  ASSERT_TRUE(UntilEnded(talk));
  EXPECT_EQ(talk.ended->exit_code, 9);
}

TEST_F(SessionTest, ACallerThatGoesEndsItsCommand) {
  Server::Options options;
  options.grace = milliseconds(100);
  auto server = Serve(options);
  for (const char* command : {kObedient, kDeaf}) {
    Talk& talk = Call(server->port(), command);
    ASSERT_TRUE(UntilOut(talk, "ready"));
    talk.session.reset();
    EXPECT_TRUE(UntilIdle(*server));
    EXPECT_FALSE(talk.ended);
  }
}

TEST_F(SessionTest, ACallerThatDoesNotReadHoldsUpNobody) {
  auto server = Serve();
  Talk& stuck = Call(server->port(), "yes");
  stuck.take = false;
  ASSERT_TRUE(Until([&] { return !stuck.out.empty(); }));
  Talk& other = Call(server->port(), "cat");
  other.to_write = Noise(1'000'000);
  ASSERT_TRUE(UntilEnded(other));
  EXPECT_TRUE(other.out == other.to_write);
  EXPECT_LE(stuck.out.size(), kChunk);
  stuck.session.reset();
  EXPECT_TRUE(UntilIdle(*server));
}

TEST_F(SessionTest, ALostServerEndsTheCommandAsAPeersFailure) {
  auto server = Serve();
  Talk& talk = Call(server->port(), kObedient);
  ASSERT_TRUE(UntilOut(talk, "ready"));
  server.reset();
  ASSERT_TRUE(UntilEnded(talk));
  EXPECT_EQ(talk.ended->exit_code, kExitPeerFailed);
  EXPECT_THAT(talk.ended->reason, HasSubstr("the connection was lost"));
}

TEST_F(SessionTest, AServerThatStopsEndsItsCommands) {
  auto server = Serve();
  Talk& polite = Call(server->port(), kObedient);
  Talk& deaf = Call(server->port(), kDeaf);
  ASSERT_TRUE(UntilOut(polite, "ready") && UntilOut(deaf, "ready"));
  int done = 0;
  server->Stop(SIGTERM, seconds(60), [&] { ++done; });
  EXPECT_EQ(done, 0);
  ASSERT_TRUE(UntilEnded(polite));
  EXPECT_EQ(polite.ended->exit_code, 9);
  EXPECT_THAT(polite.ended->reason, HasSubstr("stopped"));
  EXPECT_EQ(done, 0);
  Talk& late = Call(server->port(), "true");  // this call waits for the pod's replacement
  ASSERT_TRUE(Until([&] { return !late.waited.empty(); }));
  EXPECT_THAT(late.waited.back(), HasSubstr("the pod is being stopped"));
  EXPECT_FALSE(late.ended);
  server->Stop(SIGKILL, Duration::zero(), [&] { done += 100; });
  ASSERT_TRUE(UntilEnded(deaf));
  EXPECT_EQ(deaf.ended->exit_code, 128 + SIGKILL);
  EXPECT_TRUE(Until([&] { return done > 0; }));
  EXPECT_EQ(done, 1);
}

TEST_F(SessionTest, AServerThatStopsDoesNotWaitForWhoDoesNotRead) {
  auto server = Serve();
  const std::string written = folder_ + "/written";
  Talk& stuck = Call(server->port(), fmt::format("while head -c 65536 /dev/zero; do echo >> {}; done", written));
  stuck.take = false;
  // The command has written much more than the caller reads, so the caller does not see its end.
  ASSERT_TRUE(Until([&] { return !stuck.out.empty() && File(written).size() >= 32; }));
  int done = 0;
  server->Stop(SIGTERM, seconds(60), [&] { ++done; });
  EXPECT_TRUE(Until([&] { return done == 1; }));
  EXPECT_FALSE(stuck.ended);
}

TEST_F(SessionTest, AServerWithoutSessionsStopsAtOnce) {
  auto server = Serve();
  int done = 0;
  server->Stop(SIGTERM, seconds(60), [&] { ++done; });
  EXPECT_EQ(done, 0);
  EXPECT_TRUE(Until([&] { return done == 1; }));
}

TEST_F(SessionTest, ACommandLineThatIsTooLongIsRefused) {
  auto server = Serve();
  Talk& talk = Call(server->port(), "true " + std::string(kLongestMessage, 'x'));
  ASSERT_TRUE(UntilEnded(talk));
  EXPECT_EQ(talk.ended->exit_code, kExitBadConfiguration);
  EXPECT_THAT(talk.ended->reason, HasSubstr("larger than max"));
}

// A client that sends any messages, also wrong ones.
class Stranger final : public net::GrpcClientCall {
 public:
  struct Heard {
    std::vector<grpc::ByteBuffer> to_say;
    std::optional<grpc::Status> status;
  };
  Stranger(net::GrpcQueue& queue, std::shared_ptr<grpc::Channel> channel, const std::string& method, Heard& heard)
      : GrpcClientCall(queue, std::move(channel), method, ""), heard_(heard) {
    for (const grpc::ByteBuffer& message : heard.to_say) Send(message);
  }

 private:
  void Read() override { StartRead(); }
  void Over(const grpc::Status& status) override { heard_.status = status; }
  Heard& heard_;
};

class StrangerTest : public SessionTest {
 protected:
  grpc::Status Say(int port, const std::string& method, std::vector<grpc::ByteBuffer> messages) {
    Stranger::Heard heard{std::move(messages), {}};
    auto dialling = net::Connecting::Start(
        loop_, resolver_, Address(port), seconds(30),
        {[&](const net::Connecting::Connected& connected) {
           queue_->Adopt(std::make_unique<Stranger>(
               *queue_,
               net::MakeChannel(connected, Address(port), {}, {.longest_message = kLongestMessage, .tuning = kTuning}),
               method, heard));
         },
         [](const net::Connecting::Failed&) {}});
    EXPECT_TRUE(Until([&] { return heard.status.has_value(); })) << method;
    return heard.status.value_or(grpc::Status());
  }
};

TEST_F(StrangerTest, WhoBreaksTheRulesIsToldSo) {
  auto server = Serve();
  const grpc::ByteBuffer open = Encode(FromCaller(Open{"sleep 1000", "x"}));
  const grpc::ByteBuffer input = Encode(FromCaller(Input{{grpc::Slice(std::string(kChunk, 'x'))}}));
  const grpc::ByteBuffer hello = Encode(FromLauncher(Hello{"x"}));
  const grpc::ByteBuffer verdict = Encode(FromLauncher(Verdict{0, "x"}));
  const grpc::Slice noise(std::string(100, '\xff'));
  const grpc::ByteBuffer garbage(&noise, 1);
  std::vector<grpc::ByteBuffer> flood(kInputWindow / kChunk + 8, input);
  flood.front() = open;
  const struct {
    std::string method;
    std::vector<grpc::ByteBuffer> messages;
    grpc::StatusCode code;
    std::string words;
  } rows[] = {
      {kSessionMethod, {input}, grpc::StatusCode::INVALID_ARGUMENT, "begins with a command"},
      {kSessionMethod, {open, open}, grpc::StatusCode::INVALID_ARGUMENT, "opened once"},
      {kSessionMethod, {garbage}, grpc::StatusCode::INVALID_ARGUMENT, "not a message"},
      {kSessionMethod, {open, garbage}, grpc::StatusCode::INVALID_ARGUMENT, "not a message"},
      {kSessionMethod, flood, grpc::StatusCode::INVALID_ARGUMENT, "more input"},
      {kAttendMethod, {verdict}, grpc::StatusCode::INVALID_ARGUMENT, "hello first"},
      {kAttendMethod, {hello, hello}, grpc::StatusCode::INVALID_ARGUMENT, "hello once"},
      {kAttendMethod, {garbage}, grpc::StatusCode::INVALID_ARGUMENT, "not a message"},
      {"/muster.rsh.v1.RemoteShell/Other", {open}, grpc::StatusCode::UNIMPLEMENTED, "Session and Attend"},
  };
  for (const auto& row : rows) {
    grpc::Status status = Say(server->port(), row.method, row.messages);
    EXPECT_EQ(status.error_code(), row.code) << row.words << ": " << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(row.words));
  }
  EXPECT_TRUE(UntilIdle(*server));
  EXPECT_TRUE(verdicts_.empty());
}

TEST_F(StrangerTest, WhoSaysNothingIsNotWaitedFor) {
  Server::Options options;
  options.greeting = milliseconds(20);
  auto server = Serve(options);
  for (const char* method : {kSessionMethod, kAttendMethod}) {
    EXPECT_EQ(Say(server->port(), method, {}).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  }
}

}  // namespace
}  // namespace muster::rsh
