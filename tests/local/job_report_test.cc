// SPDX-License-Identifier: Apache-2.0
#include "local/state/job_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace muster::local {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class JobReport : public testing::Test {
 protected:
  JobReport() : folder_(fs::path(testing::TempDir()) / fmt::format("job-report-{}", getpid())) {
    fs::create_directories(folder_);
  }
  ~JobReport() override { fs::remove_all(folder_); }

  void Record(const std::string& path) {
    const fs::path file = folder_ / "attempts" / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "{}";
  }
  // Makes a script that replaces the binary.
  std::string Program(const std::string& script) {
    const fs::path file = folder_ / "program";
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }
  StatusOr<std::string> Write(const std::string& script) { return WriteJobReport(Program(script), folder_); }

  const fs::path folder_;
};

TEST_F(JobReport, IsMadeOfTheAttemptsOfAllPods) {
  Record("pod-0/run/attempt_0/attempt.json");
  const auto page = Write("echo \"$@\" > \"$4\"");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(*page, folder_ / "report.html");
  std::string said;
  std::ifstream file(*page);
  std::getline(file, said);
  EXPECT_EQ(said, fmt::format("report {} -o {}/report.html", folder_.string(), folder_.string()));
}

TEST_F(JobReport, IsNotMadeWithoutARecord) {
  EXPECT_TRUE(absl::IsNotFound(Write("true").status()));
  fs::create_directories(folder_ / "attempts/pod-0/run");
  EXPECT_TRUE(absl::IsNotFound(Write("true").status()));
  Record("pod-0/run/attempt_0/0/1/2/attempt.json");  // not a record of an agent: too deep
  EXPECT_TRUE(absl::IsNotFound(Write("true").status()));
}

TEST_F(JobReport, FailsWithWhatTheBinarySays) {
  Record("pod-0/run/attempt_0/attempt.json");
  EXPECT_THAT(Message(Write("echo no room >&2; exit 78").status()), HasSubstr("no room"));
  EXPECT_THAT(Message(WriteJobReport("/no/such/muster", folder_).status()), HasSubstr("/no/such/muster"));
}

}  // namespace
}  // namespace muster::local
