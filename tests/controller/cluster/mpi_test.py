# SPDX-License-Identifier: Apache-2.0
"""MPI jobs: a launcher and its nodes, their hosts, and keys if the job uses ssh."""

import base64
import os
import shutil
import subprocess
import tempfile

from controller_case import ControllerCase, is_true

import class_runner
from scenario import ANCESTOR, API, shell

SSH = {"muster.dev/rsh": "ssh"}


def mpi_runtime(**policy):
    """A runtime with a launcher that waits for its nodes, like the built-in ones."""

    def job(name, command, **beside):
        return {
            "name": name,
            **beside,
            "template": {
                "metadata": {"labels": {ANCESTOR: "trainer"} if name == "launcher" else {}},
                "spec": {
                    "template": {"spec": {"containers": [{"name": "node", "image": "mpi:1", "command": command}]}}
                },
            },
        }

    return {
        "apiVersion": API,
        "kind": "TrainingRuntime",
        "metadata": {},
        "spec": {
            "mlPolicy": {"mpi": policy},
            "template": {
                "spec": {
                    "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
                    "replicatedJobs": [
                        job("node", ["/usr/sbin/sshd", "-De"]),
                        job("launcher", shell("mpirun true"), dependsOn=[{"name": "node", "status": "Ready"}]),
                    ],
                }
            },
        },
    }


class Mpi(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_controller()

    def hosts(self, name):
        return self.api.get("configmaps", f"{name}-mpi-hostfile")["data"]["hostfile"].splitlines()

    def counts(self, job):
        return {count["name"]: (count["ready"], count["succeeded"]) for count in job["status"]["jobsStatus"]}

    def test_one_node_is_the_launcher(self):
        """The Job of the nodes has no pods and is complete at once."""
        self.make("single", mpi_runtime(runLauncherAsNode=True), trainer={"numNodes": 1})
        job = self.running("single")
        self.assertEqual(job["status"]["nodes"], 1)
        self.assertEqual(len(self.items("pods", "single")), 1)
        self.assertEqual(self.hosts("single"), ["single-launcher-0-0.single slots=1"])
        job = self.await_job("single", lambda job: self.counts(job)["node"] == (0, 1))
        self.finish("single")
        job = self.await_job("single", is_true("Complete"))
        self.assertEqual(self.counts(job), {"node": (0, 1), "launcher": (0, 1)})

    def test_the_hosts_follow_the_number_of_nodes(self):
        self.make("more", mpi_runtime(runLauncherAsNode=True, numProcPerNode=2), trainer={"numNodes": 2})
        self.assertEqual(self.running("more")["status"]["nodes"], 2)
        self.assertEqual(self.hosts("more"), ["more-node-0-0.more slots=2", "more-launcher-0-0.more slots=2"])
        self.patch("more", {"suspend": True})
        self.await_job("more", lambda job: job["status"]["state"] == "Suspended")
        self.patch("more", {"suspend": False, "trainer": {"numNodes": 3}})
        self.await_job("more", lambda job: job["status"]["state"] == "Running" and job["status"]["nodes"] == 3)
        self.assertEqual(
            self.hosts("more"),
            ["more-node-0-0.more slots=2", "more-node-0-1.more slots=2", "more-launcher-0-0.more slots=2"],
        )
        self.finish("more")
        self.await_job("more", is_true("Complete"))

    def test_keys_for_ssh(self):
        """OpenSSH accepts the two keys as a pair."""
        made = self.make("keys", mpi_runtime(), annotations=SSH, trainer={"numNodes": 1})
        self.running("keys")
        secret = self.api.get("secrets", f"keys-mpi-ssh-auth-{made['metadata']['uid'][:8]}")
        self.assertEqual((secret["type"], secret["immutable"]), ("kubernetes.io/ssh-auth", True))
        private, public = (
            base64.b64decode(secret["data"][key]).decode() for key in ("ssh-privatekey", "ssh-publickey")
        )
        self.assertTrue(private.startswith("-----BEGIN EC PRIVATE KEY-----\n"))
        self.finish("keys")
        self.await_job("keys", is_true("Complete"))
        if not shutil.which("ssh-keygen"):
            self.skipTest("SKIPPED: there is no ssh-keygen that could read them")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "id_rsa")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
                file.write(private)
            derived = subprocess.run(
                ["ssh-keygen", "-y", "-f", path], capture_output=True, text=True, check=True
            ).stdout
        self.assertEqual(derived, public)

    def test_a_deleted_secret_comes_back_with_its_content(self):
        """Also from a controller that has not made it."""
        made = self.make("lost-keys", mpi_runtime(), annotations=SSH, trainer={"numNodes": 1})
        self.running("lost-keys")
        name = f"lost-keys-mpi-ssh-auth-{made['metadata']['uid'][:8]}"
        secret = self.api.get("secrets", name)
        self.patch("lost-keys", {"suspend": True})
        self.await_job("lost-keys", lambda job: job["status"]["state"] == "Suspended")
        self.api.delete("secrets", name)
        self.cluster.processes.stop("controller")
        self.start_controller()
        self.patch("lost-keys", {"suspend": False})
        self.running("lost-keys")
        again = self.api.get("secrets", name)
        self.assertNotEqual(again["metadata"]["uid"], secret["metadata"]["uid"])
        self.assertEqual(again["data"], secret["data"])
        self.finish("lost-keys")
        self.await_job("lost-keys", is_true("Complete"))


if __name__ == "__main__":
    class_runner.main()
