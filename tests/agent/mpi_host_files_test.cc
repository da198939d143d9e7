// SPDX-License-Identifier: Apache-2.0
// The host files of an MPI job on a real disk: read, written, removed.
#include "agent/mpi_host_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/host_fs.h"
#include "base/text.h"
#include "tests/agent/variables.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class MpiHostFilesTest : public ::testing::Test {
 protected:
  MpiHostFilesTest() {
    std::string folder = fs::temp_directory_path() / "mpi-test-XXXXXX";
    folder_ = mkdtemp(folder.data());
    pod_.Set("TMPDIR", folder_);
  }
  ~MpiHostFilesTest() override { fs::remove_all(folder_); }

  std::string File(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  StatusOr<MpiHostFiles> Make() { return MpiHostFiles::Make(pod_, other_); }
  std::string Error() {
    auto files = Make();
    EXPECT_TRUE(absl::IsFailedPrecondition(files.status()) || absl::IsInvalidArgument(files.status()))
        << files.status() << ": other codes mean that the command cannot be started";
    return std::string(files.status().message());
  }
  // The names that are left in the folder of the test.
  std::vector<std::string> Left() const { return HostFs().List(folder_); }

  Environment pod_;
  std::string folder_, other_;
};

TEST_F(MpiHostFilesTest, AreLaidInBothDialectsAndRemoved) {
  pod_.Set("MUSTER_MPI_HOSTS", "a,b slots=3");
  pod_.Set("MUSTER_MPI_SLOTS", "2");
  {
    auto files = Make();
    ASSERT_TRUE(files.ok()) << files.status();
    const MpiPlace& place = files->place();
    EXPECT_EQ(HostFs().Read(place.open_mpi_hosts), "a slots=2\nb slots=3\n");
    EXPECT_EQ(HostFs().Read(place.hydra_hosts), "a:2\nb:3\n");
    EXPECT_EQ(place.slots, 2);
    EXPECT_EQ(place.per_host, std::nullopt);
    EXPECT_EQ(HostFs().Identity(place.rsh), HostFs().Identity(fs::read_symlink("/proc/self/exe").string()))
        << place.rsh;
    struct stat found {};
    ASSERT_EQ(stat(fs::path(place.open_mpi_hosts).parent_path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0700U);
    EXPECT_EQ(Left().size(), 1U);

    StatusOr<MpiHostFiles> moved = *std::move(files);
    EXPECT_EQ(Left().size(), 1U);
    moved = Make();
    ASSERT_TRUE(moved.ok());
    EXPECT_EQ(Left().size(), 1U) << "the first folder is gone";
    EXPECT_EQ(HostFs().Read(moved->place().hydra_hosts), "a:2\nb:3\n");
  }
  EXPECT_EQ(Left().size(), 0U);
}

TEST_F(MpiHostFilesTest, AFileOfARuntimeIsRead) {
  pod_.Set("OMPI_MCA_orte_default_hostfile", File("hostfile", "x slots=4\ny slots=4\n"));
  auto files = Make();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(HostFs().Read(files->place().hydra_hosts), "x:4\ny:4\n");
  EXPECT_EQ(files->place().per_host, 4);
}

TEST_F(MpiHostFilesTest, WithoutHostsThereIsTheRemoteShell) {
  pod_.Set("MUSTER_MPI_HOSTS", "none");
  auto files = Make();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->place().open_mpi_hosts + files->place().hydra_hosts, "");
  EXPECT_NE(files->place().rsh, "");
}

TEST_F(MpiHostFilesTest, AFolderThatTakesThemIsLookedFor) {
  pod_.Set("MUSTER_MPI_HOSTS", "a");
  pod_.Set("TMPDIR", folder_ + "/missing");
  auto files = Make();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(files->place().hydra_hosts, ::testing::StartsWith("/tmp/"));
}

TEST_F(MpiHostFilesTest, WhatCannotBeReadIsNamed) {
  if (!fs::exists(kMpiHostFile)) {
    EXPECT_THAT(Error(), HasSubstr("no setting lists the hosts, and there is no /etc/mpi/hostfile; set MUSTER_"));
    pod_.Set("PET_NNODES", "2");
    EXPECT_THAT(Error(), HasSubstr("no setting lists the hosts"));
    pod_.Set("PET_NNODES", "1");
    EXPECT_TRUE(Make().ok()) << "a job of one node";
  }
  pod_.Set("HYDRA_HOST_FILE", folder_ + "/missing");
  EXPECT_THAT(Error(), HasSubstr(fmt::format("HYDRA_HOST_FILE: {}/missing: No such file", folder_)));
  pod_.Set("HYDRA_HOST_FILE", folder_);
  EXPECT_THAT(Error(), HasSubstr("Is a directory"));
  pod_.Set("HYDRA_HOST_FILE", File("empty", "# later\n"));
  EXPECT_THAT(Error(), HasSubstr(fmt::format("HYDRA_HOST_FILE: {}/empty: there is no host in it", folder_)));
  pod_.Set("HYDRA_HOST_FILE", File("wrong", "a\nb c\n"));
  EXPECT_THAT(Error(), HasSubstr("wrong: line 2, 'b c'"));
  pod_.Set("MUSTER_MPI_HOSTS", "a:x");
  EXPECT_THAT(Error(), HasSubstr("MUSTER_MPI_HOSTS: line 1"));
  pod_.Set("MUSTER_MPI_SLOTS", "x");
  EXPECT_THAT(Error(), HasSubstr("MUSTER_MPI_SLOTS=x"));
}

}  // namespace
}  // namespace muster::agent
