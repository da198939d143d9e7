// SPDX-License-Identifier: Apache-2.0
#include "base/host_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/fake_machine.h"

namespace muster {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HostFacts Facts(const FakeMachine& machine, int cpus = 4) {
  return ReadHostFacts(machine.fs(), machine.environment(), cpus);
}

TEST(FreeMemory, IsTheLeastThatAnyLimitLeaves) {
  FakeMachine machine;
  EXPECT_EQ(FreeMemory(machine.fs()), std::nullopt);
  machine.File("/proc/meminfo", "MemTotal: 16384 kB\nMemAvailable:    9000 kB\n");
  EXPECT_EQ(FreeMemory(machine.fs()), 9000 * 1024);
  machine.File("/proc/self/cgroup", "0::/pods/one\n")
      .File("/sys/fs/cgroup/pods/one/memory.max", "max\n")
      .File("/sys/fs/cgroup/pods/one/memory.current", "500000\n")
      .File("/sys/fs/cgroup/pods/memory.max", "1000000\n")
      .File("/sys/fs/cgroup/pods/memory.current", "800000\n")
      .File("/sys/fs/cgroup/pods/memory.stat", "anon 1\ninactive_file 50000\nactive_file 7\n");
  EXPECT_EQ(FreeMemory(machine.fs()), 250000);
  machine.File("/sys/fs/cgroup/pods/memory.current", "1800000\n");
  EXPECT_EQ(FreeMemory(machine.fs()), 0);
}

TEST(PrivateMemory, IsTheSumOfCleanAndDirtyPages) {
  FakeMachine machine;
  machine.File("/proc/7/smaps_rollup",
               "5555-7fff ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPrivate_Clean: 8 kB\nPrivate_Dirty: 100 kB\n");
  EXPECT_EQ(PrivateMemory(7, machine.fs()), 108 * 1024);
  EXPECT_EQ(PrivateMemory(8, machine.fs()), std::nullopt);
}

TEST(CpuList, ReadsAndWrites) {
  EXPECT_THAT(ParseCpuList("0-3,8,10-11\n"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(ParseCpuList(""), IsEmpty());
  EXPECT_THAT(ParseCpuList("x,2,9-1,-3,99999999"), ElementsAre(2));
  EXPECT_EQ(FormatCpuList({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(FormatCpuList({}), "");
}

TEST(HostFacts, AnEmptyMachine) {
  FakeMachine machine;
  HostFacts facts = Facts(machine);
  EXPECT_EQ(facts.cpus, 4);
  EXPECT_EQ(facts.cpu_quota, std::nullopt);
  EXPECT_EQ(facts.memory_limit, std::nullopt);
  EXPECT_EQ(facts.gpus(), 0);
  EXPECT_EQ(facts.xpu.count, 0);
}

TEST(HostFacts, CgroupV2TakesTheSmallestOnTheWayUp) {
  FakeMachine machine;
  machine.File("/proc/self/cgroup", "0::/pods/one\n")
      .File("/sys/fs/cgroup/pods/one/cpu.max", "max 100000\n")
      .File("/sys/fs/cgroup/pods/cpu.max", "150000 100000\n")
      .File("/sys/fs/cgroup/pods/one/memory.max", "1073741824\n")
      .File("/sys/fs/cgroup/pods/memory.max", "2147483648\n")
      .File("/proc/meminfo", "MemFree: 1 kB\nMemTotal:       16384 kB\n");
  EXPECT_EQ(Facts(machine).cpu_quota, 1.5);
  EXPECT_EQ(Facts(machine).memory_limit, 1073741824);
  EXPECT_EQ(Facts(machine).memory_total, 16384 * 1024);
}

TEST(HostFacts, CgroupV2IsReadAtTheRootInAContainer) {  // the path is the host's: only the mount point exists here
  FakeMachine machine;
  machine.File("/proc/self/cgroup", "0::/kubepods/pod1/c1\n").File("/sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(Facts(machine).cpu_quota, 2.0);
}

TEST(HostFacts, LimitsOfCgroupV1AreRead) {
  FakeMachine machine;
  machine.File("/proc/self/cgroup", "4:memory:/m\n3:cpuset,cpu,cpuacct:/job\n")
      .File("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000")
      .File("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000")
      .File("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1")
      .File("/sys/fs/cgroup/memory/m/memory.limit_in_bytes", "9223372036854771712")
      .File("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096");
  EXPECT_EQ(Facts(machine).cpu_quota, 0.5);
  EXPECT_EQ(Facts(machine).memory_limit, 4096);
}

TEST(HostFacts, AContainerHasWholeCpus) {
  const struct {
    int cpus;
    std::optional<double> quota;
    int has;
  } rows[] = {{4, std::nullopt, 4}, {4, 1.5, 2}, {4, 2, 2}, {4, 0.1, 1}, {4, 0, 1}, {4, 64, 4}, {1, 1e18, 1}};
  for (const auto& row : rows) {
    HostFacts facts;
    facts.cpus = row.cpus;
    facts.cpu_quota = row.quota;
    EXPECT_EQ(ContainerCpus(facts), row.has) << row.cpus << " " << row.quota.value_or(-1);
  }
}

TEST(HostFacts, GarbageIsNoLimit) {
  FakeMachine machine;
  machine.File("/proc/self/cgroup", "nonsense\n::\n0::\n")
      .File("/sys/fs/cgroup/cpu.max", "lots 0")
      .File("/sys/fs/cgroup/memory.max", "-7");
  EXPECT_EQ(Facts(machine).cpu_quota, std::nullopt);
  EXPECT_EQ(Facts(machine).memory_limit, std::nullopt);
}

TEST(HostFacts, NvidiaDeviceFilesAreCounted) {
  FakeMachine machine;
  for (const char* name : {"nvidia0", "nvidia1", "nvidia10", "nvidiactl", "nvidia-uvm", "nvidia", "nvidia1x"}) {
    machine.File(std::string("/dev/") + name);
  }
  EXPECT_EQ(Facts(machine).gpus(), 3);
  for (const char* none : {"void", "none"}) {
    machine.Set("NVIDIA_VISIBLE_DEVICES", none);
    EXPECT_EQ(Facts(machine).gpus(), 0) << none;
  }
  machine.Set("NVIDIA_VISIBLE_DEVICES", "all");
  EXPECT_EQ(Facts(machine).gpus(), 3);
  machine.Set("CUDA_VISIBLE_DEVICES", "2");
  EXPECT_EQ(Facts(machine).gpus(), 1);
  EXPECT_THAT(Facts(machine).nvidia.looked_at, HasSubstr("CUDA_VISIBLE_DEVICES=2 leaves 1"));
}

TEST(HostFacts, VisibleCudaDevices) {
  struct {
    std::optional<std::string> text;
    int present, expected;
  } const rows[] = {{std::nullopt, 4, 4},
                    {"", 4, 0},
                    {"-1", 4, 0},
                    {"0", 4, 1},
                    {"0,1,3", 4, 3},
                    {" 0 , 1 ", 4, 2},
                    {"0,-1,1", 4, 1},
                    {"0,4,1", 4, 1},
                    {"0,x,1", 4, 1},
                    {"1gpu2,2ampere", 4, 2},
                    {"0,0", 4, 0},
                    {"2,1,0", 2, 0},
                    {"GPU-a,GPU-b", 4, 2},
                    {"GPU-a,1", 4, 1},
                    {"GPU-a,GPU-a", 4, 0},
                    {"GPU-a,GPU-b", 1, 1},
                    {"MIG-a", 1, 1},
                    {"MIG-a,MIG-b", 1, 1},
                    {"MIG-a", 0, 0},
                    {"NoDevFiles", 4, 0},
                    {"99999999999999999999", 4, 0}};
  for (const auto& row : rows) {
    EXPECT_EQ(VisibleCudaDevices(row.text, row.present), row.expected) << row.text.value_or("(unset)");
  }
}

TEST(HostFacts, AmdGpusAreCountedWhereKfdIsThere) {
  FakeMachine machine;
  for (const char* name : {"renderD128", "renderD129", "renderD130"}) {
    machine.File(std::string("/dev/dri/") + name)
        .File(std::string("/sys/class/drm/") + name + "/device/vendor",
              name == std::string("renderD130") ? "0x8086" : "0x1002\n");
  }
  EXPECT_EQ(Facts(machine).gpus(), 0);  // no /dev/kfd: graphics only
  machine.File("/dev/kfd");
  EXPECT_EQ(Facts(machine).gpus(), 2);
  machine.Set("HIP_VISIBLE_DEVICES", "1");
  EXPECT_EQ(Facts(machine).gpus(), 1);
  machine.Set("ROCR_VISIBLE_DEVICES", "0");  // one device is left, and its number becomes 0
  EXPECT_EQ(Facts(machine).gpus(), 0);
  machine.Set("HIP_VISIBLE_DEVICES", "0");
  EXPECT_EQ(Facts(machine).gpus(), 1);
}

TEST(HostFacts, XpusAreCountedByRenderNodesAndAffinityMask) {
  FakeMachine machine;
  for (const char* name : {"renderD128", "renderD129"}) {
    machine.File(std::string("/dev/dri/") + name)
        .File(std::string("/sys/class/drm/") + name + "/device/vendor", "0x8086\n");
  }
  EXPECT_EQ(Facts(machine).xpu.count, 2);
  EXPECT_FALSE(Facts(machine).xpu_asked_for);
  machine.Set("ZE_AFFINITY_MASK", "0.0,0.1,1,7");
  EXPECT_EQ(Facts(machine).xpu.count, 3);
  EXPECT_TRUE(Facts(machine).xpu_asked_for);
}

HostFacts With(int cpus, int gpus, int xpus = 0, bool asked = false) {
  HostFacts facts;
  facts.cpus = cpus;
  facts.nvidia = {gpus, "what was looked at"};
  facts.xpu = {xpus, "the Intel search"};
  facts.xpu_asked_for = asked;
  return facts;
}

TEST(ResolveNproc, WordsGiveTheNumberOfDevices) {
  struct {
    std::string text;
    HostFacts facts;
    int expected;
  } const rows[] = {{"1", With(4, 0), 1},      {" 7 ", With(4, 0), 7},           {"cpu", With(4, 2), 4},
                    {"gpu", With(4, 2), 2},    {"auto", With(4, 2), 2},          {"auto", With(4, 0), 4},
                    {"xpu", With(4, 0, 3), 3}, {"auto", With(4, 0, 3, true), 3}, {"auto", With(4, 0, 3), 4}};
  for (const auto& row : rows) {
    auto workers = ResolveNproc(row.text, row.facts);
    ASSERT_TRUE(workers.ok()) << row.text << workers.status();
    EXPECT_EQ(workers->count, row.expected) << row.text;
    EXPECT_EQ(workers->warning, "") << row.text;
  }
}

TEST(ResolveNproc, ErrorsNameWhatWasLookedAt) {
  EXPECT_THAT(Message(ResolveNproc("gpu", With(4, 0)).status()), HasSubstr("what was looked at"));
  EXPECT_THAT(Message(ResolveNproc("xpu", With(4, 2)).status()), HasSubstr("the Intel search"));
  for (const char* bad : {"0", "-1", "gpus", "", "1.5", "100001"}) {
    EXPECT_EQ(ResolveNproc(bad, With(4, 1)).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(ResolveNproc, MessagesNameWhereTheValueCameFrom) {
  for (const char* text : {"gpu", "xpu", "0", "many"}) {
    EXPECT_THAT(Message(ResolveNproc(text, With(4, 0), "PET_NPROC_PER_NODE").status()),
                HasSubstr(fmt::format("PET_NPROC_PER_NODE={}: ", text)));
  }
  EXPECT_THAT(ResolveNproc("3", With(4, 2), "PET_NPROC_PER_NODE")->warning, HasSubstr("PET_NPROC_PER_NODE=3: "));
}

TEST(ResolveNproc, MoreWorkersThanGpusIsAWarning) {
  auto workers = ResolveNproc("3", With(4, 2));
  ASSERT_TRUE(workers.ok());
  EXPECT_THAT(workers->warning, HasSubstr("only 2 GPUs"));
  EXPECT_EQ(ResolveNproc("3", With(1, 0))->warning, "");
}

TEST(HostFacts, ThisMachineHasACpu) {
  EXPECT_THAT(UsableCpus(), testing::Not(IsEmpty()));
  EXPECT_GE(ReadHostFacts().cpus, 1);
  EXPECT_GT(ReadHostFacts().memory_total, 0);
}

}  // namespace
}  // namespace muster
