// SPDX-License-Identifier: Apache-2.0
// Where a container's cgroup is made, and what is written there. A plain folder replaces cgroupfs.
#include "local/container/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_folder.h"
#include "base/text.h"

namespace muster::local {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr ResourceLimits kSome{.milli_cpus = 250, .memory_bytes = 1 << 20};

class PodLimitsTest : public testing::Test {
 protected:
  PodLimitsTest() {
    auto made = MakeTemporaryFolder("limits-test-", TemporaryFolders(std::nullopt));
    if (made.ok()) mount_ = made->path;
  }
  ~PodLimitsTest() override { fs::remove_all(mount_); }

  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(mount_ + path).parent_path());
    std::ofstream(mount_ + path) << text;
  }
  std::string Read(const std::string& path) const {
    std::ifstream file(mount_ + path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Makes a cgroup with the files that the kernel makes.
  void Cgroup(const std::string& path, const std::string& processes, const std::string& given) const {
    Write(path + "/cgroup.controllers", "cpuset cpu io memory pids\n");
    Write(path + "/cgroup.procs", processes);
    Write(path + "/cgroup.subtree_control", given);
    for (const char* file : {"cpu.max", "memory.max", "memory.swap.max", "memory.oom.group"}) {
      Write(fmt::format("{}/{}", path, file), "");
    }
  }
  // Makes the kernel's files of the cgroups for a container `p/c` of the job `j`.
  void Places(const std::string& base) const {
    for (const char* path : {"", "/p", "/p/c"}) Cgroup(fmt::format("{}/muster-local.j{}", base, path), "", "");
  }
  std::string record() const { return mount_ + "/record"; }
  std::unique_ptr<PodLimits> Of(const std::string& own) const {
    return std::make_unique<PodLimits>(mount_, own, record(), "j");
  }

  std::string mount_;
};

TEST_F(PodLimitsTest, CpuIsTimeInAPeriod) {
  EXPECT_EQ(CpuMax(250), "25000 100000");
  EXPECT_EQ(CpuMax(4000), "400000 100000");
  EXPECT_EQ(CpuMax(1), "1000 100000");
}

TEST_F(PodLimitsTest, WithoutLimitsNothingIsAskedOfTheKernel) {
  EXPECT_EQ(Of("")->Make("p", {}, "c", {}).value_or("?"), "");
}

TEST_F(PodLimitsTest, WithoutADelegatedCgroupSaysWhy) {
  const auto why = [this](const std::string& own) {
    return std::string(Message(Of(own)->Make("p", {}, "c", kSome).status()));
  };
  EXPECT_THAT(why("0::/\n"), HasSubstr("is not a cgroup v2 with the controllers cpu and memory"));
  Cgroup("", "1\n", "");
  EXPECT_THAT(why("4:memory:/x\n"), HasSubstr("is not a cgroup v2"));
  Write("/a/cgroup.procs", "1\n2\n");
  Write("/a/cgroup.controllers", "pids");
  fs::remove(mount_ + "/cgroup.subtree_control");
  EXPECT_THAT(why("4:memory:/x\n0::/a\n"), HasSubstr("no cgroup can be created with limits in '/a/' or above it"));
  EXPECT_THAT(why("0::/a\n"), HasSubstr("systemd-run --user --scope -p Delegate=yes"));
}

TEST_F(PodLimitsTest, CreatesCgroupsBesideAnOwnThatIsShared) {
  Cgroup("", "", "");
  Cgroup("/a", "", "cpu memory");
  Cgroup("/a/b", "1\n2\n", "");
  fs::remove(mount_ + "/a/b/cgroup.subtree_control");  // the kernel refuses
  Places("/a");
  auto limits = Of("0::/a/b\n");
  EXPECT_EQ(limits->Make("p", {.memory_bytes = 1 << 21}, "c", kSome).value_or("?"), mount_ + "/a/muster-local.j/p/c");
  EXPECT_EQ(Read("/a/muster-local.j/p/memory.max"), "2097152");
  EXPECT_EQ(Read("/a/muster-local.j/p/cpu.max"), "");
  EXPECT_EQ(Read("/a/muster-local.j/p/c/memory.max"), "1048576");
  EXPECT_EQ(Read("/a/muster-local.j/p/c/memory.swap.max"), "0");
  EXPECT_EQ(Read("/a/muster-local.j/p/c/memory.oom.group"), "1");
  EXPECT_EQ(Read("/a/muster-local.j/p/c/cpu.max"), "25000 100000");
  EXPECT_EQ(Read("/a/muster-local.j/p/cgroup.subtree_control"), "+cpu +memory");
  EXPECT_EQ(Read("/a/cgroup.subtree_control"), "cpu memory");
  EXPECT_EQ(Read("/record"), mount_ + "/a/muster-local.j\n");
}

TEST_F(PodLimitsTest, CreatesCgroupsInItsOwnIfItIsAlone) {
  Cgroup("/a", fmt::format("{}\n", getpid()), "");
  Cgroup("", "", "");
  Cgroup("/a/muster-local-self", "", "");
  Places("/a");
  auto limits = Of("0::/a\n");
  EXPECT_EQ(limits->Make("p", {}, "c", kSome).value_or("?"), mount_ + "/a/muster-local.j/p/c");
  EXPECT_EQ(Read("/a/muster-local-self/cgroup.procs"), "0");
  EXPECT_EQ(Read("/a/cgroup.subtree_control"), "+cpu +memory");
  limits.reset();
  EXPECT_EQ(Read("/a/cgroup.subtree_control"), "-cpu -memory");
}

TEST_F(PodLimitsTest, KilledForMemory) {
  EXPECT_FALSE(PodLimits::KilledForMemory(mount_));
  Write("/memory.events", "low 0\nmax 7\noom 1\noom_kill 0\n");
  EXPECT_FALSE(PodLimits::KilledForMemory(mount_));
  Write("/memory.events", "low 0\nmax 7\noom 1\noom_kill 2\noom_group_kill 1\n");
  EXPECT_TRUE(PodLimits::KilledForMemory(mount_));
}

TEST_F(PodLimitsTest, WhatAKilledRunHasLeftIsRemoved) {
  for (const auto& [left, is_removed] :
       {std::pair("/a/muster-local.j", true), std::pair("/a/other", false), std::pair("/../muster-local.j", false)}) {
    fs::create_directories(mount_ + "/a/muster-local.j/p/c");
    fs::create_directories(mount_ + "/a/other");
    Write("/record", mount_ + left + "\n");
    Of("0::/\n")->RemoveLeft();
    EXPECT_EQ(fs::exists(mount_ + "/a/muster-local.j"), !is_removed) << left;
    EXPECT_TRUE(fs::exists(mount_ + "/a/other"));
    EXPECT_EQ(fs::exists(record()), !is_removed) << left;
  }
}

}  // namespace
}  // namespace muster::local
