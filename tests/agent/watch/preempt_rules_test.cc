// SPDX-License-Identifier: Apache-2.0
#include "agent/watch/preempt_rules.h"

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using Kind = NoticeVerdict::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(JudgeNotice, TellsANoticeFromEachAnswerOfAProvider) {
  struct Case {
    int status;
    const char* body;
    Kind kind;
    const char* what;
  };
  const Case cases[] = {
      {404, "<html>not found</html>", Kind::kNothing, ""},
      {204, "", Kind::kNothing, ""},
      {401, "", Kind::kToken, ""},
      {403, "no", Kind::kTrouble, "answers with HTTP status 403"},
      {500, "TRUE", Kind::kTrouble, "answers with HTTP status 500"},
      {302, "", Kind::kTrouble, "answers with HTTP status 302"},
      // GCE
      {200, "FALSE", Kind::kNothing, ""},
      {200, "TRUE", Kind::kNotice, "TRUE"},
      {200, "NONE", Kind::kNothing, ""},
      {200, "MIGRATE_ON_HOST_MAINTENANCE", Kind::kNothing, ""},
      {200, "TERMINATE_ON_HOST_MAINTENANCE\n", Kind::kNotice, "TERMINATE_ON_HOST_MAINTENANCE"},
      // AWS
      {200, R"({"action": "terminate", "time": "2017-09-18T08:22:00Z"})", Kind::kNotice,
       "terminate at 2017-09-18T08:22:00Z"},
      {200, R"({"action":"hibernate"})", Kind::kNotice, "hibernate"},
      {200, "2015-01-05T18:02:00Z", Kind::kNotice, "the end at 2015-01-05T18:02:00Z"},
      {200, R"({"action": "none"})", Kind::kNothing, ""},
      // Azure
      {200, R"({"DocumentIncarnation": 1, "Events": []})", Kind::kNothing, ""},
      {200, R"({"Events": [{"EventType": "Freeze", "Resources": ["vm"]}, {"EventType": "Reboot"}]})", Kind::kNothing,
       ""},
      {200, R"({"Events": [{"EventType": "Preempt", "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT"}]})", Kind::kNotice,
       "Preempt at Mon, 19 Sep 2016 18:29:47 GMT"},
      {200, R"({"Events": [7, {"EventType": 8}, {"EventType": "Terminate", "Resources": ["a", 3, "b"]}]})",
       Kind::kNoticeOf, "Terminate"},
      // of no known service
      {200, "", Kind::kNothing, ""},
      {200, "<html>login</html>", Kind::kTrouble, "answers with text that is not a known notice: <html>login</html>"},
      {200, "\xff\x01 x", Kind::kTrouble, "answers with text that is not a known notice: ?? x"},
      {200, R"({"action": 3})", Kind::kTrouble, R"(answers with text that is not a known notice: {"action": 3})"},
      {200, R"({"action": "dance"})", Kind::kTrouble,
       R"(answers with text that is not a known notice: {"action": "dance"})"},
      {200, "[]", Kind::kTrouble, "answers with text that is not a known notice: []"},
  };
  for (const Case& c : cases) {
    NoticeVerdict verdict = JudgeNotice(c.status, c.body);
    EXPECT_EQ(verdict.kind, c.kind) << c.body;
    EXPECT_EQ(verdict.what, c.what) << c.body;
  }
  EXPECT_THAT(JudgeNotice(200, R"({"Events": [{"EventType": "Terminate", "Resources": ["a", 3, "b"]}]})").machines,
              ElementsAre("a", "b"));
  EXPECT_LT(JudgeNotice(200, std::string(60000, 'x')).what.size(), 200u);
}

TEST(ParseHttpUrl, ReadsHostPortAndTarget) {
  auto parsed = ParseHttpUrl("http://169.254.169.254/latest/meta-data/spot/instance-action");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->host, "169.254.169.254");
  EXPECT_EQ(parsed->port, 80);
  EXPECT_EQ(parsed->target, "/latest/meta-data/spot/instance-action");
  parsed = ParseHttpUrl("http://[fd00:ec2::254]:8080?x=1");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->host, "fd00:ec2::254");
  EXPECT_EQ(parsed->port, 8080);
  EXPECT_EQ(parsed->target, "/?x=1");
  EXPECT_EQ(ParseHttpUrl("http://host")->target, "/");
}

TEST(ParseHttpUrl, SaysWhatIsWrong) {
  for (auto [url, said] : {std::pair("https://host/", "plain HTTP"), std::pair("ftp://host/", "want http://"),
                           std::pair("http://", "host is missing"), std::pair("http://:80/", "host is missing"),
                           std::pair("http://host:0/", "port"), std::pair("http://host:x/", "port"),
                           std::pair("http://me:pw@host/", "user names"), std::pair("http://host/a b", "blanks"),
                           std::pair("http://host/\r\nX: y", "control"), std::pair("http://host/#x", "fragment")}) {
    auto parsed = ParseHttpUrl(url);
    ASSERT_FALSE(parsed.ok()) << url;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(said)) << url;
  }
}

TEST(LongPoll, TheFirstQuestionDoesNotWait) {
  EXPECT_FALSE(IsLongPoll("/x"));
  EXPECT_FALSE(IsLongPoll("/x?wait_for_change=false"));
  EXPECT_TRUE(IsLongPoll("/x?wait_for_change=true"));
  EXPECT_EQ(FirstTarget("/x?wait_for_change=true"), "/x");
  EXPECT_EQ(FirstTarget("/x?a=1&wait_for_change=true&b"), "/x?a=1&b");
  EXPECT_EQ(FirstTarget("/x?a=1"), "/x?a=1");
  EXPECT_EQ(NextTarget("/x?wait_for_change=true", "4d-a"), "/x?wait_for_change=true&last_etag=4d-a");
  EXPECT_EQ(NextTarget("/x?wait_for_change=true", "a b\r\n"), "/x?wait_for_change=true");
  EXPECT_EQ(NextTarget("/x", "4d"), "/x");
}

}  // namespace
}  // namespace muster::agent
