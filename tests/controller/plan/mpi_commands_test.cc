// SPDX-License-Identifier: Apache-2.0
// What the commands of an MPI runtime say about ssh.
#include "controller/plan/frameworks/mpi_commands.h"

#include "tests/controller/plan/planned.h"

namespace muster::controller {
namespace {

TEST(MpiCommands, ACommandThatOnlyServesSshIsRecognized) {
  struct Row {
    std::string container;
    bool only;
  };
  for (const Row& row : std::vector<Row>{
           {"{command: [/usr/sbin/sshd, -De, -f, /home/mpiuser/.sshd_config]}", true},
           {"{command: [/usr/sbin/sshd], args: [-De]}", true},
           {"{command: [tini, --, /usr/sbin/sshd, -D]}", true},
           {"{command: [sh, -c, /usr/sbin/sshd -De]}", true},
           {"{command: [/bin/bash, -ec], args: [exec /usr/sbin/sshd -D]}", true},
           {"{command: [bash, -c, mkdir -p /run/sshd && chmod 0755 /run/sshd && /usr/sbin/sshd -De]}", true},
           {R"({command: [sh, -c, "# keys\nHOME=/tmp ssh-keygen -A\n/usr/sbin/sshd; sleep infinity & wait"]})", true},
           {"{command: [/start.sh]}", false},
           {"{}", false},
           {"{command: [sh, sshd.sh]}", false},
           {"{command: [bash, -c, sleep infinity]}", false},
           {"{command: [bash, -c, echo sshd]}", false},
           {"{command: [bash, -c, pip install x && /usr/sbin/sshd -De]}", false},
           {"{command: [bash, -c, /usr/sbin/sshd && python serve.py]}", false},
           {R"({command: [bash, -c, "/usr/sbin/sshd\nwhile [ ! -f done ]; do sleep 2; done"]})", false},
           {R"({command: [bash, -c, "cat > c <<E\nPort 2222\nE\n/usr/sbin/sshd -f c"]})", false},
           {"{command: [bash, -c]}", false},
       }) {
    EXPECT_EQ(OnlyServesSsh(YamlOf(row.container)), row.only) << row.container;
  }
}

TEST(MpiCommands, ACommandThatCallsSshIsRecognized) {
  for (const std::string container :
       {"{command: [bash, -c, until ssh -p 2222 $host true; do sleep 1; done; mpirun x]}",
        "{command: [mpirun], args: [--mca, plm_rsh_agent, ssh -q, x]}", "{command: [sh, -c, x=$(/usr/bin/scp a b:c)]}",
        R"({command: [sh, -c, "mpirun --mca plm_rsh_agent \"ssh\" x"]})", "{command: [deepspeed, train.py]}",
        "{command: [mpirun, --mca, plm_rsh_args, -p 2222, x]}",
        "{command: [bash, -ec], args: [cd /w; exec horovodrun -np 4 python train.py]}"}) {
    EXPECT_TRUE(CallsSsh(YamlOf(container))) << container;
  }
  for (const std::string container :
       {"{command: [mpirun, -n, \"2\", train]}", "{command: [sh, -c, cp /tmp/ssh-keys/id_rsa ~/.ssh/id_rsa; mpirun x]}",
        "{command: [mpirun, python, train.py, --deepspeed, ds.json]}",
        "{command: [sh, -c, mpirun python -m deepspeed]}", "{command: [mpirun], args: [--mca, pml, ucx, sshd_log]}",
        "{}"}) {
    EXPECT_FALSE(CallsSsh(YamlOf(container))) << container;
  }
}

}  // namespace
}  // namespace muster::controller
