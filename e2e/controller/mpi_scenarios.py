# SPDX-License-Identifier: Apache-2.0
"""Debian's Open MPI without sshd and keys: a launcher reaches its nodes by `muster rsh`."""

import os
import re

import mpi_jobs
from await_file import await_file
from scenario import Scenario

NODES, SLOTS = 3, 2  # the launcher is one of the nodes


class Mpi(Scenario):
    def setUp(self):
        super().setUp()
        if missing := mpi_jobs.missing():
            self.skipTest(f"there is {missing}")
        self.folder = self.shared()
        mpi_jobs.make_program(self.folder)

    def start(self, *arguments):
        """Creates a TrainJob `solve` that runs the program."""
        command = [mpi_jobs.MPIRUN, "-n", str(NODES * SLOTS), "/shared/program", *arguments]
        self.create(*mpi_jobs.mpi_job("solve", self.folder, command, NODES, SLOTS))

    def launcher_log(self):
        return self.cluster.kubectl(
            "logs",
            "-n",
            self.namespace,
            "-c",
            "node",
            "-l",
            "jobset.sigs.k8s.io/replicatedjob-name=launcher",
            "--tail=-1",
        )

    def check_ranks(self):
        """Checks that all ranks have met since the last restart, on all nodes, also in the launcher's pod."""
        log = self.launcher_log().rpartition("round 1:")[2]
        ranks = re.findall(r"rank (\d+) of 6 on (\S+) sum 15", log)
        self.assertEqual(sorted(int(rank) for rank, _ in ranks), list(range(6)), log)
        self.assertEqual({host for _, host in ranks}, {"solve-node-0-0", "solve-node-0-1", "solve-launcher-0-0"})

    def test_ranks_on_all_nodes(self):
        self.start()
        job = self.finished("solve")
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["nodes"], job["status"]["restarts"]), (NODES, 0))
        self.check_ranks()

    def test_a_rank_fails(self):
        """The job fails at once with the rank's exit code, and the pods of the nodes end."""
        self.start("abort", "3", "7")
        job = self.finished("solve")
        reason, message = self.condition(job, "Failed")
        self.assertEqual(reason, "FailedJobs", message)
        self.assertEqual({failure["exitCode"] for failure in job["status"]["failures"]}, {7}, message)
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (0, 0))

    def test_a_node_is_lost(self):
        """mpirun is started again in the launcher's pod when another pod has replaced the lost one."""
        self.start("firsthangs", "/shared/mark")
        self.cluster.await_object(
            "trainjob/solve", lambda job: job.get("status", {}).get("state") == "Running", self.namespace
        )
        await_file(os.path.join(self.folder, "mark"), 180)  # they hang
        selector = "jobset.sigs.k8s.io/replicatedjob-name=node,batch.kubernetes.io/job-completion-index=1"
        (lost,) = self.cluster.get("pods", "-n", self.namespace, "-l", selector)["items"]
        self.cluster.kubectl(
            "delete", "pod", lost["metadata"]["name"], "-n", self.namespace, "--grace-period=0", "--force"
        )
        job = self.finished("solve", 240)
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (0, 0), job["status"])
        self.check_ranks()
