// SPDX-License-Identifier: Apache-2.0
// Command lines of workers, the choice of python and of the real torchrun, hand-over, NUMA binding.
#include "agent/workers/torch_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/flags/handover.h"
#include "agent/workers/numa_binding.h"
#include "agent/workers/text_template.h"
#include "base/text.h"
#include "tests/base/fake_machine.h"

namespace muster::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

CommandSurroundings Around(const FakeMachine& machine) {
  CommandSurroundings around{machine.fs(), machine.environment(), "/opt/muster/muster", {0, 1, 2, 3, 4, 5, 6, 7}};
  return around;
}
FakeMachine& WithPython(FakeMachine& machine) {
  return machine.Set("PATH", "/opt/muster:/venv/bin:/usr/bin")
      .Program("/opt/muster/muster")
      .Program("/usr/bin/python3");
}

TEST(SafeSubstitute, AsPythonsTemplate) {
  struct {
    std::string text, expected;
  } const rows[] = {{"a", "a"},
                    {"${local_rank}", "3"},
                    {"$local_rank", "3"},
                    {"$local_rank_x", "$local_rank_x"},
                    {"$$local_rank", "$local_rank"},
                    {"$$", "$"},
                    {"$", "$"},
                    {"${local_rank", "${local_rank"},
                    {"${}", "${}"},
                    {"$1", "$1"},
                    {"${other}", "${other}"},
                    {"x${local_rank}y$local_rank.z", "x3y3.z"},
                    {"$LOCAL_RANK", "$LOCAL_RANK"},
                    {"${ local_rank}", "${ local_rank}"},
                    {"$$$local_rank", "$3"}};
  for (const auto& row : rows) EXPECT_EQ(SafeSubstitute(row.text, {{"local_rank", "3"}}), row.expected) << row.text;
}

TEST(WorkerCommand, EveryForm) {
  FakeMachine machine;
  WithPython(machine);
  struct Form {
    bool module = false, no_python = false, run_path = false, local_rank = false;
    std::vector<std::string> expected;
  };
  const std::string code =
      "import runpy, sys\n"
      "del sys.argv[0]\n"
      "def run_script_path(): runpy.run_path(sys.argv[0], run_name='__main__')\n"
      "try: from torch.distributed.elastic.multiprocessing.errors import record\n"
      "except ImportError: record = lambda run: run\n"
      "record(run_script_path)()";
  const std::string python = "/usr/bin/python3";
  const std::vector<Form> forms = {
      {.expected = {python, "-u", "s", "--rank=1", "$x", "$"}},
      {.module = true, .expected = {python, "-u", "-m", "s", "--rank=1", "$x", "$"}},
      {.no_python = true, .expected = {"s", "--rank=1", "$x", "$"}},
      {.run_path = true, .expected = {python, "-u", "-c", code, "s", "--rank=1", "$x", "$"}},
      {.no_python = true, .run_path = true, .expected = {python, "-u", "-c", code, "s", "--rank=1", "$x", "$"}},
      {.local_rank = true, .expected = {python, "-u", "s", "--local-rank=1", "--rank=1", "$x", "$"}},
      {.module = true,
       .local_rank = true,
       .expected = {python, "-u", "-m", "s", "--local-rank=1", "--rank=1", "$x", "$"}},
  };
  for (const Form& form : forms) {
    RunOptions options;
    options.command.script = "s";
    options.command.script_args = {"--rank=${local_rank}", "$x", "$$"};
    options.command.module = form.module;
    options.command.no_python = form.no_python;
    options.command.run_path = form.run_path;
    options.command.local_rank_argument = form.local_rank;
    auto command = WorkerCommand(options, 1, Around(machine));
    ASSERT_TRUE(command.ok()) << command.status();
    EXPECT_EQ(*command, form.expected);
  }
}

TEST(FindPython, TakesTheFirstInItsOrder) {
  FakeMachine machine;
  machine.Set("PATH", "/opt/muster:/venv/bin:/usr/bin")
      .Program("/opt/muster/muster")
      .Link("/opt/muster/torchrun", "/opt/muster/muster");
  auto python = [&] { return FindPython(Around(machine)).value_or("none"); };
  Status none = FindPython(Around(machine)).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(none), HasSubstr("PYTHON_EXEC"));
  machine.Program("/usr/bin/python");
  EXPECT_EQ(python(), "/usr/bin/python");
  machine.Program("/usr/bin/python3");
  EXPECT_EQ(python(), "/usr/bin/python3");
  machine.Program("/usr/bin/torchrun", "#!/opt/conda/bin/python3.11\nimport re\n");
  EXPECT_EQ(python(), "/usr/bin/python3") << "that interpreter is not there";
  machine.Program("/opt/conda/bin/python3.11");
  EXPECT_EQ(python(), "/opt/conda/bin/python3.11");
  machine.Program("/venv/bin/python3").Program("/venv/bin/torchrun", "#! /venv/bin/python3 -sE\n");
  EXPECT_EQ(python(), "/venv/bin/python3");
  machine.Set("PYTHON_EXEC", "mypython");
  EXPECT_EQ(python(), "mypython");
}

TEST(FindPython, OfTheLauncherThatWasNamed) {
  FakeMachine machine;
  WithPython(machine).Program("/venv/bin/python").Program("/usr/bin/python3.12").Program("/conda/bin/python3");
  machine.Program("/conda/bin/torchrun", "#!/conda/bin/python3\n").Link("/opt/muster/torchrun", "/opt/muster/muster");
  struct {
    std::string launcher, expected;
  } const rows[] = {{"/venv/bin/python", "/venv/bin/python"},      {"python3.12", "/usr/bin/python3.12"},
                    {"/conda/bin/torchrun", "/conda/bin/python3"}, {"/opt/muster/torchrun", "/usr/bin/python3"},
                    {"/gone/bin/torchrun", "/usr/bin/python3"},    {"/gone/bin/python", "none"}};
  for (const auto& row : rows) {
    EXPECT_EQ(FindPython(Around(machine), row.launcher).value_or("none"), row.expected) << row.launcher;
  }
}

TEST(FindPython, HeadsOfScripts) {
  struct {
    std::string head, expected;
  } const rows[] = {{"#!/usr/bin/env python3\n", "/usr/bin/python3"},
                    {"#!/usr/bin/env -S python3 -u\n", "/usr/bin/python3"},
                    {"#!/bin/sh\n'''exec' \"/long/python3\" \"$0\" \"$@\"\n' '''\n", "/long/python3"},
                    {"#!/bin/sh\nexec muster run \"$@\"\n", "/usr/bin/python3"},
                    {"#!/bin/bash\n", "/usr/bin/python3"},
                    {"\x7f"
                     "ELF",
                     "/usr/bin/python3"},
                    {"", "/usr/bin/python3"},
                    {"#!", "/usr/bin/python3"}};
  for (const auto& row : rows) {
    FakeMachine machine;
    WithPython(machine).Program("/long/python3").Program("/bin/bash").Program("/bin/sh");
    machine.Program("/usr/bin/torchrun", row.head);
    EXPECT_EQ(FindPython(Around(machine)).value_or("none"), row.expected) << row.head;
  }
}

TEST(FindRealTorchrun, SkipsThisBinaryAndItsLinks) {
  FakeMachine machine;
  WithPython(machine)
      .Link("/opt/muster/torchrun", "/opt/muster/muster")
      .Link("/venv/bin/torchrun", "/opt/muster/torchrun");
  EXPECT_EQ(FindRealTorchrun(Around(machine)), "");
  machine.File("/usr/bin/torchrun", "not executable");
  EXPECT_EQ(FindRealTorchrun(Around(machine)), "");
  machine.Set("PATH", "/opt/muster:/venv/bin:/usr/bin:/usr/local/bin").Program("/usr/local/bin/torchrun");
  EXPECT_EQ(FindRealTorchrun(Around(machine)), "/usr/local/bin/torchrun");
}

TEST(HandOverCommand, StartsTheRealTorchrunAndNeverItself) {
  FakeMachine machine;
  WithPython(machine);
  std::vector<std::string> arguments = {"--rdzv-backend=etcd", "x.py"};
  Status missing = HandOverCommand(arguments, "because", false, Around(machine)).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(missing), StartsWith("because, and there is no other torchrun on PATH"));
  machine.Program("/usr/bin/torchrun");
  EXPECT_THAT(*HandOverCommand(arguments, "because", false, Around(machine)),
              ElementsAre("/usr/bin/torchrun", "--rdzv-backend=etcd", "x.py"));
  EXPECT_THAT(*HandOverCommand(arguments, "because", true, Around(machine)),
              ElementsAre("/usr/bin/python3", "-m", "torch.distributed.launch", "--rdzv-backend=etcd", "x.py"));
  machine.Set(std::string(kHandedOver), "1");
  EXPECT_THAT(Message(HandOverCommand(arguments, "because", false, Around(machine)).status()), HasSubstr("leads back"));
}

// Two sockets, each one NUMA node of two cores with two threads; node 0 has CPUs 0,1 and their threads 4,5.
FakeMachine& TwoSockets(FakeMachine& machine) {
  machine.File("/sys/devices/system/node/node0/cpulist", "0-1,4-5\n")
      .File("/sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
  machine.File("/sys/devices/system/node/has_cpu", "0-1");
  for (int cpu = 0; cpu < 8; ++cpu) {
    std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}", cpu);
    machine.File(folder + "/topology/physical_package_id", cpu % 4 < 2 ? "0" : "1");
    machine.File(folder + "/topology/thread_siblings_list", fmt::format("{},{}", cpu % 4, cpu % 4 + 4));
    machine.File(folder + "/cache/index0/level", "1")
        .File(folder + "/cache/index0/shared_cpu_list", fmt::format("{}", cpu));
    machine.File(folder + "/cache/index3/level", "3");
    machine.File(folder + "/cache/index3/shared_cpu_list", fmt::format("{},{}", cpu % 4, cpu % 4 + 4));
  }
  return machine;
}
void AddGpu(FakeMachine& machine, const std::string& address, const std::string& uuid, int node) {
  machine.File("/proc/driver/nvidia/gpus/" + address + "/information", "Model: X\nGPU UUID: \t " + uuid + "\n");
  machine.File("/sys/bus/pci/devices/" + address + "/numa_node", std::to_string(node));
}

std::string Bound(const FakeMachine& machine, std::string_view mode, int local_rank, int nproc,
                  const std::optional<std::string>& visible = std::nullopt,
                  const std::vector<int>& usable = {0, 1, 2, 3, 4, 5, 6, 7}) {
  auto cpus = NumaCpus(mode, local_rank, nproc, usable, visible, machine.fs());
  return cpus.ok() ? FormatCpuList(*cpus) : std::string(Message(cpus.status()));
}

TEST(NumaBinding, WithoutGpusInBlocks) {
  FakeMachine machine;
  TwoSockets(machine);
  EXPECT_EQ(Bound(machine, "node", 0, 4), "0-1,4-5");
  EXPECT_EQ(Bound(machine, "node", 1, 4), "0-1,4-5");
  EXPECT_EQ(Bound(machine, "node", 2, 4), "2-3,6-7");
  EXPECT_EQ(Bound(machine, "socket", 3, 4), "2-3,6-7");
  EXPECT_EQ(Bound(machine, "exclusive", 0, 4), "0,4");
  EXPECT_EQ(Bound(machine, "exclusive", 1, 4), "1,5");
  EXPECT_EQ(Bound(machine, "exclusive", 2, 4), "2,6");
  EXPECT_EQ(Bound(machine, "core-complex", 0, 4), "0,4");
  EXPECT_EQ(Bound(machine, "core-complex", 1, 4), "1,5");
  EXPECT_EQ(Bound(machine, "core-complex", 2, 8), "0,4");  // the third worker gets the first of two caches again
  EXPECT_THAT(Bound(machine, "exclusive", 2, 8), HasSubstr("fewer usable cores than workers (4)"));
  EXPECT_THAT(Bound(machine, "near", 0, 1), HasSubstr("choose one of"));
}

TEST(NumaBinding, ByGpu) {
  FakeMachine machine;
  TwoSockets(machine);
  AddGpu(machine, "0000:01:00.0", "GPU-aaaa", 1);
  AddGpu(machine, "0000:81:00.0", "GPU-bbbb", 0);
  EXPECT_EQ(Bound(machine, "node", 0, 2), "2-3,6-7");
  EXPECT_EQ(Bound(machine, "node", 1, 2), "0-1,4-5");
  EXPECT_EQ(Bound(machine, "node", 0, 2, "1,0"), "0-1,4-5");
  EXPECT_EQ(Bound(machine, "node", 0, 1, "GPU-bbbb"), "0-1,4-5");
  EXPECT_EQ(Bound(machine, "exclusive", 0, 2), "2-3,6-7");
}

TEST(NumaBinding, OnlyUsableCpus) {
  FakeMachine machine;
  TwoSockets(machine);
  EXPECT_EQ(Bound(machine, "node", 0, 1, std::nullopt, {1, 2}), "1");
  EXPECT_EQ(Bound(machine, "exclusive", 0, 1, std::nullopt, {5}), "5");
  AddGpu(machine, "0000:01:00.0", "GPU-aaaa", 1);
  EXPECT_THAT(Bound(machine, "node", 0, 1, std::nullopt, {0}), HasSubstr("NUMA node 1 has no CPU"));
  EXPECT_THAT(Bound(FakeMachine(), "node", 0, 1), HasSubstr("names no NUMA node"));
}

TEST(NumaBinding, OneNodeWithoutTopologyFiles) {
  FakeMachine machine;
  machine.File("/sys/devices/system/node/node0/cpulist", "0-1");
  for (const char* mode : {"node", "socket"}) EXPECT_EQ(Bound(machine, mode, 1, 2), "0-1") << mode;
  for (const char* mode : {"exclusive", "core-complex"}) EXPECT_EQ(Bound(machine, mode, 1, 2), "1") << mode;
}

TEST(NumaBinding, PutsNumactlInFront) {
  FakeMachine machine;
  TwoSockets(WithPython(machine));
  RunOptions options;
  options.command.script = "/bin/true";
  options.command.no_python = true;
  options.workers.nproc = 2;
  options.command.numa_binding = "node";
  Status missing = WorkerCommand(options, 1, Around(machine)).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(missing), HasSubstr("install the package numactl"));
  machine.Program("/usr/bin/numactl");
  EXPECT_THAT(*WorkerCommand(options, 1, Around(machine)),
              ElementsAre("/usr/bin/numactl", "--physcpubind=2-3,6-7", "/bin/true"));
}

}  // namespace
}  // namespace muster::agent
