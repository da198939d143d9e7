# SPDX-License-Identifier: Apache-2.0
"""TrainJobs of Debian's Open MPI without sshd and keys: a launcher reaches its nodes by `muster rsh`. Scenarios of
several modules and the table of causes use them."""

import os
import shutil
import subprocess

from scenario import ANCESTOR, DEBIAN, host_folders, runtime, train_job

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "outer", "mpi_program.c")
MPIRUN, MPICC = "/usr/bin/mpirun.openmpi", "/usr/bin/mpicc.openmpi"
LAUNCHER = "launcher"
# No search for InfiniBand, which a pod's network lacks. runc's /dev/shm is large enough for these messages.
QUIET = [
    {"name": f"OMPI_MCA_{name}", "value": value}
    for name, value in (("btl", "tcp,self"), ("pml", "ob1"), ("btl_base_warn_component_unused", "0"))
]


def missing():
    """What of Open MPI this machine lacks. "": nothing."""
    return " and ".join(f"no {tool}" for tool in (MPIRUN, MPICC) if not shutil.which(tool))


def make_program(folder):
    """FOLDER/program, which pods have as /shared/program."""
    subprocess.run([MPICC, "-o", os.path.join(folder, "program"), PROGRAM], check=True)


def mpi_job(name, folder, command, nodes, slots, max_restarts=None):
    """A runtime and its TrainJob `name`, like those of the built-in MPI runtimes. The launcher runs `command`, and is
    one of the nodes. Pods have `folder` as /shared."""
    volumes, mounts = host_folders([*DEBIAN, "/etc/openmpi"])
    volumes.append({"name": "shared", "hostPath": {"path": folder}})
    mounts.append({"name": "shared", "mountPath": "/shared"})
    container = {"volumeMounts": mounts, "env": [{"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"}, *QUIET]}
    policy = {"mpi": {"runLauncherAsNode": True, "numProcPerNode": slots}}
    made = runtime(
        name,
        1,
        policy,
        container={**container, "command": ["/usr/sbin/sshd", "-De"], "readinessProbe": {"tcpSocket": {"port": 2222}}},
        pod={"volumes": volumes},
    )
    job_set = made["spec"]["template"]["spec"]
    job_set["successPolicy"] = {"operator": "All", "targetReplicatedJobs": [LAUNCHER]}
    if max_restarts is not None:
        job_set["failurePolicy"] = {"maxRestarts": max_restarts}
    (node,) = job_set["replicatedJobs"]
    node["template"]["metadata"] = {}
    launcher = {**node["template"]["spec"]["template"]["spec"]["containers"][0]}
    for field in ("command", "readinessProbe"):
        launcher.pop(field)
    job_set["replicatedJobs"].append(
        {
            "name": LAUNCHER,
            "dependsOn": [{"name": "node", "status": "Ready"}],
            "template": {
                "metadata": {"labels": {ANCESTOR: "trainer"}},
                "spec": {"template": {"spec": {"containers": [launcher], "volumes": volumes}}},
            },
        }
    )
    return [made, train_job(name, name, trainer={"numNodes": nodes, "command": command})]
