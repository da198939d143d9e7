# SPDX-License-Identifier: Apache-2.0
"""A controller is killed between any two of its writes for a PyTorchJob. The next one must reach the same result as a
controller that is never killed, and count each restart once.

A job goes through a life of parts. In each part a controller may write k times; its next write does not reach the API
server, and it is killed. Another controller takes over.
"""

import json
import re

from pytorch_case import FLAGS, LABEL, PyTorchCase, conditions, counts

import class_runner
from api_proxy import WriteLimit

UNHURT = "unhurt"  # the job during which no controller is killed
RUNS = (["Created", "Running"], (1, 0, 0), (2, 0, 0), 3, 0)
# The result of each part: true conditions, counts of the master and of the workers, number of pods, and number of pods
# and Services that are deleted (these deletions come after the last write of the status).
PARTS = {
    "start": RUNS,
    "failure": RUNS,
    "suspend": (["Created", "Suspended"], (0, 0, 0), (0, 0, 0), 0, 6),
    "resume": RUNS,
    "end": (["Created", "Succeeded"], (0, 1, 0), (0, 2, 0), 1, 4),
    "fatal": (["Created", "Failed"], (1, 0, 0), (1, 0, 1), 1, 4),
}


def plain(value, name):
    """`value` as JSON gives it back, without the job's name, to compare jobs."""
    return json.loads(re.sub(r"kwok-\d+", "NODE", json.dumps(value)).replace(name, "JOB"))


class KillsCase(PyTorchCase):
    LIFE = ()
    CUT = ()  # the parts in which a controller is killed

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.proxy, cls.through_proxy = cls.start_proxy()

    def serve_by_proxy(self, name):
        return self.start_controller(name, *FLAGS, "--no-leader-elect", kubeconfig=self.through_proxy)

    # ---- the parts: what begins each, and what it comes to

    def begin(self, part, name):
        if part == "start":
            self.create_job(name, workers=2, policy={"backoffLimit": 1, "cleanPodPolicy": "Running"})
        elif part == "failure":
            self.end(f"{name}-worker-1", 137)
        elif part == "fatal":
            self.end(f"{name}-worker-1", 2)
        elif part == "end":
            self.end(f"{name}-master-0")
        else:
            self.api.patch("pytorchjobs", name, {"spec": {"runPolicy": {"suspend": part == "suspend"}}})

    @staticmethod
    def is_reached(part, job):
        wanted, master, workers, *_ = PARTS[part]
        restarts = {"start": 0, "failure": 1}.get(part)
        return (conditions(job), counts(job, "Master"), counts(job, "Worker")) == (
            wanted,
            master,
            workers,
        ) and restarts in (None, job["status"].get("restarts"))

    def children(self, name):
        pods = sorted(
            (
                pod["metadata"]["name"],
                pod["status"]["phase"],
                sorted(item for item in pod["metadata"]["labels"].items() if item[0].startswith(LABEL)),
            )
            for pod in self.of("pods", name).values()
            if "deletionTimestamp" not in pod["metadata"]
        )
        owned = {
            kind: [
                each["metadata"]["name"]
                for each in self.api.items(kind)
                if any(owner["name"] == name for owner in each["metadata"].get("ownerReferences", []))
            ]
            for kind in ("services", "secrets")
        }
        return plain({"pods": pods, "services": sorted(owned["services"]), "secrets": len(owned["secrets"])}, name)

    @staticmethod
    def status(job):
        """The parts of the status that a kill must not change."""
        status = {key: value for key, value in job["status"].items() if key not in ("startTime", "completionTime")}
        status["conditions"] = [
            {key: value for key, value in condition.items() if key not in ("lastTransitionTime", "lastUpdateTime")}
            for condition in status["conditions"]
        ]
        status["failures"] = [
            (failure["pod"], failure["exitCode"], failure["counted"]) for failure in status.get("failures", [])
        ]
        status["countedPods"] = [counted["restarts"] for counted in status.get("countedPods", [])]
        return plain(status, job["metadata"]["name"])

    def settled(self, part, name, wanted=None):
        """(status, children) after the part. `wanted`: what they must become."""
        try:
            job = self.await_pytorch(
                name, lambda job: self.is_reached(part, job) and (not wanted or self.status(job) == wanted[0])
            )
        except AssertionError:
            self.assertEqual(self.status(self.api.get("pytorchjobs", name)), wanted and wanted[0], f"{part} of {name}")
            raise
        for _ in self.api.states("pods", f"{LABEL}job-name={name}"):
            seen = self.children(name)
            if seen == wanted[1] if wanted else len(seen["pods"]) == PARTS[part][3]:
                break
        if wanted:
            self.assertEqual(seen, wanted[1], f"{part} of {name}")
        return self.status(job), seen

    # ---- one part with a kill

    def kill_after(self, count, part, name):
        """Kills the controller after `count` writes. False: the part has no more."""
        limit = WriteLimit(count)
        self.proxy.obey(limit)
        self.serve_by_proxy("killed")
        self.begin(part, name)

        def is_over():
            if (
                sum(request.method == "DELETE" and bool(request.answer) for request in self.proxy.writes())
                < PARTS[part][4]
            ):
                return False
            answers = [
                request.answer
                for request in self.proxy.writes()
                if request.resource == "pytorchjobs" and request.answer
            ]
            return any(answer["metadata"]["name"] == name and self.is_reached(part, answer) for answer in answers)

        self.proxy.await_(lambda: limit.is_over or is_over(), f"{count} writes of {part} of {name}")
        self.cluster.processes.kill("killed")
        return limit.is_over

    def judge(self):
        wanted = {}
        self.proxy.obey()
        self.serve_by_proxy("next")
        for part in self.LIFE:
            self.begin(part, UNHURT)
            wanted[part] = self.settled(part, UNHURT)
        count, cut = 0, dict.fromkeys(self.CUT)  # None: the part has more writes than `count`
        while None in cut.values():
            name = f"cut-{count}"
            for part in self.LIFE:
                if part in cut and cut[part] is None:
                    self.cluster.processes.stop("next")
                    if not self.kill_after(count, part, name):
                        cut[part] = count
                    self.proxy.obey()
                    self.serve_by_proxy("next")
                else:
                    self.begin(part, name)
                self.settled(part, name, wanted[part])
            self.api.delete("pytorchjobs", name)
            count += 1
            self.assertLess(count, 40)
        print(f"writes of each part: {cut}")
        self.assertGreater(min(cut.values()), 0)


class Starts(KillsCase):
    LIFE, CUT = ("start", "end"), ("start", "end")

    def test_between_any_two_writes(self):
        self.judge()


class Failures(KillsCase):
    LIFE, CUT = ("start", "failure", "fatal"), ("failure", "fatal")

    def test_between_any_two_writes(self):
        self.judge()


class Suspensions(KillsCase):
    LIFE, CUT = ("start", "failure", "suspend", "resume"), ("suspend", "resume")

    def test_between_any_two_writes(self):
        self.judge()


if __name__ == "__main__":
    class_runner.main()
