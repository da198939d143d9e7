# SPDX-License-Identifier: Apache-2.0
"""A controller is killed between any two of its writes. The next one must reach the same result as without a kill.

Each job goes through one life: start, failure and restart of the step, suspend, resume, end. In each part a controller
may write k times; its next write does not reach the API server, and it is killed. Another controller takes over.
"""

import json

from controller_case import OFF, ONCE, TRUE, ControllerCase, is_true

import class_runner
from api_proxy import WriteLimit
from scenario import runtime

UNHURT = "unhurt"  # the job during which no controller is killed
PARTS = ("start", "failure", "suspend", "resume", "end")


def plain(value, name):
    """`value` as JSON gives it back, without the job's name, to compare jobs."""
    return json.loads(json.dumps(value).replace(name, "JOB"))


class Kills(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.proxy, cls.through_proxy = cls.start_proxy()

    # ---- the parts: what begins each, and what it comes to

    def begin(self, part, name):
        if part == "start":
            made = runtime("", 2, container=TRUE, annotations=OFF, **ONCE)
            made["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": 1}
            self.make(name, made)
        elif part == "failure":
            self.finish(name, "failed", rank=1, code=3)
        elif part == "end":
            self.finish(name)
        else:
            self.patch(name, {"suspend": part == "suspend"})

    @staticmethod
    def is_reached(part, job):
        status = job.get("status", {})
        if part == "end":
            return is_true("Complete")(job)
        state, attempt = {
            "start": ("Running", 0),
            "failure": ("Running", 1),
            "suspend": ("Suspended", 1),
            "resume": ("Running", 1),
        }[part]
        counts = (status.get("jobsStatus") or [{}])[0]  # the status has none before the job is planned
        is_quiet = part != "suspend" or (counts.get("suspended"), counts.get("active")) == (1, 0)
        return status.get("state") == state and status.get("attempt") == attempt and is_quiet

    def children(self, name):
        jobs = [
            (
                job["metadata"]["name"],
                job["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"],
                job["spec"].get("suspend", False),
                job["metadata"]["annotations"]["muster.dev/restarts-left"],
            )
            for job in self.items("jobs", name)
        ]
        pods = sorted(
            (pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"], pod["status"]["phase"])
            for pod in self.items("pods", name)
        )
        owned = [
            (kind, each["metadata"]["name"])
            for kind in ("services", "configmaps")
            for each in self.api.items(kind)
            if any(owner["name"] == name for owner in each["metadata"].get("ownerReferences", []))
        ]
        return plain({"jobs": jobs, "pods": pods, "owned": owned}, name)

    @staticmethod
    def status(job):
        """The parts of the status that a kill must not change."""
        status = {
            key: value for key, value in job.get("status", {}).items() if key not in ("startTime", "completionTime")
        }
        status["conditions"] = [
            {key: value for key, value in condition.items() if key != "lastTransitionTime"}
            for condition in status.get("conditions", [])
        ]
        status["failures"] = [
            (failure["nodeRank"], failure["exitCode"], failure["counted"]) for failure in status.get("failures", [])
        ]
        return plain(status, job["metadata"]["name"])

    def settled(self, part, name, wanted=None):
        """(status, children) after the part. `wanted`: what they must become."""
        job = self.await_job(
            name, lambda job: self.is_reached(part, job) and (not wanted or self.status(job) == wanted[0])
        )
        phases = {"suspend": [], "end": ["Succeeded"] * 2}.get(part, ["Running"] * 2)
        for _ in self.api.states("pods", f"jobset.sigs.k8s.io/jobset-name={name}"):
            seen = self.children(name)
            if seen == wanted[1] if wanted else [phase for _, phase in seen["pods"]] == phases:
                break
        if wanted:
            self.assertEqual(seen, wanted[1], f"{part} of {name}")
        return self.status(job), seen

    # ---- one part with a kill

    def kill_after(self, count, part, name):
        """Kills the controller after `count` writes. False: the part has no more."""
        limit = WriteLimit(count)
        self.proxy.obey(limit)
        self.start_controller("killed", "--no-leader-elect", kubeconfig=self.through_proxy)
        self.begin(part, name)

        def is_over():
            answers = [
                request.answer for request in self.proxy.writes() if request.resource == "trainjobs" and request.answer
            ]
            return any(answer["metadata"]["name"] == name and self.is_reached(part, answer) for answer in answers)

        self.proxy.await_(lambda: limit.is_over or is_over(), f"{count} writes of {part} of {name}")
        self.cluster.processes.kill("killed")
        return limit.is_over

    def test_between_any_two_writes(self):
        wanted = {}
        self.proxy.obey()
        self.start_controller("next", "--no-leader-elect", kubeconfig=self.through_proxy)
        for part in PARTS:
            self.begin(part, UNHURT)
            wanted[part] = self.settled(part, UNHURT)
        self.cluster.processes.stop("next")
        count, cut = 0, dict.fromkeys(PARTS)  # None: the part has more writes than `count`
        while None in cut.values():
            name = f"cut-{count}"
            for part in PARTS:
                is_begun = cut[part] is None
                if is_begun and not self.kill_after(count, part, name):
                    cut[part] = count
                self.proxy.obey()
                self.start_controller("next", "--no-leader-elect", kubeconfig=self.through_proxy)
                if not is_begun:
                    self.begin(part, name)
                self.settled(part, name, wanted[part])
                self.cluster.processes.stop("next")
            self.api.delete("trainjobs", name)
            count += 1
            self.assertLess(count, 40)
        print(f"writes of each part: {cut}")
        self.assertGreater(min(cut.values()), 0)


if __name__ == "__main__":
    class_runner.main()
