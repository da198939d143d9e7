// SPDX-License-Identifier: Apache-2.0
// One loop, one reaper, one console on pipes or files of the test, and functions that wait for events.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "launcher/reaper.h"
#include "launcher/worker_group.h"

namespace muster::launcher {

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A child of the test, killed at the end of its scope, even if an ASSERT ends it.
struct Killed {
  pid_t pid;
  ~Killed() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
};

class Harness : public testing::Test {
 protected:
  Harness() {
    char name[] = "/tmp/muster-launcher-XXXXXX";
    folder_ = mkdtemp(name);
    out_ = open(Path("console.out").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    err_ = open(Path("console.err").c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    reaper_ = std::make_unique<Reaper>(loop_);
    UseConsole({.out = out_, .err = err_});
  }
  ~Harness() override {
    group_.reset();
    console_.reset();
    reaper_.reset();
    close(out_);
    close(err_);
    std::error_code ignored;  // a worker that survived a failed test may still write there
    std::filesystem::remove_all(folder_, ignored);
  }

  void UseConsole(const ConsoleOptions& options) { console_ = std::make_unique<Console>(loop_, options); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  // A FIFO at which a worker waits until a line is written.
  void MakeFifo(const std::string& name) const { ASSERT_EQ(mkfifo(Path(name).c_str(), 0600), 0); }
  std::string ConsoleOut() const { return ReadFile(Path("console.out")); }
  std::string ConsoleErr() const { return ReadFile(Path("console.err")); }

  // A worker whose streams go to the files out.N and err.N.
  WorkerSpec Spec(std::vector<std::string> argv, int local_rank = 0) const {
    WorkerSpec spec;
    spec.local_rank = local_rank;
    spec.argv = std::move(argv);
    spec.environment = {"PATH=/usr/bin:/bin", fmt::format("MARK={}", folder_)};
    spec.output.out = {.file = Path(fmt::format("out.{}", local_rank)), .console = false};
    spec.output.err = {.file = Path(fmt::format("err.{}", local_rank)), .console = false};
    return spec;
  }
  WorkerSpec Shell(const std::string& script, int local_rank = 0) const {
    return Spec({"sh", "-c", script}, local_rank);
  }
  WorkerSpec Probe(std::vector<std::string> arguments, int local_rank = 0) const {
    arguments.insert(arguments.begin(), LAUNCHER_PROBE);
    return Spec(std::move(arguments), local_rank);
  }
  std::string Out(int local_rank = 0) const { return ReadFile(Path(fmt::format("out.{}", local_rank))); }
  std::string Err(int local_rank = 0) const { return ReadFile(Path(fmt::format("err.{}", local_rank))); }

  Status Start(const std::vector<WorkerSpec>& specs) {
    exits_.clear();
    gone_ = 0;
    first_outputs_.clear();
    WorkerGroupEvents events;
    events.first_output = [this](Duration after, Console::Stream stream) {
      first_outputs_.emplace_back(after, stream);
    };
    events.worker_exited = [this](const ExitRecord& record) {
      exits_.push_back(record);
      if (on_exit_) on_exit_(record);
    };
    events.all_gone = [this] { ++gone_; };
    group_ = std::make_unique<WorkerGroup>(loop_, *reaper_, *console_, std::move(events));
    return group_->Start(specs);
  }

  // Runs the loop until `done`; false after a minute.
  bool Until(const std::function<bool()>& done) {
    const TimePoint deadline = MonotonicClock::now() + std::chrono::minutes(1);
    while (!done()) {
      if (MonotonicClock::now() > deadline) return false;
      loop_.restart();
      loop_.run_one_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  bool UntilGone() {
    return Until([this] { return gone_ > 0; });
  }
  bool UntilFile(const std::string& path) {
    return Until([&] { return std::filesystem::exists(path) && std::filesystem::file_size(path) > 0; });
  }
  // Starts a worker, waits until all are gone, and returns the worker's record.
  ExitRecord RunOne(const WorkerSpec& spec) {
    Status status = Start({spec});
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(UntilGone());
    EXPECT_EQ(group_->records().size(), 1u);
    return group_->records().empty() ? ExitRecord{} : group_->records().front();
  }

  static bool Exists(pid_t pid) { return kill(pid, 0) == 0; }
  static size_t OpenDescriptors() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

  std::string folder_;
  int out_ = -1;
  int err_ = -1;
  boost::asio::io_context loop_;
  std::unique_ptr<Reaper> reaper_;
  std::unique_ptr<Console> console_;
  std::unique_ptr<WorkerGroup> group_;
  std::vector<ExitRecord> exits_;
  std::vector<std::pair<Duration, Console::Stream>> first_outputs_;
  std::function<void(const ExitRecord&)> on_exit_;
  int gone_ = 0;
};

}  // namespace muster::launcher
