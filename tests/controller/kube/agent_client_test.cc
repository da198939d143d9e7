// SPDX-License-Identifier: Apache-2.0
#include "controller/kube/jobs/agent_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/controller/kube/raw_agent.h"
#include "tests/controller/kube/script_server.h"

namespace muster::controller {
namespace {

using testing::HasSubstr;

constexpr Duration kLong = std::chrono::hours(1);
constexpr Duration kShort = std::chrono::milliseconds(20);

class AgentClientTest : public testing::Test {
 protected:
  // What a client with `limits` makes of an agent that answers with `bytes`, and then closes the connection or not.
  StatusOr<AgentClient::Answer> Ask(AgentClient::Limits limits, std::vector<std::string> bytes, bool closes = false,
                                    Duration patience = kLong) {
    RawAgent agent(loop_, {.bytes = std::move(bytes), .closes = closes});
    return AskAt(agent.url(), limits, patience);
  }
  StatusOr<AgentClient::Answer> AskAt(const std::string& url, AgentClient::Limits limits, Duration patience = kLong) {
    AgentClient client(loop_, limits);
    std::optional<StatusOr<AgentClient::Answer>> came;
    const auto request = client.Ask(url, patience, [&came](auto answer) { came = std::move(answer); });
    EXPECT_FALSE(came.has_value()) << "before Ask returned";
    EXPECT_TRUE(RunUntil(loop_, [&came] { return came.has_value(); }));
    return came.value_or(absl::UnknownError("no answer"));
  }

  boost::asio::io_context loop_;
  const AgentClient::Limits limits_{.connect = kLong, .answer = kLong, .longest = 100'000, .memory = 1'000'000};
};

TEST_F(AgentClientTest, ReadsAnAnswerHoweverItComes) {
  const std::string body(50'000, 'x');
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
  struct Row {
    const char* what;
    std::vector<std::string> bytes;
    bool closes;
  };
  const Row rows[] = {
      {"with a length", {head + "Content-Length: 50000\r\n\r\n" + body}, false},
      {"in pieces", {"HTTP/1.1 20", "0 OK\r\nContent-Len", "gth: 50000\r\n\r\n", body.substr(1), "x"}, false},
      {"in chunks", {head + "Transfer-Encoding: chunked\r\n\r\nc350\r\n" + body, "\r\n0\r\n", "\r\n"}, false},
      {"until the end of the connection", {head + "\r\n", body}, true},
  };
  for (const Row& row : rows) {
    const auto answer = Ask(limits_, row.bytes, row.closes);
    ASSERT_TRUE(answer.ok()) << row.what << ": " << Message(answer.status());
    EXPECT_EQ(answer->status, 200) << row.what;
    EXPECT_EQ(answer->body, body) << row.what;
  }
  const auto unchanged = Ask(limits_, {"HTTP/1.1 304 Not Modified\r\n\r\n"});
  ASSERT_TRUE(unchanged.ok()) << Message(unchanged.status());
  EXPECT_EQ(unchanged->status, 304);
}

TEST_F(AgentClientTest, SaysWhyNoWholeAnswerCame) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  struct Row {
    const char* why;
    std::vector<std::string> bytes;
    bool closes;
  };
  const Row rows[] = {
      {"the connection ended within the answer", {head + "Content-Length: 5\r\n\r\nabc"}, true},
      {"the connection ended within the answer", {head}, true},
      {"End of file", {}, true},
      {"body limit exceeded", {head + "Content-Length: 100001\r\n\r\n"}, false},
      {"body limit exceeded", {head + "\r\n" + std::string(100'001, 'x')}, false},
      {"header limit exceeded", {head + "X: " + std::string(10'000, 'x')}, false},
      {"a line of the answer is too long",
       {head + "Transfer-Encoding: chunked\r\n\r\n1;" + std::string(20'000, 'x')},
       false},
      {"bad version", {"SSH-2.0-OpenSSH_9.2\r\n"}, false},
  };
  for (const Row& row : rows) {
    const auto answer = Ask(limits_, row.bytes, row.closes);
    ASSERT_FALSE(answer.ok()) << row.why;
    EXPECT_THAT(Message(answer.status()), HasSubstr(row.why));
  }
}

TEST_F(AgentClientTest, RefusesAUrlThatIsNoAddress) {
  for (const char* url : {"https://127.0.0.1:80/status", "http://agent:80/status", "ftp://127.0.0.1/"}) {
    EXPECT_FALSE(AskAt(url, limits_).ok()) << url;
  }
}

TEST_F(AgentClientTest, ASilentAgentEndsWithItsPatience) {
  const auto answer = Ask(limits_, {}, false, kShort);
  EXPECT_EQ(Message(answer.status()), "no whole answer in time");
}

TEST_F(AgentClientTest, ABegunAnswerMustBeWholeSoon) {
  AgentClient::Limits limits = limits_;
  limits.answer = kShort;
  for (const char* begun : {"H", "HTTP/1.1 200 OK\r\n\r\nhalf of an answer without a length"}) {
    const auto answer = Ask(limits, {begun});
    EXPECT_EQ(Message(answer.status()), "no whole answer in time");
  }
}

TEST_F(AgentClientTest, LargeAnswersYieldIfAllTogetherAreTooLarge) {
  AgentClient::Limits limits = limits_;
  limits.memory = 30'000;
  AgentClient client(loop_, limits);
  const std::string head = "HTTP/1.1 200 OK\r\n\r\n";
  RawAgent large(loop_, {.bytes = {head + std::string(28'000, 'x')}});
  RawAgent larger(loop_, {.bytes = {head + std::string(40'000, 'x')}});
  RawAgent small(loop_, {.bytes = {head + "small"}, .closes = true});
  std::string why, body;
  const auto first = client.Ask(large.url(), kLong, [](const auto&) { FAIL() << "it has not ended"; });
  ASSERT_TRUE(RunUntil(loop_, [&] { return large.sent(); }));
  const auto second = client.Ask(larger.url(), kLong, [&why](const auto& answer) { why = Message(answer.status()); });
  ASSERT_TRUE(RunUntil(loop_, [&] { return !why.empty(); }));
  EXPECT_EQ(why, "the answers of all agents together are too long");
  const auto third = client.Ask(small.url(), kLong, [&body](const auto& answer) { body = answer->body; });
  ASSERT_TRUE(RunUntil(loop_, [&] { return !body.empty(); }));
  EXPECT_EQ(body, "small");
}

TEST_F(AgentClientTest, TheConnectionEndsWithTheRequest) {
  AgentClient client(loop_, limits_);
  RawAgent agent(loop_, {});
  auto request = client.Ask(agent.url(), kLong, [](const auto&) { FAIL() << "it was cancelled"; });
  ASSERT_TRUE(RunUntil(loop_, [&] { return !agent.request().empty(); }));
  EXPECT_THAT(agent.request(), HasSubstr("GET /status?after=a1&wait=60 HTTP/1.1\r\nHost: 127.0.0.1:"));
  EXPECT_EQ(agent.open(), 1);
  request.reset();
  EXPECT_TRUE(RunUntil(loop_, [&] { return agent.open() == 0; }));
}

}  // namespace
}  // namespace muster::controller
