// SPDX-License-Identifier: Apache-2.0
// The coordinator over loopback, message by message.
#include "rendezvous/coordinator_service.h"

#include <dirent.h>
#include <stdlib.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <latch>
#include <sstream>
#include <thread>

#include "control_fixture.h"

namespace muster::rendezvous {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using attendance::Loss;
using testing::HasSubstr;
using testing::Not;

std::string ReadAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class CoordinatorTest : public ControlFixture {
 protected:
  void UntilHeard(Caller& caller, size_t kind, const char* what) {
    Until(
        [&] {
          for (const CoordinatorMessage& message : caller.heard) {
            if (message.index() == kind) return true;
          }
          return caller.lost.has_value();
        },
        what);
    ASSERT_FALSE(caller.lost &&
                 !std::any_of(caller.heard.begin(), caller.heard.end(),
                              [&](const CoordinatorMessage& message) { return message.index() == kind; }))
        << what << ": " << caller.why;
  }
  template <typename Message>
  void UntilHeard(Caller& caller, const char* what) {
    UntilHeard(caller, CoordinatorMessage(Message{}).index(), what);
  }
  struct Two {
    std::unique_ptr<Caller> a, b;
    RoundId both;
  };
  // Node b joins node a, which ran alone. Both are in the round `both`, and a has heard nothing since it began.
  Two RoundOfTwo(const std::string& address, const JobOptions& job) {
    auto a = DialTo(address, Greeting("a", job));
    UntilHeard<Start>(*a, "round of a alone");
    auto b = DialTo(address, Greeting("b", job));
    UntilHeard<Stop>(*a, "stop for scaling up");
    a->link->Send(Ready{a->Find<Start>()->assignment.id, 4000});
    UntilHeard<Start>(*b, "round of both");
    const RoundId both = b->Find<Start>()->assignment.id;
    Until([&] { return a->Last<Start>()->assignment.id == both; }, "round of both, at a");
    a->heard.clear();
    return {std::move(a), std::move(b), both};
  }
  void UntilLost(Caller& caller) {
    Until([&] { return caller.lost.has_value(); }, "the end of the conversation");
  }
};

TEST_F(CoordinatorTest, TwoNodesFormARoundFailRestartAndFinish) {
  Serve();
  JobOptions job = Job(2, 2, 1);
  auto a = Dial(Greeting("a", job));
  UntilHeard<Welcome>(*a, "welcome");
  auto b = Dial(Greeting("b", job));
  UntilHeard<Start>(*a, "start of a");
  UntilHeard<Start>(*b, "start of b");
  Assignment first = a->Find<Start>()->assignment;
  EXPECT_EQ(first.world_size, 4);
  EXPECT_EQ(first.id, b->Find<Start>()->assignment.id);
  EXPECT_EQ(b->Find<Start>()->assignment.node_rank, 1);

  WorkerFailure failure;
  failure.node = "b";
  failure.rank = 2;
  failure.exit_code = 3;
  a->heard.clear();
  b->heard.clear();
  b->link->Send(Report{first.id, {failure}, std::chrono::seconds(1), {}});
  UntilHeard<Stop>(*a, "stop");
  EXPECT_EQ(a->Find<Stop>()->round, first.id);
  a->link->Send(Ready{first.id, 4001});
  b->link->Send(Ready{first.id, 4002});
  UntilHeard<Start>(*a, "second round of a");
  UntilHeard<Start>(*b, "second round of b");
  Assignment second = a->Find<Start>()->assignment;
  EXPECT_GT(second.id, first.id);
  EXPECT_EQ(second.restart_count, 1);
  EXPECT_EQ(second.master_port, 4001);
  a->heard.clear();  // a must not say Ready before the answer to b's report
  b->heard.clear();

  b->link->Send(Report{second.id, {failure}, std::chrono::seconds(1), {}});
  Until([&] { return a->Last<Stop>() != nullptr || a->Find<Finish>() != nullptr; }, "the end");
  a->link->Send(Ready{second.id, 0});
  b->link->Send(Ready{second.id, 0});
  UntilHeard<Finish>(*a, "finish of a");
  UntilHeard<Finish>(*b, "finish of b");
  EXPECT_EQ(a->Find<Finish>()->verdict, b->Find<Finish>()->verdict);
  EXPECT_EQ(a->Find<Finish>()->verdict.exit_code, 3);
  a->link.reset();
  b->link.reset();
  bool drained = false;
  coordinator_->Drain(std::chrono::seconds(60), [&] { drained = true; });
  Until([&] { return drained; }, "everyone gone");
}

// Of this process; gRPC's own are left out.
size_t QueueThreads() {
  size_t count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    if (ReadAll(thread.path().string() + "/comm") == "grpc-queue\n") ++count;
  }
  return count;
}

TEST_F(CoordinatorTest, APortWithoutAConnectionHasNoThread) {
  const size_t before = QueueThreads();
  Serve();
  EXPECT_EQ(QueueThreads(), before);
  auto a = Dial(Greeting("a", Job(1, 1, 0)));
  UntilHeard<Start>(*a, "start of a");
  EXPECT_GT(QueueThreads(), before);
}

TEST_F(CoordinatorTest, AClosedStreamIsALostNodeAtOnce) {
  Serve();
  JobOptions job = Job(1, 2, 0);
  job.heartbeat_timeout = std::chrono::hours(1);  // so that no node is lost by silence
  auto [a, b, both] = RoundOfTwo(address_, job);
  b->link.reset();
  UntilHeard<Stop>(*a, "stop for the lost node");
  EXPECT_EQ(a->Find<Stop>()->round, both);
  a->link->Send(Ready{both, 4000});
  UntilHeard<Start>(*a, "round without b");
  EXPECT_EQ(a->Find<Start>()->assignment.node_count, 1);
  EXPECT_EQ(a->Find<Start>()->assignment.restart_count, 0);
}

// A coordinator in a process of its own: its loop runs in a thread, and can be held up.
class FarCoordinator {
 public:
  FarCoordinator() {
    CoordinatorService::Options options;
    options.host = "127.0.0.1";
    auto served = CoordinatorService::Serve(loop_, coordinator_, options);
    EXPECT_TRUE(served.ok()) << served.status();
    service_ = *std::move(served);
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~FarCoordinator() {
    boost::asio::post(loop_, [this] {
      service_.reset();
      loop_.stop();
    });
    thread_.join();
  }

  std::string address() const { return fmt::format("127.0.0.1:{}", service_->port()); }
  // Returns once the loop stands still. It goes on when the promise is kept.
  std::promise<void> HoldUp() {
    std::promise<void> go_on, stands;
    std::future<void> standing = stands.get_future();
    boost::asio::post(loop_, [stands = std::move(stands), until = go_on.get_future()]() mutable {
      stands.set_value();
      until.wait();
    });
    standing.wait();
    return go_on;
  }

 private:
  boost::asio::io_context loop_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ = make_work_guard(loop_);
  Coordinator coordinator_{loop_, {}};
  std::unique_ptr<CoordinatorService> service_;
  std::thread thread_;
};

// gRPC takes a message long before the coordinator reads it, and drops what is unread when a stream is cancelled.
TEST_F(CoordinatorTest, TheLastWordOfANodeIsReadBeforeItIsGone) {
  FarCoordinator far;
  JobOptions job = Job(1, 2, 0);
  job.heartbeat_timeout = std::chrono::hours(1);
  auto [a, b, both] = RoundOfTwo(far.address(), job);

  std::promise<void> go_on = far.HoldUp();
  bool hung_up = false;
  b->link->Send(Leave{"preempted: SIGTERM", LeaveCause::kPreempted});
  b->link->HangUp([&] {
    hung_up = true;
    boost::asio::post(loop_, [&] { b->link.reset(); });  // as an agent does that ends now
  });
  // Another coordinator hears a node and answers meanwhile.
  Serve();
  auto c = Dial(Greeting("c", Job(1, 1)));
  UntilHeard<Start>(*c, "the round of the other one");
  EXPECT_FALSE(hung_up) << "the coordinator has read nothing yet";
  go_on.set_value();
  UntilHeard<Stop>(*a, "stop for the node that leaves");
  EXPECT_THAT(a->Find<Stop>()->reason, HasSubstr("is leaving (preempted: SIGTERM)"));
  Until([&] { return hung_up; }, "the end of b's stream");
}

// Of several agents that start at the same time, exactly one serves the endpoint.
TEST(CoordinatorPort, OfManyThatListenAtOnceOneIsHeard) {
  struct Place {
    boost::asio::io_context loop;
    Coordinator coordinator{loop, {}};
  };
  auto serve = [](Place& place, int port) {
    CoordinatorService::Options options;
    options.host = "127.0.0.1";
    options.port = port;
    return CoordinatorService::Serve(place.loop, place.coordinator, options);
  };
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<std::unique_ptr<Place>> places;
    for (int i = 0; i < 4; ++i) places.push_back(std::make_unique<Place>());
    auto free = serve(*places[0], 0);
    ASSERT_TRUE(free.ok()) << free.status();
    const int port = (*free)->port();
    free->reset();
    std::vector<Status> outcomes(places.size());
    std::vector<std::unique_ptr<CoordinatorService>> serving(places.size());
    std::vector<std::thread> threads;
    std::latch start(static_cast<ptrdiff_t>(places.size()));
    for (size_t i = 0; i < places.size(); ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        auto service = serve(*places[i], port);
        outcomes[i] = service.status();
        if (service.ok()) serving[i] = *std::move(service);
      });
    }
    for (std::thread& thread : threads) thread.join();
    int heard = 0;
    for (const Status& outcome : outcomes) {
      heard += outcome.ok();
      EXPECT_TRUE(outcome.ok() || absl::IsAlreadyExists(outcome)) << outcome;
    }
    EXPECT_EQ(heard, 1) << "turn " << turn;
  }
}

TEST_F(CoordinatorTest, AMissingOrWrongTokenIsRefusedWithoutTellingIt) {
  CoordinatorService::Options options;
  options.credentials.token = "right-token";
  Serve(options);
  net::Credentials wrong{"wrong-token", "", "", ""};
  net::Credentials right{"right-token", "", "", ""};
  auto without = Dial(Greeting("a", Job(1, 1)));
  UntilLost(*without);
  EXPECT_EQ(without->lost, Loss::kUnauthenticated);
  EXPECT_THAT(without->why, HasSubstr("MUSTER_TOKEN_FILE"));
  auto other = Dial(Greeting("a", Job(1, 1)), wrong);
  UntilLost(*other);
  EXPECT_EQ(other->lost, Loss::kUnauthenticated);
  EXPECT_THAT(other->why, Not(HasSubstr("right-token")));
  EXPECT_THAT(other->why, Not(HasSubstr("wrong-token")));
  auto good = Dial(Greeting("a", Job(1, 1)), right);
  UntilHeard<Welcome>(*good, "welcome");
}

TEST_F(CoordinatorTest, StrangersAreRefusedWithBothValues) {
  Serve({}, {"", "", "job"});
  auto other_run = Dial(Greeting("a", Job(1, 1), "other"));
  UntilHeard<Refuse>(*other_run, "refusal");
  EXPECT_THAT(other_run->Find<Refuse>()->reason, testing::AllOf(HasSubstr("\"job\""), HasSubstr("\"other\"")));
  EXPECT_EQ(other_run->Find<Refuse>()->exit_code, kExitBadConfiguration);
  UntilLost(*other_run);

  Hello newer = Greeting("a", Job(1, 1));
  newer.protocol = 99;
  auto other_protocol = Dial(newer);
  UntilHeard<Refuse>(*other_protocol, "refusal");
  EXPECT_THAT(other_protocol->Find<Refuse>()->reason,
              testing::AllOf(HasSubstr("99"), HasSubstr(fmt::format("protocol {}", kRendezvousProtocol))));

  auto silent = Dial(Beat{});
  UntilHeard<Refuse>(*silent, "refusal");
  auto first = Dial(Greeting("a", Job(2, 2)));
  UntilHeard<Welcome>(*first, "welcome");
  auto disagreeing = Dial(Greeting("b", Job(3, 3)));
  UntilHeard<Refuse>(*disagreeing, "refusal");
}

TEST_F(CoordinatorTest, PassesImportsOnToNodesThatWantThem) {
  Serve();
  auto a = Dial(Greeting("a", Job(1, 1)));
  UntilHeard<Start>(*a, "start");
  auto early = Dial(Greeting("b", Job(1, 1)));
  UntilHeard<Welcome>(*early, "welcome");
  EXPECT_TRUE(early->Find<Welcome>()->imports);
  early->link->Send(Imports{});
  auto silent = Dial(Greeting("c", Job(1, 1)));
  UntilHeard<Welcome>(*silent, "welcome");
  a->link->Send(Imports{"json"});
  UntilHeard<Imports>(*early, "what a imports");
  EXPECT_EQ(early->Find<Imports>()->names, "json");
  auto late = Dial(Greeting("d", Job(1, 1)));
  UntilHeard<Welcome>(*late, "welcome");
  late->link->Send(Imports{});
  UntilHeard<Imports>(*late, "what a imports");
  EXPECT_EQ(silent->Find<Imports>(), nullptr);
  EXPECT_EQ(a->Find<Imports>(), nullptr);
}

TEST_F(CoordinatorTest, InspectAnswersOnceOrFollows) {
  Serve();
  auto nobody = Dial(Inspect{});
  UntilHeard<Refuse>(*nobody, "refusal");
  auto a = Dial(Greeting("a", Job(1, 1)));
  UntilHeard<Start>(*a, "start");
  auto once = Dial(Inspect{});
  UntilHeard<StatusReport>(*once, "status");
  EXPECT_EQ(once->Find<StatusReport>()->run_id, "job");
  EXPECT_EQ(once->Find<StatusReport>()->nodes.size(), 1u);
  UntilLost(*once);
  auto absent = Dial(Inspect{"other", false});
  UntilHeard<Refuse>(*absent, "refusal");
  EXPECT_EQ(absent->Find<Refuse>()->reason, "no run \"other\" is coordinated here; there is: job");
  EXPECT_EQ(absent->Find<Refuse>()->exit_code, kExitRendezvousTimeout) << "it may come";
  auto follower = Dial(Inspect{"job", true});
  UntilHeard<StatusReport>(*follower, "first status");
  EXPECT_EQ(follower->Find<StatusReport>()->phase, "running");
  a->link->Send(Report{a->Find<Start>()->assignment.id, {}, {}, {}});
  Until([&] { return follower->Last<StatusReport>()->phase == "finished"; }, "the end, followed");
}

// The nodes are asked only while somebody looks, and only those that know the question.
TEST_F(CoordinatorTest, WhoLooksSeesTheTelemetryOfTheNodes) {
  Serve();
  Hello knows = Greeting("a", Job(2, 2));
  knows.tells_telemetry = true;
  auto a = Dial(knows);
  auto b = Dial(Greeting("b", Job(2, 2)));
  Until([&] { return a->Find<Start>() && b->Find<Start>(); }, "the round");
  EXPECT_EQ(a->Find<TelemetryWanted>(), nullptr);

  Telemetry telemetry{.round = a->Find<Start>()->assignment.id, .ranks = {{.local_rank = 0, .pid = 7}}};
  a->link->Send(telemetry);  // nobody looks: it is not kept
  auto viewer = Dial(Inspect{"job", true, true});
  Until([&] { return viewer->Find<StatusReport>(); }, "the first report");
  Until([&] { return a->Find<TelemetryWanted>(); }, "the question");
  EXPECT_EQ(viewer->Find<StatusReport>()->nodes.at(0).telemetry, std::nullopt);
  ASSERT_EQ(viewer->Find<StatusReport>()->rounds.size(), 1u);
  EXPECT_EQ(viewer->Find<StatusReport>()->rounds[0].world_size, 4);
  EXPECT_EQ(viewer->Find<StatusReport>()->rounds[0].stopping, std::nullopt);

  telemetry.ranks[0].last_line = "step 5";
  a->link->Send(telemetry);
  auto told = [&] {
    const auto* report = viewer->Last<StatusReport>();
    return report != nullptr && report->nodes.at(0).telemetry == telemetry;
  };
  Until(told, "the telemetry");
  EXPECT_EQ(viewer->Last<StatusReport>()->nodes.at(1).telemetry, std::nullopt);
  EXPECT_EQ(b->Find<TelemetryWanted>(), nullptr);

  auto follower = Dial(Inspect{"job", true});
  Until([&] { return follower->Find<StatusReport>() != nullptr; }, "a report without telemetry");
  EXPECT_EQ(follower->Find<StatusReport>()->nodes.at(0).telemetry, std::nullopt);
  EXPECT_TRUE(follower->Find<StatusReport>()->rounds.empty());

  auto once = Dial(Inspect{"job", false, true});
  Until([&] { return once->Find<StatusReport>() != nullptr; }, "one report");
  EXPECT_EQ(once->Find<StatusReport>()->nodes.at(0).telemetry, telemetry);

  b->link.reset();
  Until(
      [&] { return !viewer->Last<StatusReport>()->rounds.empty() && viewer->Last<StatusReport>()->rounds[0].stopping; },
      "the end of the round");
  EXPECT_NE(viewer->Last<StatusReport>()->rounds[0].stop_reason, "");
}

TEST_F(CoordinatorTest, ARunThatIsNotThereYetIsWaitedForByWhoFollowsIt) {
  Serve();
  auto any = Dial(Inspect{"", true});
  UntilHeard<Notice>(*any, "that there is none");
  auto follower = Dial(Inspect{"job", true});
  UntilHeard<Notice>(*follower, "that it is not there");
  auto gone = Dial(Inspect{"job", true});
  UntilHeard<Notice>(*gone, "that it is not there");
  gone->link.reset();
  auto other = Dial(Greeting("x", Job(1, 1), "other"));
  UntilHeard<StatusReport>(*any, "the first run there is");
  EXPECT_EQ(any->Find<StatusReport>()->run_id, "other");
  EXPECT_EQ(follower->Find<StatusReport>(), nullptr);
  auto a = Dial(Greeting("a", Job(1, 1)));
  UntilHeard<StatusReport>(*follower, "the run that was waited for");
  EXPECT_EQ(follower->Find<StatusReport>()->run_id, "job");
}

TEST_F(CoordinatorTest, WhoIsOnlyOnCallCoordinatesNothingYet) {
  Serve({}, {"b", "", "job"});
  coordinator_->SetPlace(address_, true);
  auto early = Dial(Greeting("a", Job(2, 2)));  // kept until b stands in
  Until([&] { return early->connected; }, "the connection");
  for (bool follow : {false, true}) {
    auto asks = Dial(Inspect{"job", follow});
    UntilHeard<Refuse>(*asks, "refusal");
    EXPECT_EQ(asks->Find<Refuse>()->exit_code, kExitRendezvousTimeout);
  }
}

// The only agent dies. The run ends with 200 by its timer, when no node is left.
TEST_F(CoordinatorTest, ARunThatEndsWithNobodyThereIsForgotten) {
  Serve();
  JobOptions job = Job(1, 1);
  job.join_timeout = std::chrono::milliseconds(50);
  std::string verdict;
  coordinator_->OnReason([&](const std::string&, const std::string& reason) {
    if (reason.find("came within") != std::string::npos) verdict = reason;
  });
  auto only = Dial(Greeting("a", job));
  UntilHeard<Start>(*only, "start");
  only->link.reset();
  Until([&] { return !verdict.empty(); }, "the end of the run");
  auto asks = Dial(Inspect{});
  UntilHeard<Refuse>(*asks, "that nobody knows of a run");
  auto again = Dial(Greeting("a", job));
  UntilHeard<Start>(*again, "a start, not the dead run's verdict");
  EXPECT_EQ(again->Find<Start>()->assignment.id, (RoundId{1, 0}));
}

TEST_F(CoordinatorTest, WhoWatchesAnEndedRunDoesNotKeepTheNextOneOut) {
  Serve();
  auto a = Dial(Greeting("a", Job(1, 1)));
  UntilHeard<Start>(*a, "start");
  auto follower = Dial(Inspect{"job", true});
  UntilHeard<StatusReport>(*follower, "first status");
  a->link->Send(Report{a->Find<Start>()->assignment.id, {}, {}, {}});
  UntilHeard<Finish>(*a, "finish");
  a->link.reset();
  std::unique_ptr<Caller> next;
  do {  // until the coordinator notices the end of `a`, it answers with the old verdict
    next = Dial(Greeting("a", Job(1, 1)));
    Until([&] { return !next->heard.empty(); }, "any answer");
  } while (next->Find<Finish>() != nullptr);
  UntilHeard<Welcome>(*next, "welcome");
}

TEST_F(CoordinatorTest, ASupersededCoordinatorSendsEveryoneOn) {
  Serve();
  auto a = Dial(Greeting("a", Job(1, 1)));
  UntilHeard<Start>(*a, "start");
  auto older = Dial(Supersede{"job", 0, "127.0.0.1:9"});
  UntilHeard<Redirect>(*older, "where it is coordinated");
  auto newer = Dial(Supersede{"job", 2, "127.0.0.1:9"});
  UntilHeard<Redirect>(*a, "redirect");
  EXPECT_EQ(*a->Find<Redirect>(), (Redirect{2, "127.0.0.1:9"}));
  UntilLost(*a);
  auto newest = Dial(Supersede{"job", 4, "127.0.0.1:10"});
  UntilHeard<Redirect>(*newer, "redirect of the one that is superseded, too");
  EXPECT_EQ(*newer->Find<Redirect>(), (Redirect{4, "127.0.0.1:10"}));
  auto late = Dial(Greeting("b", Job(1, 1)));
  UntilHeard<Redirect>(*late, "redirect of a newcomer");
  auto asking = Dial(Inspect{"job", false});
  UntilHeard<Redirect>(*asking, "redirect of the curious");
  Hello knows = Greeting("c", Job(1, 1));
  knows.resume = a->Find<Start>()->assignment;
  knows.resume->id.term = 5;  // above the term of the Supersede
  auto ahead = Dial(knows);
  UntilHeard<Welcome>(*ahead, "welcome of one who knows better");
}

// The stand-in that has superseded it fell silent, and lives. Both would coordinate, each without the other's nodes.
TEST_F(CoordinatorTest, WhoStandsInAgainIsAskedAgain) {
  Serve();
  auto a = Dial(Greeting("a", Job(1, 1)));
  UntilHeard<Start>(*a, "start");
  auto other = Dial(Supersede{"job", 2, "127.0.0.1:9"});
  UntilHeard<Redirect>(*a, "redirect");
  coordinator_->TakeOver("job", {a->Find<Start>()->assignment, Job(1, 1), false, {}, 2});
  UntilLost(*other);
  auto again = Dial(Supersede{"job", 2, "127.0.0.1:9"});
  UntilHeard<Redirect>(*again, "where it is coordinated");
  EXPECT_EQ(again->Find<Redirect>()->term, 3U);
}

TEST_F(CoordinatorTest, GarbageOnThePortDisturbsNobody) {
  Serve();
  auto a = Dial(Greeting("a", Job(2, 2)));
  UntilHeard<Welcome>(*a, "welcome");
  std::vector<std::string> garbage = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", std::string(100'000, '\xff'),
                                      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(5000, '\x41')};
  for (const std::string& bytes : garbage) {
    tcp::socket socket(loop_);
    socket.connect(tcp::endpoint(asio::ip::address_v4::loopback(), static_cast<uint16_t>(service_->port())));
    bool ended = false;
    std::array<char, 4096> answer;
    std::function<void()> read = [&] {
      socket.async_read_some(asio::buffer(answer), [&](const boost::system::error_code& error, size_t) {
        if (error) {
          ended = true;
        } else {
          read();
        }
      });
    };
    read();
    asio::async_write(socket, asio::buffer(bytes), [](const boost::system::error_code&, size_t) {});
    Until([&] { return ended; }, "the garbage's connection to be closed");
  }
  auto b = Dial(Greeting("b", Job(2, 2)));
  UntilHeard<Start>(*a, "start");
  UntilHeard<Start>(*b, "start");
}

TEST_F(CoordinatorTest, ATakenPortSaysSo) {
  Serve();
  CoordinatorService::Options options;
  options.host = "127.0.0.1";
  options.port = service_->port();
  Status status = CoordinatorService::Serve(loop_, *coordinator_, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
  EXPECT_THAT(std::string(Message(status)), HasSubstr(fmt::format("{}", options.port)));
  options.host = "not-an-address";
  EXPECT_EQ(CoordinatorService::Serve(loop_, *coordinator_, options).status().code(),
            absl::StatusCode::kInvalidArgument);
  options.host = "";
  options.port = 0;
  auto everywhere = CoordinatorService::Serve(loop_, *coordinator_, options);
  ASSERT_TRUE(everywhere.ok()) << everywhere.status();
  auto a = DialTo(fmt::format("localhost:{}", (*everywhere)->port()), Greeting("a", Job(1, 1)));
  UntilHeard<Welcome>(*a, "welcome");
  a->link.reset();
}

TEST_F(CoordinatorTest, ARefusedOrUnknownEndpointHasItsReason) {
  tcp::acceptor unused(loop_, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  std::string address = fmt::format("127.0.0.1:{}", unused.local_endpoint().port());
  unused.close();
  auto refused = DialTo(address, Beat{});
  UntilLost(*refused);
  EXPECT_EQ(refused->lost, Loss::kRefused);
  EXPECT_THAT(refused->why, testing::AllOf(HasSubstr(address), HasSubstr("refused")));
  auto nonsense = DialTo("no port", Beat{});
  UntilLost(*nonsense);
  EXPECT_EQ(nonsense->lost, Loss::kUnresolved);
}

TEST_F(CoordinatorTest, ComesBackOnTheSamePort) {
  Serve();
  auto a = Dial(Greeting("a", Job(1, 1)));
  UntilHeard<Start>(*a, "start");
  CoordinatorService::Options options;
  options.port = service_->port();
  service_.reset();
  coordinator_.reset();
  UntilLost(*a);
  Serve(options);
  Hello again = Greeting("a", Job(1, 1));
  again.state = NodeState::kRunning;
  again.resume = a->Find<Start>()->assignment;
  auto back = Dial(again);
  UntilHeard<Welcome>(*back, "welcome back");
  back->link->Send(Report{again.resume->id, {}, {}, {}});
  UntilHeard<Finish>(*back, "finish of the re-formed round");
  EXPECT_EQ(back->Find<Finish>()->verdict.exit_code, 0);
  EXPECT_EQ(back->Find<Stop>(), nullptr);
}

TEST_F(CoordinatorTest, APeerThatWasToldToGoIsNotHeard) {
  Serve();
  auto a = Dial(Greeting("a", Job(2, 2)));
  UntilHeard<Welcome>(*a, "welcome");
  struct Deaf final : Coordinator::Peer {
    void Send(const CoordinatorMessage&) override { ++told; }
    void Close() override { closed = true; }
    int told = 0;
    bool closed = false;
  } deaf;
  PeerId id = coordinator_->Connect(&deaf);
  coordinator_->Receive(id, Inspect{"job", false});
  EXPECT_TRUE(deaf.closed);
  coordinator_->Receive(id, Inspect{"job", false});
  EXPECT_EQ(deaf.told, 1);  // a message after Close is ignored
  coordinator_->Disconnect(id);
  coordinator_->Disconnect(id);
}

// --- TLS ---

class TlsTest : public CoordinatorTest {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "tlsXXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    std::string command = fmt::format(
        "cd {} && "
        "req() {{ openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \"$@\" "
        "2>/dev/null; }} && "
        "req -keyout ca.key -out ca.pem -subj /CN=ca && "
        "req -keyout node.key -out node.pem -subj /CN=node -CA ca.pem -CAkey ca.key "
        "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=CA:FALSE && "
        "req -keyout other.key -out other.pem -subj /CN=other",
        folder_);
    ASSERT_EQ(std::system(command.c_str()), 0);
    node_ = {"", ReadAll(folder_ + "/node.pem"), ReadAll(folder_ + "/node.key"), ReadAll(folder_ + "/ca.pem")};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  net::Credentials node_;
};

TEST_F(TlsTest, NodesWithTheJobsCertificateMeet) {
  CoordinatorService::Options options;
  options.credentials = node_;
  Serve(options);
  auto a = DialTo(fmt::format("localhost:{}", service_->port()), Greeting("a", Job(2, 2)), node_);
  auto b = Dial(Greeting("b", Job(2, 2)), node_);
  UntilHeard<Start>(*a, "start");
  UntilHeard<Start>(*b, "start");
}

TEST_F(TlsTest, AStrangerIsRefused) {
  CoordinatorService::Options options;
  options.credentials = node_;
  Serve(options);
  net::Credentials foreign = node_;
  foreign.tls_cert = ReadAll(folder_ + "/other.pem");
  foreign.tls_key = ReadAll(folder_ + "/other.key");
  auto without = Dial(Greeting("a", Job(1, 1)));  // no TLS at all
  UntilLost(*without);
  auto other = Dial(Greeting("a", Job(1, 1)), foreign);
  UntilLost(*other);
  net::Credentials no_certificate = node_;
  no_certificate.tls_cert.clear();
  no_certificate.tls_key.clear();
  auto bare = Dial(Greeting("a", Job(1, 1)), no_certificate);
  UntilLost(*bare);
  for (Caller* caller : {without.get(), other.get(), bare.get()}) EXPECT_TRUE(caller->heard.empty());
  auto good = Dial(Greeting("a", Job(1, 1)), node_);
  UntilHeard<Start>(*good, "start");
}

TEST_F(TlsTest, WrongFilesAreAnError) {
  CoordinatorService::Options options;
  options.host = "127.0.0.1";
  options.credentials = {"", "no pem", "no pem", "no pem"};
  Coordinator coordinator(loop_, {});
  EXPECT_EQ(CoordinatorService::Serve(loop_, coordinator, options).status().code(), absl::StatusCode::kInvalidArgument);
}

// --- without a network ---

class LocalLinkTest : public ControlFixture {};

TEST_F(LocalLinkTest, StartsNoThread) {
  auto count_threads = [] {
    int threads = 0;
    DIR* tasks = opendir("/proc/self/task");
    while (const dirent* entry = readdir(tasks)) threads += entry->d_name[0] != '.';
    closedir(tasks);
    return threads;
  };
  int before = count_threads();
  Coordinator coordinator(loop_, {"a", "", "job"});
  Caller a;
  a.first = Greeting("a", Job(1, 1));
  a.link = DialLocally(loop_, coordinator, a.events());
  Until([&] { return a.Find<Start>() != nullptr; }, "start");
  EXPECT_EQ(count_threads(), before);
  a.link->Send(Report{a.Find<Start>()->assignment.id, {}, {}, {}});
  Until([&] { return a.Find<Finish>() != nullptr; }, "finish");
  bool hung_up = false;
  a.link->HangUp([&] { hung_up = true; });
  Until([&] { return hung_up; }, "the end");
}

TEST_F(LocalLinkTest, HearsNothingAfterTheCoordinatorsEnd) {
  auto coordinator = std::make_unique<Coordinator>(loop_, Coordinator::Options{"a", "", "job"});
  Caller a;
  a.link = DialLocally(loop_, *coordinator, a.events());
  Until([&] { return a.connected; }, "connected");
  a.link->Send(Inspect{"job", false});
  coordinator.reset();
  bool hung_up = false;
  a.link->HangUp([&] { hung_up = true; });
  Until([&] { return hung_up; }, "the end");
  EXPECT_TRUE(a.heard.empty());
  a.link.reset();
}

}  // namespace
}  // namespace muster::rendezvous
