// SPDX-License-Identifier: Apache-2.0
// The variables for MPI runtimes, row by row.
#include "agent/flags/wire_mpi.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "tests/agent/variables.h"

namespace muster::agent {
namespace {

using ::testing::HasSubstr;

const Variables kOpenMpi4 = {{"OMPI_MCA_plm_rsh_agent", "/m/muster-rsh"},
                             {"OMPI_MCA_orte_leave_session_attached", "true"}};
const Variables kOpenMpi5 = {{"PRTE_MCA_plm_ssh_agent", "/m/muster-rsh"}};
const Variables kMpich = {{"HYDRA_LAUNCHER", "rsh"}, {"HYDRA_LAUNCHER_EXEC", "/m/muster-rsh"}, {"HYDRA_IFACE", "eth0"}};
const Variables kIntel = {
    {"I_MPI_HYDRA_BOOTSTRAP", "ssh"}, {"I_MPI_HYDRA_BOOTSTRAP_EXEC", "/m/muster-rsh"}, {"I_MPI_HYDRA_IFACE", "eth0"}};
const Variables kWholeNames = {{"OMPI_MCA_orte_keep_fqdn_hostnames", "true"},
                               {"PRTE_MCA_prte_keep_fqdn_hostnames", "true"}};
const Variables kFiles = {{"OMPI_MCA_orte_default_hostfile", "/t/o"},
                          {"PRTE_MCA_prte_default_hostfile", "/t/o"},
                          {"HYDRA_HOST_FILE", "/t/h"},
                          {"I_MPI_HYDRA_HOST_FILE", "/t/h"}};
const MpiPlace kWorker = {.rsh = "/m/muster-rsh", .interface = "eth0"};
const MpiPlace kLauncher = {
    .rsh = "/m/muster-rsh", .open_mpi_hosts = "/t/o", .hydra_hosts = "/t/h", .interface = "eth0"};

Variables Sum(std::initializer_list<Variables> parts) {
  Variables sum;
  for (const Variables& part : parts) sum.insert(part.begin(), part.end());
  return sum;
}

Variables Told(const Environment& pod, const MpiPlace& place) {
  auto told = MpiVariables(pod, place);
  EXPECT_TRUE(told.ok()) << told.status();
  return told.value_or(Variables{});
}

TEST(WireMpi, AWorkerPodKnowsTheRemoteShellOnly) {
  EXPECT_EQ(Told({}, kWorker), Sum({kOpenMpi4, kOpenMpi5, kMpich, kIntel, kWholeNames}));
}

TEST(WireMpi, ALauncherKnowsTheHostsToo) {
  EXPECT_EQ(Told({}, kLauncher), Sum({kOpenMpi4, kOpenMpi5, kMpich, kIntel, kWholeNames, kFiles}));
  MpiPlace place = kLauncher;
  place.slots = 4;
  place.per_host = 3;
  EXPECT_EQ(Told({}, place), Sum({kOpenMpi4,
                                  kOpenMpi5,
                                  kMpich,
                                  kIntel,
                                  kWholeNames,
                                  kFiles,
                                  {{"OMPI_MCA_orte_set_default_slots", "4"},
                                   {"PRTE_MCA_prte_set_default_slots", "4"},
                                   {"I_MPI_PERHOST", "3"}}}));
  EXPECT_FALSE(Told({{"I_MPI_PERHOST", "9"}}, place).contains("I_MPI_PERHOST"));
  place.open_mpi_hosts = place.hydra_hosts = "";
  EXPECT_EQ(Told({}, place), Sum({kOpenMpi4, kOpenMpi5, kMpich, kIntel, kWholeNames}))
      << "none named: no counts either";
}

TEST(WireMpi, ARemoteShellOfTheImageStays) {
  const struct {
    Environment pod;
    Variables told;
  } rows[] = {
      {{{"OMPI_MCA_plm_rsh_agent", "ssh"}}, Sum({kMpich, kIntel})},  // PRRTE reads ORTE's names, too
      {{{"OMPI_MCA_orte_rsh_agent", "ssh"}}, Sum({kMpich, kIntel})},
      {{{"OMPI_MCA_pls_rsh_agent", "ssh"}}, Sum({kMpich, kIntel})},
      {{{"OMPI_MCA_plm", "slurm"}}, Sum({kMpich, kIntel})},
      {{{"OMPI_MCA_plm", "rsh"}}, Sum({kOpenMpi4, kOpenMpi5, kMpich, kIntel})},
      {{{"OMPI_MCA_plm_rsh_args", "-o ConnectionAttempts=10"}}, Sum({kOpenMpi4, kOpenMpi5, kMpich, kIntel})},
      {{{"PRTE_MCA_plm_ssh_agent", "ssh"}}, Sum({kOpenMpi4, kMpich, kIntel})},
      {{{"PRTE_MCA_plm", "slurm"}}, Sum({kOpenMpi4, kMpich, kIntel})},
      {{{"PRTE_MCA_plm", "ssh"}}, Sum({kOpenMpi4, kOpenMpi5, kMpich, kIntel})},
      {{{"HYDRA_LAUNCHER", "ssh"}}, Sum({kOpenMpi4, kOpenMpi5, kIntel})},
      {{{"HYDRA_LAUNCHER_EXEC", "/x"}}, Sum({kOpenMpi4, kOpenMpi5, kIntel})},
      {{{"HYDRA_BOOTSTRAP", "fork"}}, Sum({kOpenMpi4, kOpenMpi5, kIntel})},
      {{{"I_MPI_HYDRA_BOOTSTRAP", "ssh"}}, Sum({kOpenMpi4, kOpenMpi5, kMpich})},
      {{{"I_MPI_HYDRA_BOOTSTRAP_EXEC", "/x"}}, Sum({kOpenMpi4, kOpenMpi5, kMpich})},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(Told(row.pod, kLauncher), Sum({row.told, kWholeNames, kFiles})) << Join(row.pod.entries(), " ");
  }
}

TEST(WireMpi, SingleVariablesStay) {
  const Environment pod = {{"HYDRA_IFACE", "ib0"},
                           {"OMPI_MCA_orte_keep_fqdn_hostnames", "0"},
                           {"OMPI_MCA_orte_leave_session_attached", "0"},
                           {"I_MPI_HYDRA_IFACE", ""}};
  const Variables told = Told(pod, kWorker);
  for (const std::string& entry : pod.entries()) EXPECT_FALSE(told.contains(entry.substr(0, entry.find('=')))) << entry;
  EXPECT_EQ(told.at("PRTE_MCA_prte_keep_fqdn_hostnames"), "true");
}

TEST(WireMpi, HostFilesOfTheImageStayUnlessMusterWasToldTheHosts) {
  Environment pod = {{"OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"}};
  Variables rest = kFiles;
  rest.erase("OMPI_MCA_orte_default_hostfile");
  EXPECT_EQ(Told(pod, kLauncher), Sum({kOpenMpi4, kOpenMpi5, kMpich, kIntel, kWholeNames, rest}));
  pod.Set("MUSTER_MPI_HOSTS", "a,b");
  EXPECT_EQ(Told(pod, kLauncher), Sum({kOpenMpi4, kOpenMpi5, kMpich, kIntel, kWholeNames, kFiles}));
}

TEST(WireMpi, RootIsAllowedUnlessTheImageSaysNo) {
  MpiPlace place = {.root = true};
  EXPECT_EQ(Told({{"OMPI_ALLOW_RUN_AS_ROOT", "0"}}, place), Sum({kWholeNames,
                                                                 {{"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                                                  {"PRTE_ALLOW_RUN_AS_ROOT", "1"},
                                                                  {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}}));
}

TEST(WireMpi, APathThatOpenMpiWouldCutIsRefused) {
  for (std::string path : {"/my dir/muster-rsh", "/a:b/muster-rsh"}) {
    auto told = MpiVariables(Environment(), {.rsh = path});
    EXPECT_THAT(std::string(told.status().message()), HasSubstr(path));
  }
}

// "text:...", "file:...", with the origin, or "none".
std::string Source(const Environment& pod) {
  auto source = FindMpiHosts(pod);
  if (!source) return "none";
  EXPECT_NE(source->text.empty(), source->file.empty());
  return fmt::format("{}{} {}", source->text.empty() ? "file:" : "text:", source->text + source->file, source->origin);
}

TEST(WireMpi, WhereTheHostsAre) {
  EXPECT_EQ(Source({}), "file:/etc/mpi/hostfile ");
  Environment pod = {{"I_MPI_HYDRA_HOST_FILE", "/i"}};
  EXPECT_EQ(Source(pod), "file:/i I_MPI_HYDRA_HOST_FILE");
  pod.Set("HYDRA_HOST_FILE", "hosts");
  EXPECT_EQ(Source(pod), "file:hosts HYDRA_HOST_FILE");
  pod.Set("PRTE_MCA_prte_default_hostfile", "/p");
  EXPECT_EQ(Source(pod), "file:/p PRTE_MCA_prte_default_hostfile");
  pod.Set("OMPI_MCA_orte_default_hostfile", "none");
  EXPECT_EQ(Source(pod), "file:/p PRTE_MCA_prte_default_hostfile");
  pod.Set("OMPI_MCA_orte_default_hostfile", "/o");
  EXPECT_EQ(Source(pod), "file:/o OMPI_MCA_orte_default_hostfile");
  pod.Set("MUSTER_MPI_HOSTS", " ");
  EXPECT_EQ(Source(pod), "file:/o OMPI_MCA_orte_default_hostfile");
  pod.Set("MUSTER_MPI_HOSTS", "a slots=2, b");
  EXPECT_EQ(Source(pod), "text:a slots=2, b MUSTER_MPI_HOSTS");
  pod.Set("MUSTER_MPI_HOSTS", "./hosts");
  EXPECT_EQ(Source(pod), "file:./hosts MUSTER_MPI_HOSTS");
  pod.Set("MUSTER_MPI_HOSTS", "none");
  EXPECT_EQ(Source(pod), "none");
}

TEST(WireMpi, SlotsOfAHostWithout) {
  auto slots = [](const Environment& pod) { return MpiSlots(pod).value().value_or(-1); };
  EXPECT_EQ(slots({}), -1);
  EXPECT_EQ(slots({{"PET_NPROC_PER_NODE", "auto"}}), -1);
  EXPECT_EQ(slots({{"PET_NPROC_PER_NODE", "0"}}), -1);
  EXPECT_EQ(slots({{"PET_NPROC_PER_NODE", "2"}}), 2);
  EXPECT_EQ(slots({{"PET_NPROC_PER_NODE", "2"}, {"TRAINER_NPROC_PER_NODE", "3"}}), 3);
  EXPECT_EQ(slots({{"OMPI_MCA_orte_set_default_slots", "cores"}, {"TRAINER_NPROC_PER_NODE", "3"}}), 3);
  EXPECT_EQ(slots({{"OMPI_MCA_orte_set_default_slots", "5"}, {"TRAINER_NPROC_PER_NODE", "3"}}), 5);
  EXPECT_EQ(slots({{"OMPI_MCA_orte_set_default_slots", "5"}, {"MUSTER_MPI_SLOTS", "8"}}), 8);
  for (auto wrong : {"0", "x", "65537"}) {
    auto status = CheckMpi(Environment({{"MUSTER_MPI_SLOTS", wrong}}));
    EXPECT_THAT(std::string(status.message()), HasSubstr(fmt::format("MUSTER_MPI_SLOTS={}", wrong)));
  }
}

TEST(WireMpi, AWrongListIsNamedBeforeAnythingStarts) {
  EXPECT_TRUE(CheckMpi(Environment()).ok());
  EXPECT_TRUE(CheckMpi(Environment({{"MUSTER_MPI_HOSTS", "a,b:2"}})).ok());
  EXPECT_TRUE(CheckMpi(Environment({{"MUSTER_MPI_HOSTS", "/no/such"}})).ok()) << "files are read later";
  EXPECT_EQ(CheckMpi(Environment({{"MUSTER_MPI_HOSTS", "a,b:x"}})).message(),
            "MUSTER_MPI_HOSTS: line 1, 'b:x': the number after the colon is a whole number from 1 to 65536; write HOST "
            "slots=N or HOST:N");
}

}  // namespace
}  // namespace muster::agent
