# SPDX-License-Identifier: Apache-2.0
"""Objects of 1.5 MB and reviews of 6 MB, many at a time. Each has an answer that says why, and other users are served
meanwhile."""

import concurrent.futures
import copy
import json
import ssl
import threading
import urllib.error
import urllib.request

from admission_case import AdmissionCase
from controller_case import TRUE, WAIT, is_true

import class_runner
from api_client import Refused
from hostile_test import MOST_MEMORY, peak
from scenario import runtime, train_job

STORED = 1_400_000  # bytes: etcd holds 1.5 MiB
JOBS = 10


def many(element, size=STORED):
    """JSON text of a list of so many bytes."""
    return "[" + ",".join([element] * (size // (len(element) + 1))) + "]"


def patch(jobs):
    return [{"manager": "a.b/c", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}]


# What is large -> the spec of a TrainJob with "TEXT" in place of the JSON text.
LARGE = {
    "args": ({"trainer": {"command": ["true"], "args": "TEXT"}}, many('""')),
    "env": ({"trainer": {"env": "TEXT"}}, many('{"name":"A","value":""}')),
    "one-argument": ({"trainer": {"command": ["true"], "args": ["TEXT"]}}, '"' + "x" * STORED + '"'),
    "patches": ({"runtimePatches": "TEXT"}, many('{"manager":"a.b/c","trainingRuntimeSpec":{}}')),
    "patched-jobs": ({"runtimePatches": patch("TEXT")}, many('{"name":"node"}')),
    "overrides": ({"podTemplateOverrides": "TEXT"}, many('{"targetJobs":[{"name":"node"}]}')),
    "labels": ({"labels": "TEXT"}, "{" + ",".join(f'"k{number}":"v"' for number in range(90_000)) + "}"),
    "depth": ({"podTemplateOverrides": "TEXT"}, "[" * 5000 + "]" * 5000),
}


def large(what, name):
    spec, text = LARGE[what]
    return json.dumps(train_job(name, "small", **spec)).replace('"TEXT"', text)


class Flood(AdmissionCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.kubectl("create", "namespace", "other")
        cls.other = copy.copy(cls.api)
        cls.other.namespace = "other"
        for api in (cls.api, cls.other):
            api.create("trainingruntimes", {**runtime("small", 1, container=TRUE), "metadata": {"name": "small"}})

    def create(self, what, name):
        """Creates a large TrainJob; returns the refusal, or None."""
        try:
            self.api.create("trainjobs", large(what, name))
        except Refused as refused:
            return refused
        return None

    def post(self, body):
        """Sends a review without credentials. The server may end the connection instead of an answer."""
        asked = urllib.request.Request(
            self.url("one") + "/mutate-trainer-kubeflow-org-v1alpha1-trainjob", body, method="POST"
        )
        try:
            urllib.request.urlopen(asked, context=ssl._create_unverified_context(), timeout=WAIT).close()
        except OSError:
            pass

    def test_each_has_an_answer(self):
        for what in LARGE:
            refused = self.create(what, f"large-{what}")
            if refused is None:
                self.await_job(
                    f"large-{what}", lambda job: job.get("status", {}).get("message") or is_true("Failed")(job)
                )
                continue
            self.assertIn(refused.status, (400, 403, 413, 422), what)
            self.assertGreater(len(json.loads(str(refused).partition(": ")[2])["message"]), 20, what)
            self.assertNotIn("failed calling webhook", str(refused), what)

    def test_others_are_served_meanwhile(self):
        process, stop = self.cluster.processes.children["one"], threading.Event()

        def tenant(number):
            turn = number
            while not stop.is_set():
                self.create(list(LARGE)[turn % len(LARGE)], f"flood-{number}-{turn}")
                turn += 1

        def stranger(number):
            review = f'{{"kind":"AdmissionReview","request":{{"uid":"u","namespace":"n{number}","object":'
            bodies = ["[" + "{}," * 1_900_000 + "0]", "[" * 5_000_000, review + many("{}", 5_000_000) + "}}"]
            turn = number
            while not stop.is_set():
                self.post(bodies[turn % len(bodies)].encode())
                turn += 1

        with concurrent.futures.ThreadPoolExecutor() as pool:
            floods = [pool.submit(flood, number) for flood in (tenant, stranger) for number in range(2)]
            try:
                for number in range(JOBS):
                    self.other.create("trainjobs", train_job(f"small-{number}", "small"))
                    with urllib.request.urlopen(
                        f"http://{self.cluster.address}:{self.cluster.port('one')}/healthz", timeout=WAIT
                    ) as answer:
                        self.assertEqual(answer.status, 200)
                for number in range(JOBS):
                    self.other.await_items(
                        "jobs", f"jobset.sigs.k8s.io/jobset-name=small-{number}", lambda jobs: len(jobs) == 1
                    )
            finally:
                stop.set()
            for flood in floods:
                flood.result()
        self.assertIs(self.cluster.processes.children["one"], process)
        self.assertIsNone(process.poll())
        self.assertLess(peak(process), MOST_MEMORY)


if __name__ == "__main__":
    class_runner.main()
