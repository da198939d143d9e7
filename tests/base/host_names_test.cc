// SPDX-License-Identifier: Apache-2.0
#include "base/host_names.h"

#include <gtest/gtest.h>

#include "tests/base/fake_machine.h"

namespace muster {
namespace {

TEST(HostNames, FullNameComesFromHosts) {
  FakeMachine machine;
  EXPECT_EQ(FullHostName("node1", machine.fs()), "node1");
  machine.File(
      "/etc/hosts",
      "# node1.wrong node1\n127.0.0.1 localhost localhost.localdomain\n10.0.0.1\tn node1 node1.job.ns.svc # x\n");
  EXPECT_EQ(FullHostName("node1", machine.fs()), "node1.job.ns.svc");
  EXPECT_EQ(FullHostName("node", machine.fs()), "node");
  EXPECT_EQ(FullHostName("a.b", machine.fs()), "a.b");
}

TEST(HostNames, MeansThisMachine) {
  const MachineNames machine{"node1", "node1.job.svc", {"10.0.0.1", "fd00::1"}};
  struct {
    std::string host;
    bool expected;
    std::vector<std::string> resolved = {};
  } const rows[] = {{"localhost", true},
                    {"LocalHost", true},
                    {"127.0.0.1", true},
                    {"127.5.5.5", true},
                    {"::1", true},
                    {"::ffff:127.0.0.1", true},
                    {"node1", true},
                    {"NODE1", true},
                    {"node1.job.svc", true},
                    {"node1.job.svc.", true},
                    {"node1.job", true},
                    {"node1.jo", false},
                    {"10.0.0.1", true},
                    {"::ffff:10.0.0.1", true},
                    {"fd00:0:0::1", true},
                    {"fd00::1%eth0", true},
                    {"", false},
                    {"node2", false},
                    {"node1.other", false},
                    {"10.0.0.2", false},
                    {"0.0.0.0", false},
                    {"fd00::2", false},
                    {"1270.0.0.1", false},
                    {"service", false, {"10.0.0.2", "10.0.0.3"}},
                    {"service", true, {"10.0.0.2", "10.0.0.1"}},
                    {"alias", true, {"127.0.1.1"}}};
  for (const auto& row : rows) EXPECT_EQ(MeansThisMachine(row.host, machine, row.resolved), row.expected) << row.host;
}

TEST(HostNames, AnEndpointThatEveryMachineTakesForItself) {
  const MachineNames machine{"worker", "worker.example", {"10.0.0.1"}};
  const struct {
    const char* host;
    const char* hint;
  } rows[] = {{"localhost", "the endpoint localhost leads each machine to itself"},
              {"LocalHost.", "leads each machine to itself"},
              {"127.0.0.1", "leads each machine to itself"},
              {"::1", "leads each machine to itself"},
              {"worker", "the endpoint worker is this machine's own name; if another machine has the same name"},
              {"Worker.Example", "this machine's own name"}};
  for (const auto& row : rows) {
    EXPECT_NE(EndpointHint(row.host, machine).find(row.hint), std::string::npos) << EndpointHint(row.host, machine);
  }
  for (const char* host : {"", "10.0.0.1", "10.0.0.2", "node-0.example"}) {
    EXPECT_EQ(EndpointHint(host, machine), "") << host;
    EXPECT_EQ(EndpointHint(host, {}), "") << host;
  }
}

TEST(HostNames, ThisMachineKnowsItself) {
  EXPECT_NE(HostName(), "");
  MachineNames machine = ThisMachine();
  EXPECT_TRUE(MeansThisMachine(machine.host_name, machine));
  EXPECT_TRUE(MeansThisMachine(machine.full_name, machine));
  for (const std::string& address : machine.addresses) EXPECT_TRUE(MeansThisMachine(address, machine)) << address;
}

TEST(ListenStatusTest, NamesTheAddressAndWhatToDo) {
  const Status taken = ListenStatus(EADDRINUSE, "", 29500);
  EXPECT_TRUE(absl::IsAlreadyExists(taken));
  EXPECT_EQ(Message(taken), "port 29500 is taken by another process; free it, or choose another one");
  EXPECT_EQ(Message(ListenStatus(EADDRNOTAVAIL, "192.0.2.1", 80)),
            "cannot listen on 192.0.2.1 port 80: Cannot assign requested address; give an address of this machine, and "
            "a port that this user may take");
  EXPECT_EQ(Message(ListenStatus(EMFILE, "", 29500)),
            "cannot listen on port 29500: Too many open files; raise the limit of open files (ulimit -n)");
}

}  // namespace
}  // namespace muster
