// SPDX-License-Identifier: Apache-2.0
#include "local/state/job_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "local/state/rank_marks.h"

namespace muster::local {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class JobLogs : public testing::Test {
 protected:
  JobLogs() {
    std::string pattern = testing::TempDir() + "muster-logs-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~JobLogs() override { std::filesystem::remove_all(folder_); }

  std::string Put(const std::string& name, std::string_view text) {
    const std::string path = folder_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::app) << text;
    return path;
  }
  std::vector<std::string> Paths(const RunRecord& record, const LogChoice& choice = {}) {
    std::vector<std::string> paths;
    for (const LogSource& source : LogSources(folder_, record, choice)) {
      paths.push_back(source.path.substr(folder_.size() + 6) + "|" + source.prefix + "|" + source.mark);
    }
    return paths;
  }

  std::string folder_;
};

TEST_F(JobLogs, AreInTheOrderOfTheRecord) {
  for (const char* name : {"b-0/logs/wait.log", "b-0/logs/node.log", "b-0/logs/node.1.log", "b-0/logs/node.10.log",
                           "b-0/logs/node.2.log", "b-0/logs/notes.txt", "a-1/logs/node.log", "z/logs/x.log"}) {
    Put(fmt::format("pods/{}", name), "x\n");
  }
  RunRecord record;
  record.pods = {{.name = "b-0", .host = "b", .node_rank = 0, .containers = {"wait", "node"}},
                 {.name = "a-1", .host = "a", .node_rank = 1, .containers = {"node"}, .marks_ranks = true},
                 {.name = "b-0", .host = "b", .node_rank = 0, .containers = {"wait", "node"}},
                 {.name = "gone", .host = "c", .node_rank = 2}};
  EXPECT_THAT(Paths(record),
              ElementsAre("b-0/logs/wait.log|[b] |", "b-0/logs/node.log|[b] |", "b-0/logs/node.1.log|[b] |",
                          "b-0/logs/node.2.log|[b] |", "b-0/logs/node.10.log|[b] |", "a-1/logs/node.log|[a] |",
                          "z/logs/x.log|[z] |"));
  EXPECT_THAT(Paths(record, {.node = 1}), ElementsAre("a-1/logs/node.log|[a] |"));
  EXPECT_THAT(Paths(record, {.rank = 3}), ElementsAre("a-1/logs/node.log|[a] |[rank3]:"));
  EXPECT_EQ(Paths(record, {.rank = 0}).size(), 6);
  EXPECT_THAT(Paths(record, {.rank = 0, .node = 2}), IsEmpty());
}

TEST_F(JobLogs, NamesOfFiles) {
  EXPECT_EQ(ReadLogName("node.log"), (LogName{"node", 0}));
  EXPECT_EQ(ReadLogName("node.3.log"), (LogName{"node", 3}));
  for (const char* name : {"node", "node.txt", "node.x.log", "node.-1.log", "node.0.log"}) {
    EXPECT_EQ(ReadLogName(name), std::nullopt) << name;
  }
  EXPECT_EQ(NextLog(folder_, "node"), folder_ + "/node.log");
  Put("node.log", "");
  Put("node.1.log", "");
  EXPECT_EQ(NextLog(folder_, "node"), folder_ + "/node.2.log");
}

TEST_F(JobLogs, WholeLinesAsTheyCome) {
  LogReader reader;
  const LogSource source{.path = Put("log", "one\ntw"), .prefix = "[a] "};
  EXPECT_EQ(reader.Read(source, false), "[a] one\n");
  EXPECT_EQ(reader.Read(source, false), "");
  Put("log", "o\n\nthree");
  EXPECT_EQ(reader.Read(source, false), "[a] two\n[a] \n");
  EXPECT_EQ(reader.Read(source, true), "[a] three\n");
  EXPECT_EQ(reader.Read(source, true), "");
  std::ofstream(source.path) << "new\n";
  EXPECT_EQ(reader.Read(source, false), "[a] new\n");
  EXPECT_EQ(reader.Read({.path = folder_ + "/none"}, true), "");
  EXPECT_EQ(reader.Read({.path = folder_}, true), "");
}

TEST_F(JobLogs, LinesOfOneRankAreChosen) {
  LogReader reader;
  const std::string path = Put("log", "[rank1]:one\n[rank10]:ten\nplain\n[rank1]: two\n");
  EXPECT_EQ(reader.Read({.path = path, .prefix = "[a] ", .mark = RankMark(1)}, true), "[a] one\n[a]  two\n");
}

TEST_F(JobLogs, ALineWithoutAnEnd) {
  LogReader reader;
  const LogSource source{.path = Put("log", std::string(3 * kMostAtOnce, 'x'))};
  const std::string first = reader.Read(source, false);
  EXPECT_EQ(first.size(), 2 * kMostAtOnce + 1);
  EXPECT_EQ(first.back(), '\n');
  EXPECT_EQ(reader.Read(source, true).size(), kMostAtOnce + 1);
}

TEST(RankMarks, WhereTheJobDoesNotSayItself) {
  const struct {
    std::vector<std::string> environment;
    bool marks;
  } rows[] = {
      {{}, false},
      {{"PET_NPROC_PER_NODE=1"}, false},
      {{"PET_NPROC_PER_NODE=2"}, true},
      {{"PET_NPROC_PER_NODE=auto", "PET_LOG_DIR=/logs"}, true},
      {{"PET_NPROC_PER_NODE=2", "PET_TEE=1"}, false},
      {{"PET_NPROC_PER_NODE=2", "PET_REDIRECTS=3"}, false},
      {{"PET_NPROC_PER_NODE=2", "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=x"}, false},
  };
  for (const auto& row : rows) {
    auto environment = row.environment;
    EXPECT_EQ(MarkRanks(&environment), row.marks);
    EXPECT_EQ(environment == row.environment, !row.marks);
  }
}

TEST(RankMarks, ThreadsAreLimitedWhereTorchrunWould) {
  const struct {
    std::vector<std::string> given;
    bool set;
  } rows[] = {
      {{"PET_NPROC_PER_NODE=2"}, true},
      {{"PET_NPROC_PER_NODE=1"}, false},
      {{"PET_NPROC_PER_NODE=auto"}, false},
      {{}, false},
      {{"OMP_NUM_THREADS=3", "PET_NPROC_PER_NODE=2"}, false},
  };
  for (const auto& row : rows) {
    std::vector<std::string> environment = row.given;
    LimitThreads(&environment);
    const auto found = std::find(environment.begin(), environment.end(), "OMP_NUM_THREADS=1");
    EXPECT_EQ(found != environment.end(), row.set);
  }
}

}  // namespace
}  // namespace muster::local
