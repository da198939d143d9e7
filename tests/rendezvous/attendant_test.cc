// SPDX-License-Identifier: Apache-2.0
// Whole agents without workers: each with its coordinator, its control port and its attendant, all on one loop.
#include "rendezvous/attendant.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "control_fixture.h"

namespace muster::rendezvous {
namespace {

namespace asio = boost::asio;
using testing::HasSubstr;

class AttendantTest : public ControlFixture {
 protected:
  // An agent whose workers run until they are told to stop, and then stop at once.
  struct Agent {
    std::string name;
    std::unique_ptr<Coordinator> coordinator;
    std::unique_ptr<CoordinatorService> service;
    std::unique_ptr<Attendant> attendant;
    std::string address;
    std::optional<Assignment> round;  // whose workers run
    int rounds = 0;
    int stops = 0;
    std::optional<Verdict> verdict;
    std::vector<std::string> said;

    ~Agent() { Die(); }
    // As after SIGKILL: every socket is closed, no message is sent.
    void Die() {
      attendant.reset();
      service.reset();
      coordinator.reset();
    }
    bool Runs(int nodes) const { return round && round->node_count == nodes; }
    void Fail(int code) {
      WorkerFailure failure;
      failure.node = name;
      failure.rank = round->seat.first_rank;
      failure.exit_code = code;
      failure.message = "out of luck";
      Report report{round->id, {failure}, std::chrono::seconds(1), {}};
      round.reset();
      attendant->WorkersEnded(report);
      attendant->NoWorkerLeft(4001);
    }
    void Succeed() {
      Report report{round->id, {}, std::chrono::seconds(1), {}};
      attendant->WorkersEnded(report);
    }
  };

  std::unique_ptr<Agent> Start(const std::string& name, const JobOptions& job, const std::string& endpoint,
                               int port = 0, const std::string& run_id = "job") {
    auto agent = std::make_unique<Agent>();
    agent->name = name;
    // Finds a free port first, since the coordinator needs the address.
    asio::ip::tcp::acceptor probe(
        loop_, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), static_cast<uint16_t>(port)));
    CoordinatorService::Options options;
    options.host = "127.0.0.1";
    options.port = probe.local_endpoint().port();
    probe.close();
    agent->address = fmt::format("127.0.0.1:{}", options.port);
    agent->coordinator = std::make_unique<Coordinator>(loop_, Coordinator::Options{name, agent->address, run_id});
    auto served = CoordinatorService::Serve(loop_, *agent->coordinator, options);
    EXPECT_TRUE(served.ok()) << served.status();
    agent->service = *std::move(served);

    AttendantOptions attend;
    attend.run_id = run_id;
    attend.endpoint = endpoint;
    attend.self = Greeting(name, job).node;
    attend.self.incarnation = fmt::format("{}-{}", name, ++incarnations_);
    attend.self.control_address = agent->address;
    attend.options = job;
    agent->attendant = std::make_unique<Attendant>(loop_, attend, agent->coordinator.get(), Callbacks(*agent));
    agent->attendant->Begin();
    return agent;
  }

  AttendantEvents Callbacks(Agent& agent) {
    AttendantEvents events;
    events.start = [&agent](const Assignment& assignment) {
      agent.round = assignment;
      ++agent.rounds;
    };
    events.stop = [&agent](const attendance::StopRound&) {
      agent.round.reset();
      ++agent.stops;
      agent.attendant->NoWorkerLeft(4002);
    };
    events.end = [&agent](const Verdict& verdict) {
      agent.verdict = verdict;
      agent.round.reset();
    };
    events.say = [&agent](const std::string& text) { agent.said.push_back(text); };
    return events;
  }

  int incarnations_ = 0;
};

TEST_F(AttendantTest, RoundFailureNextRoundAndOneVerdict) {
  JobOptions job = Job(3, 3, 1);
  auto a = Start("a", job, "");
  auto b = Start("b", job, a->address);
  auto c = Start("c", job, a->address);
  Until([&] { return a->Runs(3) && b->Runs(3) && c->Runs(3); }, "the first round");
  c->Fail(7);
  Until([&] { return a->rounds == 2 && b->rounds == 2 && c->rounds == 2; }, "the second round");
  EXPECT_EQ(b->round->restart_count, 1);
  EXPECT_EQ(b->round->id, c->round->id);
  b->Fail(9);
  Until([&] { return a->verdict && b->verdict && c->verdict; }, "the end");
  EXPECT_EQ(*a->verdict, *b->verdict);
  EXPECT_EQ(*a->verdict, *c->verdict);
  EXPECT_EQ(a->verdict->exit_code, 9);
  EXPECT_EQ(a->verdict->root_cause->node, "b");
  EXPECT_EQ(a->verdict->root_cause->message, "out of luck");
}

TEST_F(AttendantTest, SuccessEndsEveryNodeWithZero) {
  JobOptions job = Job(2, 2);
  auto a = Start("a", job, "");
  auto b = Start("b", job, a->address);
  Until([&] { return a->Runs(2) && b->Runs(2); }, "the round");
  b->Succeed();
  a->Succeed();
  Until([&] { return a->verdict && b->verdict; }, "the end");
  EXPECT_EQ(a->verdict->exit_code, 0);
  EXPECT_EQ(b->verdict->exit_code, 0);
  bool closed = false;
  b->attendant->Close(std::chrono::seconds(60), [&] { closed = true; });
  Until([&] { return closed; }, "goodbye");
  b.reset();
  bool drained = false;
  a->coordinator->Drain(std::chrono::seconds(60), [&] { drained = true; });
  Until([&] { return drained; }, "everyone gone");
}

TEST_F(AttendantTest, ASpareReplacesALostNode) {
  JobOptions job = Job(2, 2, 0);
  auto a = Start("a", job, "");
  auto b = Start("b", job, a->address);
  Until([&] { return a->Runs(2) && b->Runs(2); }, "the round");
  auto spare = Start("spare", job, a->address);
  Until([&] { return !spare->said.empty(); }, "the spare to be told that it waits");
  EXPECT_EQ(a->rounds, 1);
  b->Die();
  Until([&] { return a->rounds == 2 && spare->Runs(2); }, "the round with the spare");
}

TEST_F(AttendantTest, ANodeThatLeavesIsNotWaitedFor) {
  JobOptions job = Job(1, 2, 0);
  job.heartbeat_timeout = std::chrono::hours(1);
  auto a = Start("a", job, "");
  Until([&] { return a->Runs(1); }, "the first round");
  auto b = Start("b", job, a->address);
  Until([&] { return a->Runs(2) && b->Runs(2); }, "the round of two");
  b->attendant->Leave("preempted", LeaveCause::kPreempted);
  Until([&] { return b->verdict.has_value(); }, "the end of b");
  EXPECT_EQ(b->verdict->exit_code, kExitStopped);
  bool closed = false;
  b->attendant->Close(std::chrono::seconds(60), [&] { closed = true; });
  Until([&] { return closed; }, "goodbye");
  b.reset();
  Until([&] { return a->Runs(1) && a->rounds >= 3; }, "the round without b");
}

TEST_F(AttendantTest, ARefusedEndpointIsTriedUntilTheJoinTimeout) {
  asio::ip::tcp::acceptor unused(loop_, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  std::string address = fmt::format("127.0.0.1:{}", unused.local_endpoint().port());
  unused.close();
  JobOptions job = Job(2, 2);
  job.join_timeout = std::chrono::milliseconds(300);
  auto a = Start("a", job, address);
  Until([&] { return a->verdict.has_value(); }, "the end");
  EXPECT_EQ(a->verdict->exit_code, kExitRendezvousTimeout);
  EXPECT_THAT(a->verdict->reason, testing::AllOf(HasSubstr(address), HasSubstr("refused")));
  EXPECT_EQ(a->said.size(), 1u);  // one reason, said once
}

TEST_F(AttendantTest, AnEndpointThatAppearsLateIsFound) {
  asio::ip::tcp::acceptor later(loop_, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  int port = later.local_endpoint().port();
  later.close();
  JobOptions job = Job(2, 2);
  auto b = Start("b", job, fmt::format("127.0.0.1:{}", port));
  Until([&] { return !b->said.empty(); }, "the first failed dial");
  auto a = Start("a", job, "", port);
  Until([&] { return a->Runs(2) && b->Runs(2); }, "the round");
}

TEST_F(AttendantTest, AnotherRunIdEndsTheNodeWithBothNames) {
  auto a = Start("a", Job(1, 1), "", 0, "mine");
  auto b = Start("b", Job(1, 1), a->address, 0, "yours");
  Until([&] { return b->verdict.has_value(); }, "the refusal");
  EXPECT_EQ(b->verdict->exit_code, kExitBadConfiguration);
  EXPECT_THAT(b->verdict->reason, testing::AllOf(HasSubstr("mine"), HasSubstr("yours")));
}

// `muster coordinator` dies and comes back without memory. All workers keep running.
TEST_F(AttendantTest, AnEmptyCoordinatorReformsTheRound) {
  Serve();
  JobOptions job = Job(2, 2);
  auto b = Start("b", job, address_);
  auto c = Start("c", job, address_);
  Until([&] { return b->Runs(2) && c->Runs(2); }, "the round");
  CoordinatorService::Options options;
  options.port = service_->port();
  service_.reset();
  coordinator_.reset();
  Serve(options);
  b->Succeed();
  c->Succeed();
  Until([&] { return b->verdict && c->verdict; }, "the end");
  EXPECT_EQ(b->verdict->exit_code, 0);
  EXPECT_EQ(b->rounds + c->rounds, 2);
  EXPECT_EQ(b->stops + c->stops, 0);
}

TEST_F(AttendantTest, TheDeathOfTheHostIsOneNodesLoss) {
  JobOptions job = Job(1, 3, 0);
  auto a = Start("a", job, "");
  auto b = Start("b", job, a->address);
  auto c = Start("c", job, a->address);
  Until([&] { return a->Runs(3) && b->Runs(3) && c->Runs(3); }, "the round of three");
  uint64_t term = b->round->id.term;
  a->Die();
  Until([&] { return b->Runs(2) && c->Runs(2); }, "the round of the survivors");
  EXPECT_GT(b->round->id.term, term);
  EXPECT_EQ(b->round->id, c->round->id);
  EXPECT_EQ(b->round->restart_count, 0);
}

// The pod at the endpoint comes back at the same address, without memory, while another node stands in.
TEST_F(AttendantTest, AHostThatComesBackIsSentToTheStandIn) {
  JobOptions job = Job(1, 2, 0);
  auto a = Start("a", job, "");
  std::string endpoint = a->address;
  int port = a->service->port();
  auto b = Start("b", job, endpoint);
  Until([&] { return a->Runs(2) && b->Runs(2); }, "the round of two");
  a->Die();
  Until([&] { return b->Runs(1); }, "the round of b alone");
  uint64_t term = b->round->id.term;
  auto again = Start("a", job, "", port);
  Until([&] { return again->Runs(2) && b->Runs(2); }, "the round of two, of the stand-in");
  EXPECT_EQ(b->round->id.term, term);
  EXPECT_EQ(again->round->id, b->round->id);
  auto stranger = Start("c", job, endpoint);  // dials the endpoint, and is redirected
  Until([&] { return !stranger->said.empty(); }, "the spare to be told that it waits");
  EXPECT_FALSE(stranger->verdict);
  EXPECT_TRUE(b->Runs(2));
}

// The machine at the endpoint loses its power: its connections stay open, and nothing answers. Then another one has the
// endpoint. It would begin a run of its own if the stand-in did not tell it.
TEST_F(AttendantTest, AnotherHostIsFoundWhereTheLastOneLostItsPower) {
  JobOptions job = Job(1, 2, 0);
  auto a = Start("a", job, "");
  const int port = a->service->port();
  auto b = Start("b", job, a->address);
  Until([&] { return a->Runs(2) && b->Runs(2); }, "the round of two");
  a->Die();
  Until([&] { return b->Runs(1); }, "the round of b alone");
  asio::ip::tcp::acceptor dead(loop_,
                               asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), static_cast<uint16_t>(port)));
  std::vector<asio::ip::tcp::socket> open;
  dead.async_accept([&open](const boost::system::error_code& error, asio::ip::tcp::socket socket) {
    if (!error) open.push_back(std::move(socket));
  });
  Until([&] { return !open.empty(); }, "the stand-in to tell the endpoint");
  dead.close();
  auto again = Start("a", job, "", port);
  Until([&] { return again->Runs(2) && b->Runs(2); }, "the round of two, of the stand-in");
}

TEST_F(AttendantTest, MayBeDestroyedFromWithinItsCallbacks) {
  JobOptions job = Job(2, 2, 0);
  auto a = Start("a", job, "");
  auto b = Start("b", job, a->address);
  Until([&] { return a->Runs(2) && b->Runs(2); }, "the round");
  Coordinator coordinator(loop_, {});
  AttendantOptions options;
  options.run_id = "other";
  options.endpoint = a->address;
  options.self = Greeting("d", job).node;
  options.options = job;
  std::unique_ptr<Attendant> refused;
  bool ended = false;
  AttendantEvents events;
  events.end = [&](const Verdict&) {
    refused.reset();
    ended = true;
  };
  refused = std::make_unique<Attendant>(loop_, options, &coordinator, events);
  refused->Begin();
  Until([&] { return ended; }, "the refusal");
  bool later = false;
  asio::post(loop_, [&] { later = true; });
  Until([&] { return later; }, "what was posted");
}

}  // namespace
}  // namespace muster::rendezvous
