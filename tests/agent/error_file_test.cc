// SPDX-License-Identifier: Apache-2.0
// The content of the agent's own error file, row by row.
#include "agent/error_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_fields.h"

namespace muster::agent {
namespace {

constexpr int64_t kNow = 1700000100'000;

JobEnd Failed(int signal = 0) {
  WorkerFailure failure;
  failure.exit_code = signal != 0 ? 128 + signal : 3;
  failure.signal = signal;
  failure.unix_millis = 1700000000'500;
  JobEnd end;
  end.exit_code = failure.exit_code;
  end.verdict = rendezvous::Verdict{failure.exit_code, "node n1: worker rank 3 failed", failure, {failure}};
  return end;
}

Json Written(const JobEnd& end, const std::optional<std::string>& worker_file = std::nullopt) {
  auto text = ErrorFileText(end, worker_file, kNow);
  return text ? Json::parse(*text) : Json();
}

TEST(ErrorFile, TheWorkersOwnIsCopiedWithItsCode) {
  const std::string left =
      R"({"message": {"message": "E: x", "extraInfo": {"py_callstack": "T", "more": 1}}, "other": 2})";
  EXPECT_EQ(Written(Failed(), left),
            Json::parse(R"({"message": {"message": "E: x", "extraInfo": {"py_callstack": "T", "more": 1},
                            "errorCode": 3}, "other": 2})"));
  EXPECT_EQ(Written(Failed(9), left)["message"]["errorCode"], -9) << "as Python counts signals";
  const std::string text_only = R"({"message": "no data", "timestamp": 5})";
  EXPECT_EQ(Written(Failed(), text_only), Json::parse(text_only)) << "torchelastic leaves this form as it is";
}

TEST(ErrorFile, WithoutOneThatCanBeReadWhatIsKnownIsSaid) {
  for (const auto& left : {std::optional<std::string>(), std::optional<std::string>("{\"mess"),
                           std::optional<std::string>("[]"), std::optional<std::string>("{}")}) {
    Json written = Written(Failed(), left);
    EXPECT_EQ(written["message"]["message"], "node n1: worker rank 3 failed");
    EXPECT_EQ(written["message"]["extraInfo"]["py_callstack"], "node n1: worker rank 3 failed");
    EXPECT_EQ(written["message"]["extraInfo"]["timestamp"], "1700000000");
    EXPECT_EQ(written["message"]["errorCode"], 3);
  }
  JobEnd told = Failed();
  told.verdict->root_cause->message = "ValueError: batch size 0";
  told.verdict->root_cause->stderr_tail = {"Traceback", "\xff"};
  Json written = Written(told);
  EXPECT_EQ(written["message"]["message"], "ValueError: batch size 0");
  EXPECT_EQ(written["message"]["extraInfo"]["py_callstack"], "Traceback\n\xEF\xBF\xBD");
}

TEST(ErrorFile, AnEndWithoutAFailedWorker) {
  JobEnd end;
  end.exit_code = 143;
  end.reason = "preempted: SIGTERM";
  Json written = Written(end);
  EXPECT_EQ(written["message"]["message"], "preempted: SIGTERM");
  EXPECT_EQ(written["message"]["extraInfo"]["timestamp"], "1700000100");
  EXPECT_EQ(written["message"]["errorCode"], 143);
}

TEST(ErrorFile, NothingAfterASuccess) { EXPECT_EQ(ErrorFileText(JobEnd(), "{}", kNow), std::nullopt); }

}  // namespace
}  // namespace muster::agent
