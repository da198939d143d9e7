// SPDX-License-Identifier: Apache-2.0
// The time to start eight workers, and the time from the kill of one of eight to the start of the next eight.
#include <benchmark/benchmark.h>
#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <fstream>

#include "launcher/reaper.h"
#include "launcher/worker_group.h"

namespace muster::launcher {
namespace {

constexpr int kWorkers = 8;

std::vector<WorkerSpec> Specs(bool piped) {
  std::vector<WorkerSpec> specs(kWorkers);
  for (int i = 0; i < kWorkers; ++i) {
    specs[i].local_rank = i;
    specs[i].argv = {"sleep", "1000"};
    specs[i].environment = {"PATH=/usr/bin:/bin", "MUSTER_BENCH=1"};
    specs[i].output.err.keep_tail = piped;
  }
  return specs;
}

struct Launcher {
  boost::asio::io_context loop;
  Reaper reaper{loop};
  Console console{loop};
  std::unique_ptr<WorkerGroup> group;
  bool gone = false;

  void Start(const std::vector<WorkerSpec>& specs) {
    gone = false;
    WorkerGroupEvents events;
    events.worker_exited = [this](const ExitRecord&) { group->Stop(SIGTERM, std::chrono::seconds(30)); };
    events.all_gone = [this] { gone = true; };
    group = std::make_unique<WorkerGroup>(loop, reaper, console, std::move(events));
    if (!group->Start(specs).ok()) abort();
  }
  void UntilGone() {
    while (!gone) loop.run_one();
  }
};

// Makes this process as large as the agent, so that a copy of its page tables would show in the figures.
std::vector<char> Ballast() { return std::vector<char>(13 << 20, 1); }

void StartEight(benchmark::State& state) {
  auto ballast = Ballast();
  benchmark::DoNotOptimize(ballast.data());
  Launcher launcher;
  const auto specs = Specs(state.range(0) != 0);
  for (auto _ : state) {
    launcher.Start(specs);
    state.PauseTiming();
    launcher.group->Stop(SIGKILL, Duration(0));
    launcher.UntilGone();
    state.ResumeTiming();
  }
}
BENCHMARK(StartEight)->ArgName("piped")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

void KilledToRestarted(benchmark::State& state) {
  auto ballast = Ballast();
  benchmark::DoNotOptimize(ballast.data());
  Launcher launcher;
  const auto specs = Specs(state.range(0) != 0);
  launcher.Start(specs);
  for (auto _ : state) {
    kill(static_cast<pid_t>(launcher.group->pids()[3]), SIGKILL);
    launcher.UntilGone();
    launcher.Start(specs);
  }
  launcher.group->Stop(SIGKILL, Duration(0));
  launcher.UntilGone();
}
BENCHMARK(KilledToRestarted)->ArgName("piped")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace muster::launcher
