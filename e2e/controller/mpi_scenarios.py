"""Debian's Open MPI without sshd and keys: a launcher reaches its nodes by `muster rsh`."""
import os
import re
import shutil
import subprocess

from await_file import await_file
from installation import ROOT
from scenario import ANCESTOR, DEBIAN, Scenario, host_folders, runtime, train_job

PROGRAM = os.path.join(ROOT, "tests", "outer", "mpi_program.c")
MPIRUN, MPICC = "/usr/bin/mpirun.openmpi", "/usr/bin/mpicc.openmpi"
NODES, SLOTS = 3, 2  # the launcher is one of the nodes
# No search for InfiniBand, which a pod's network lacks. runc's /dev/shm is large enough for these messages.
QUIET = [{"name": f"OMPI_MCA_{name}", "value": value} for name, value in (("btl", "tcp,self"), ("pml", "ob1"), ("btl_base_warn_component_unused", "0"))]


class Mpi(Scenario):
    def setUp(self):
        super().setUp()
        for tool in (MPIRUN, MPICC):
            if not shutil.which(tool):
                self.skipTest(f"there is no {tool}")
        self.folder = self.shared()
        subprocess.run([MPICC, "-o", os.path.join(self.folder, "program"), PROGRAM], check=True)

    def start(self, *arguments):
        """Creates a TrainJob `solve` that runs the program as the built-in MPI runtimes do."""
        volumes, mounts = host_folders([*DEBIAN, "/etc/openmpi"])
        volumes.append({"name": "shared", "hostPath": {"path": self.folder}})
        mounts.append({"name": "shared", "mountPath": "/shared"})
        container = {"volumeMounts": mounts, "env": [{"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"}, *QUIET]}
        policy = {"mpi": {"runLauncherAsNode": True, "numProcPerNode": SLOTS}}
        made = runtime("mpi", 1, policy, container={**container, "command": ["/usr/sbin/sshd", "-De"],
                                                    "readinessProbe": {"tcpSocket": {"port": 2222}}}, pod={"volumes": volumes})
        job_set = made["spec"]["template"]["spec"]
        job_set["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["launcher"]}
        node, = job_set["replicatedJobs"]
        node["template"]["metadata"] = {}
        launcher = {**node["template"]["spec"]["template"]["spec"]["containers"][0]}
        for field in ("command", "readinessProbe"):
            launcher.pop(field)
        job_set["replicatedJobs"].append({
            "name": "launcher", "dependsOn": [{"name": "node", "status": "Ready"}],
            "template": {"metadata": {"labels": {ANCESTOR: "trainer"}}, "spec": {"template": {"spec": {"containers": [launcher], "volumes": volumes}}}}})
        command = [MPIRUN, "-n", str(NODES * SLOTS), "/shared/program", *arguments]
        self.create(made, train_job("solve", "mpi", trainer={"numNodes": NODES, "command": command}))

    def launcher_log(self):
        return self.cluster.kubectl("logs", "-n", self.namespace, "-c", "node", "-l", "jobset.sigs.k8s.io/replicatedjob-name=launcher", "--tail=-1")

    def check_ranks(self):
        """Checks that all ranks have met since the last restart, on all nodes, also in the launcher's pod."""
        log = self.launcher_log().rpartition("restart 1 of")[2]
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
        self.cluster.await_object("trainjob/solve", lambda job: job.get("status", {}).get("state") == "Running", self.namespace)
        await_file(os.path.join(self.folder, "mark"), 180)  # they hang
        selector = "jobset.sigs.k8s.io/replicatedjob-name=node,batch.kubernetes.io/job-completion-index=1"
        lost, = self.cluster.get("pods", "-n", self.namespace, "-l", selector)["items"]
        self.cluster.kubectl("delete", "pod", lost["metadata"]["name"], "-n", self.namespace, "--grace-period=0", "--force")
        job = self.finished("solve", 240)
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (1, 0), job["status"])
        self.check_ranks()
