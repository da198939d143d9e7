# SPDX-License-Identifier: Apache-2.0
"""PyTorchJobs of kubeflow.org/v1: failures and what they cost, and real training that goes on after them."""

import os
import re

from digits import MIN_ACCURACY, TRAINING, Digits
from failure_scenarios import DIES_ONCE, moments, till_last_start
from pytorch_jobs import PyTorchJobs, pytorch_job
from scenario import DEBIAN, host_folders, shell

WHOLE_JOB = {"muster.dev/restart": "job"}
# A worker that asks for a restart after the loss of a peer: v1 reserves exit code 138 for users, for example for this.
AGAIN_WITHOUT_PEERS = """
import os, runpy, sys
try:
    runpy.run_path(sys.argv.pop(1), run_name="__main__")
except RuntimeError as error:
    print(error, file=sys.stderr, flush=True)
    os._exit(138)
"""


class PyTorchTraining(PyTorchJobs, Digits):
    """Trains the digits on a Master and 2 Workers."""

    def start(self, command, *options, annotations=None, policy=None):
        volumes, mounts = host_folders([*DEBIAN, TRAINING, os.path.dirname(self.data)])
        volumes.append({"name": "checkpoints", "hostPath": {"path": self.checkpoints}})
        mounts.append({"name": "checkpoints", "mountPath": "/workspace/checkpoints"})
        container = {
            "command": [
                *command,
                os.path.join(TRAINING, "train.py"),
                "--data",
                self.data,
                "--checkpoints",
                "/workspace/checkpoints",
                "--epochs",
                "24",
                "--min-accuracy",
                str(MIN_ACCURACY),
                *options,
            ],
            "volumeMounts": mounts,
            "env": [{"name": "PATH", "value": "/usr/local/bin:/usr/bin:/bin"}],
            "resources": {"requests": {"cpu": "100m"}},
        }
        self.create(
            pytorch_job(
                "digits",
                2,
                container,
                policy=policy or {"backoffLimit": 6},
                annotations=annotations,
                pod={"volumes": volumes},
                processes=1,
            )
        )

    def end_in_the_middle(self, pod):
        """Ends the process of a worker with SIGTERM (code 143), as soon as a checkpoint exists."""
        self.await_running("digits", 2)
        self.in_pod(
            pod,
            """until [ -e /workspace/checkpoints/epoch_0003.pt ]; do sleep 0.1; done
            for process in /proc/[0-9]*; do
                case $(readlink $process/exe) in */python3*) kill -TERM ${process#/proc/};; esac
            done""",
        )

    def check_training(self):
        """Checks that training went on from a checkpoint, with all workers, and is as accurate as without a failure."""
        status = self.succeeded("digits", 300)
        said = self.logs("digits")[0]
        resumed = re.findall(r"resumed after epoch (\d+) with (\d+) workers", said)
        self.assertTrue(resumed, said)
        self.assertEqual([int(workers) for _, workers in resumed], [3] * len(resumed))
        self.assertGreaterEqual(int(resumed[0][0]), 3)
        self.check_accuracy()
        return status

    def test_torchrun_goes_on_after_143(self):
        """restartPolicy ExitCode. One failure is counted, however many pods it ends. The killed worker is its cause."""
        self.start(["torchrun"], "--epoch-seconds", "0.4")
        self.end_in_the_middle("digits-worker-1")
        status = self.check_training()
        cause = next(failure for failure in status["failures"] if failure["pod"] == "digits-worker-1")
        self.assertEqual((cause["exitCode"], status["restarts"]), (143, 1), status["failures"])
        self.assertNotEqual(self.uids("digits")["digits-worker-1"], cause["podUID"])

    def test_python_goes_on_after_143(self):
        """Without torchrun: the processes meet by MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE."""
        self.start(["python3", "-c", AGAIN_WITHOUT_PEERS], "--epoch-seconds", "0.4")
        self.end_in_the_middle("digits-worker-1")
        status = self.check_training()
        self.assertIn(143, [failure["exitCode"] for failure in status["failures"]])
        self.assertGreaterEqual(status["restarts"], 1)

    def test_python_trains(self):
        """A training without a failure."""
        self.start(["python3"])
        status = self.succeeded("digits", 300)
        self.check_accuracy()
        self.assertEqual((status["restarts"], status["attempt"], status.get("failures", [])), (0, 0, []))

    def test_whole_job_restart_of_torchrun(self):
        """SIGKILL ends a rank. The agents restart all ranks in their pods."""
        self.start(
            ["torchrun"],
            "--epoch-seconds",
            "0.4",
            "--fault",
            "kill:rank=2,epoch=5",
            annotations=WHOLE_JOB,
            policy={"backoffLimit": 3},
        )
        self.await_running("digits", 2)
        pods = self.uids("digits")
        status = self.check_training()
        self.assertEqual(self.uids("digits"), pods)
        self.assertEqual((status["restarts"], status["attempt"]), (1, 0))


class PyTorchInPlace(PyTorchJobs):
    def test_whole_job_restart_is_fast(self):
        """Workers of busybox start at once. The table shows the time from the kill to the last worker's start."""
        container = {
            "command": ["torchrun", "--no-python", *DIES_ONCE],
            "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
        }
        self.create(
            pytorch_job(
                "back",
                1,
                container,
                policy={"backoffLimit": 3},
                annotations=WHOLE_JOB,
                processes=2,
                pod={"volumes": [{"name": "shared", "hostPath": {"path": self.shared()}}]},
            )
        )
        self.await_running("back", 1)
        pods = self.uids("back")
        with open(os.path.join(self.shared(), "go"), "w"):
            pass
        status = self.succeeded("back")
        self.assertEqual((status["restarts"], status["attempt"]), (1, 0))
        self.assertEqual(self.uids("back"), pods)
        said = moments(self.logs("back"))
        self.assertEqual(
            sorted((what, attempt) for what, attempt, _ in said),
            [("end", "0"), *[("start", "0")] * 4, *[("start", "1")] * 4],
        )
        self.remark = (
            f"{till_last_start(said) * 1000:.0f} ms from a worker's death to the last start of the next attempt"
        )


class PyTorchFailures(PyTorchJobs):
    """A Master and 2 Workers of busybox. The Master ends with 0 when /shared/go exists."""

    def start(self, worker, policy=None, restart="ExitCode", **container):
        script = f'[ "$RANK" = 0 ] && {{ until [ -e /shared/go ]; do sleep 0.1; done; exit 0; }}\n{worker}'
        self.create(
            pytorch_job(
                "job",
                2,
                {"command": shell(script), "volumeMounts": [{"name": "shared", "mountPath": "/shared"}], **container},
                restart,
                policy,
                pod={"volumes": [{"name": "shared", "hostPath": {"path": self.shared()}}]},
            )
        )

    def go(self):
        with open(os.path.join(self.shared(), "go"), "w"):
            pass

    def test_exit_code_2_fails_the_job(self):
        """The job fails at once. Nothing is restarted, and the other pods, which would run for ever, are deleted."""
        self.start('[ "$RANK" = 2 ] || exec sleep 600; echo "no such data" >&2; exit 2', {"cleanPodPolicy": "Running"})
        job = self.finished("job")
        reason, message = self.condition(job, "Failed")
        self.assertEqual(reason, "PyTorchJobFailed")
        for part in ("job-worker-1", "pytorch", "exit code 2", "rank 2", "no such data"):
            self.assertIn(part, message)
        self.assertNotIn("Restarting", [condition["type"] for condition in job["status"]["conditions"]])
        self.assertIn("completionTime", job["status"])
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (0, 0))
        failure = job["status"]["failures"][-1]
        self.assertEqual((failure["pod"], failure["container"], failure["exitCode"]), ("job-worker-1", "pytorch", 2))
        self.await_gone("pod/job-master-0", "pod/job-worker-0")
        self.assertEqual(list(self.pods("job")), ["job-worker-1"])
        self.assertIn("no such data", self.logs("job")[0])

    def test_a_pod_out_of_memory_is_made_anew(self):
        """The second pod of worker 0 lets the Master end."""
        self.start(
            '[ "$RANK" = 1 ] || exec sleep 600\n[ -e /shared/mark ] && { touch /shared/go; exec sleep 600; }\n'
            "touch /shared/mark; exec tail /dev/zero",
            {"backoffLimit": 2},
            resources={"limits": {"memory": "64Mi"}},
        )
        status = self.succeeded("job")
        failure = status["failures"][-1]
        self.assertEqual(
            (failure["pod"], failure["exitCode"], failure["oom"], status["restarts"]),
            ("job-worker-0", 137, True, 1),
            failure,
        )
        self.assertNotEqual(self.uids("job")["job-worker-0"], failure["podUID"])

    def test_backoff_limit_of_exit_codes(self):
        """training-operator v1 would restart such a pod for ever."""
        self.start(
            '[ "$RANK" = 1 ] || exec sleep 600; echo "no luck" >&2; exit 143',
            {"backoffLimit": 1, "cleanPodPolicy": "Running"},
        )
        job = self.finished("job")
        reason, message = self.condition(job, "Failed")
        self.assertEqual(reason, "PyTorchJobFailed")
        self.assertIn("backoff limit", message)
        self.assertIn("no luck", message)
        self.assertEqual(job["status"]["restarts"], 1)
        self.await_gone("pod/job-master-0", "pod/job-worker-1")

    def test_deleted_pods_of_a_pytorchjob_are_back(self):
        """First a Worker's pod, then the Master's. The new pod has the same name and costs no restart."""
        self.start("until [ -e /shared/go ]; do sleep 0.1; done", {"backoffLimit": 0})
        self.await_running("job", 2)
        for pod in ("job-worker-0", "job-master-0"):
            before = self.uids("job")
            self.cluster.kubectl("delete", "pod", pod, "-n", self.namespace, "--timeout=180s")
            self.cluster.await_object(
                f"pod/{pod}",
                lambda found: found["metadata"]["uid"] != before[pod] and found["status"].get("phase") == "Running",
                self.namespace,
            )
            after = self.uids("job")
            self.assertEqual({name for name in before if before[name] != after[name]}, {pod})
        self.await_running("job", 2)
        self.go()
        status = self.succeeded("job")
        self.assertEqual((status["restarts"], status["attempt"]), (0, 0))

    def test_pytorchjob_suspended_while_it_runs(self):
        """A suspension deletes the pods and Services. A resume creates new ones, and no restart is counted."""
        self.start("until [ -e /shared/go ]; do sleep 0.1; done")
        self.await_running("job", 2)
        before = self.uids("job")
        self.suspend(True)
        self.await_gone(*(f"{kind}/{name}" for kind in ("pod", "service") for name in before))
        job = self.cluster.await_object("pytorchjob/job", lambda job: is_last(job, "Suspended", "True"), self.namespace)
        self.assertEqual(self.condition(job, "Suspended"), ("PyTorchJobSuspended", "PyTorchJob job is suspended."))
        self.suspend(False)
        job = self.await_running("job", 2)
        (resumed,) = (condition for condition in job["status"]["conditions"] if condition["type"] == "Suspended")
        self.assertEqual(
            (resumed["status"], resumed["reason"], resumed["message"]),
            ("False", "PyTorchJobResumed", "PyTorchJob job is resumed."),
        )
        self.assertEqual(set(before.values()) & set(self.uids("job").values()), set())
        self.go()
        status = self.succeeded("job")
        self.assertEqual((status["restarts"], status["attempt"]), (0, 0))

    def suspend(self, wanted):
        patch = '{"spec":{"runPolicy":{"suspend":%s}}}' % str(wanted).lower()
        self.cluster.kubectl("patch", "pytorchjob", "job", "-n", self.namespace, "--type=merge", "-p", patch)


def is_last(job, kind, status):
    """True if the condition is the state of the job."""
    conditions = job.get("status", {}).get("conditions", [])
    return bool(conditions) and (conditions[-1]["type"], conditions[-1]["status"]) == (kind, status)
