#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures muster-controller with PyTorchJobs on a real API server whose nodes kwok simulates; prints a table.

    tests/bench/pytorch_bench.py [--repeat N]

Each time is taken when an event arrives at a watch of this program. It takes about 3 minutes.
"""

import argparse
import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [
    os.path.join(ROOT, folder) for folder in ("e2e/cluster", "e2e/controller", "tests", "tests/controller/cluster")
]

from pytorch_case import LABEL, PyTorchCase

from api_client import Refused

JOBS, WORKERS, AT_ONCE = 200, 3, 32


class Watch:
    """When each key that `rule` gives for an object first came. In a process of its own: slow watchers are cut off."""

    def __init__(self, api, resource, rule):
        self.moments, self.changed = {}, threading.Condition()
        self.come = multiprocessing.Queue()
        self.process = multiprocessing.Process(target=self.follow, args=(api, resource, rule), daemon=True)
        self.process.start()
        threading.Thread(target=self.take, daemon=True).start()

    def follow(self, api, resource, rule):
        while True:
            with contextlib.suppress(Refused):  # the server's cache is behind: tries again
                for _, made in api.events(resource, seconds=600):
                    now = time.monotonic()  # the same clock in all processes
                    for key in rule(made):
                        self.come.put((key, now))

    def take(self):
        while True:
            key, moment = self.come.get()
            with self.changed:
                self.moments.setdefault(key, moment)
                self.changed.notify_all()

    def await_all(self, keys, seconds=300):
        keys = set(keys)
        with self.changed:
            if not self.changed.wait_for(
                lambda: len(self.moments) >= len(keys) and all(key in self.moments for key in keys), seconds
            ):
                raise SystemExit(
                    f"of {len(keys)} objects {sum(key in self.moments for key in keys)} came within {seconds} s"
                )
            return [self.moments[key] for key in keys]

    def end(self):
        self.process.kill()


def spread(values, unit, factor=1.0):
    low, middle, high = (f"{value * factor:.3g}" for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} ({low}-{high}) {unit}"


class Bench(PyTorchCase):
    def runTest(self):
        pass

    def together(self, calls):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda call: call(), calls))

    def names(self, job):
        return [f"{job}-master-0", *(f"{job}-worker-{i}" for i in range(WORKERS))]

    def burst(self, prefix, create):
        """Seconds from before the first creation to the arrival of the last pod."""
        pods = Watch(self.api, "pods", lambda pod: [pod["metadata"]["name"]])
        begun = time.monotonic()
        self.together(create)
        last = max(pods.await_all([name for i in range(JOBS) for name in self.names(f"{prefix}{i}")]))
        pods.end()
        return last - begun

    def jobs(self, prefix):
        return [lambda i=i: self.create_job(f"{prefix}{i}", workers=WORKERS) for i in range(JOBS)]

    def copies(self, prefix, model):
        """Creates the Services and pods of a job again, for other jobs."""
        text = json.dumps(model)
        made = [
            json.loads(text.replace(model[0][1]["metadata"]["labels"][LABEL + "job-name"], f"{prefix}{i}"))
            for i in range(JOBS)
        ]
        return [lambda kind=kind, each=each: self.api.create(kind, each) for one in made for kind, each in one]

    def model(self, name):
        made = []
        for kind in ("services", "pods"):
            for each in self.of(kind, name).values():
                meta, spec = each["metadata"], each["spec"]
                for field in ("nodeName", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                    spec.pop(field, None)
                made.append(
                    (
                        kind,
                        {
                            "metadata": {
                                "name": meta["name"],
                                "labels": meta["labels"],
                                "annotations": meta.get("annotations", {}),
                            },
                            "spec": spec,
                        },
                    )
                )
        return made

    def clean(self):
        """Deletes all jobs with their pods and Services. The garbage collector alone would take minutes."""
        for kind in ("pytorchjobs", "pods", "services"):
            self.api.ask(
                "DELETE", self.api.path(kind), {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
            )
        for kind in ("pytorchjobs", "pods", "services"):
            self.cluster.kubectl("wait", kind, "-n", "vision", "--all", "--for=delete", "--timeout=300s", seconds=330)

    def ends(self, name, code, number):
        """Milliseconds from the arrival of a pod's phase Failed to that of the condition Failed, or of the new pod."""
        failed = Watch(
            self.api, "pods", lambda pod: [pod["metadata"]["uid"]] if pod["status"].get("phase") == "Failed" else []
        )
        made = Watch(self.api, "pods", lambda pod: [(pod["metadata"]["name"], pod["metadata"]["uid"])])
        over = Watch(
            self.api,
            "pytorchjobs",
            lambda job: (
                [job["metadata"]["name"]]
                if any(
                    (c["type"], c["status"]) == ("Failed", "True") for c in job.get("status", {}).get("conditions", [])
                )
                else []
            ),
        )
        took = []
        for i in range(number):
            job = f"{name}{i}"
            self.create_job(job, workers=WORKERS)
            self.await_running(job)
            pod = f"{job}-worker-1"
            uid = self.uid(pod)
            self.end(pod, code)
            (begun,) = failed.await_all([uid])
            if code < 128:
                (end,) = over.await_all([job])
            else:
                self.await_other(pod, uid)
                (end,) = made.await_all([(pod, self.uid(pod))])
            took.append(end - begun)
        for watch in (failed, made, over):
            watch.end()
        return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    Bench.setUpClass()
    try:
        bench, ours, bare = Bench(), [], []
        bench.cluster.add_fake_nodes(2)
        bench.serve("first", "--workers", str(AT_ONCE))
        bench.create_job("model", workers=WORKERS)
        bench.await_running("model")
        model = bench.model("model")
        bench.clean()
        for turn in range(repeat):
            ours.append(bench.burst(f"ours{turn}-", bench.jobs(f"ours{turn}-")))
            bench.clean()
            bare.append(bench.burst(f"bare{turn}-", bench.copies(f"bare{turn}-", model)))
            bench.clean()
        ratio = statistics.median(ours) / statistics.median(bare)
        rows = [
            (
                (
                    f"{JOBS} PyTorchJobs of 1 + {WORKERS} at once: last pod exists; "
                    f"beside a loop that only creates the same pods and Services"
                ),
                "<= 1.3 times",
                f"{spread(ours, 's')}; loop {spread(bare, 's')}: {ratio:.3g} times",
            ),
            ("pod ends with 3 -> condition Failed", "<= 150 ms", spread(bench.ends("fatal", 3, 10), "ms", 1000)),
            (
                "pod ends with 137 -> its replacement exists",
                "<= 150 ms",
                spread(bench.ends("again", 137, 10), "ms", 1000),
            ),
        ]
    finally:
        Bench.doClassCleanups()
    print("| what | goal | measured |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
