# SPDX-License-Identifier: Apache-2.0
"""The network to the API server is bad. A TrainJob still completes, with one Job, one Service and one snapshot."""

import itertools
import json
import os
import subprocess
import tempfile
import threading

from cluster_case import BIN
from controller_case import TRUE, WAIT, ControllerCase, is_true

import class_runner
from api_proxy import Fault, status_answer
from scenario import runtime


def watch_line(kind, made):
    return json.dumps({"type": kind, "object": made}).encode() + b"\n"


class Wire(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.proxy, cls.through_proxy = cls.start_proxy()

    def setUp(self):
        self.tries = {}  # how often each request came, by method and path

    def first_tries(self, *faults, of=lambda request: True):
        """A rule: the first tries of each request get these faults in turn; the next try passes."""

        def rule(request):
            if not of(request):
                return None
            key = (request.method, request.path, request.is_watch)
            self.tries[key] = self.tries.get(key, 0) + 1
            return faults[self.tries[key] - 1] if self.tries[key] <= len(faults) else None

        return rule

    def trains(self, name, rule, seconds=WAIT, also=None):
        """Runs a job from its creation to its end, with its own controller, which ends once the event `also` is set."""
        self.proxy.obey(rule)
        child = self.start_controller(name, "--no-leader-elect", kubeconfig=self.through_proxy)
        self.addCleanup(self.cluster.processes.stop, name)
        self.make(name, runtime("", 2, container=TRUE))
        self.await_job(name, lambda job: job.get("status", {}).get("state") == "Running", seconds)
        (job,) = self.items("jobs", name)
        self.finish(name)
        done = self.await_job(name, is_true("Complete"), seconds)
        self.assertIsNone(child.poll())
        self.assertEqual([same["metadata"]["uid"] for same in self.items("jobs", name)], [job["metadata"]["uid"]])
        self.assertEqual(
            (job["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"], done["status"]["restarts"]), ("0", 0)
        )
        self.assertEqual(len(self.items("pods", name)), 2)
        for kind in ("services", "configmaps"):
            owned = [
                each
                for each in self.api.items(kind)
                if any(owner["uid"] == done["metadata"]["uid"] for owner in each["metadata"].get("ownerReferences", []))
            ]
            self.assertEqual(len(owned), 1, kind)
        if also is not None:
            self.assertTrue(also.wait(seconds))
        self.cluster.processes.stop(name)

    def test_watches_are_cut_after_some_bytes(self):
        sizes = {"trainjobs": [1, 4096], "jobs": [7, 512], "pods": [64, 1000]}
        all_cut = threading.Event()

        def rule(request):
            left = sizes.get(request.resource) if request.is_watch else None
            cut = left.pop(0) if left else None
            if not any(sizes.values()):
                all_cut.set()
            return Fault(cut=cut)

        self.trains("bytes", rule, also=all_cut)

    def test_a_watch_is_cut_at_each_byte_of_an_event(self):
        """A bookmark comes before the event, so the informer starts the next watch at once. It may list the job
        meanwhile."""
        held, cuts, all_cut = [], itertools.count(), threading.Event()

        def stream(lines, send):
            for line in lines:
                if json.loads(line)["object"]["metadata"].get("name") == "each-byte":
                    held.append(line)
                    return
                send(line)

        def rule(request):
            if not request.is_watch or request.resource != "trainjobs" or (held and request.is_stream):
                return None
            if not held:
                return Fault(stream=stream)
            size = next(cuts)
            if size >= len(held[0]):
                all_cut.set()
                return None
            bookmark = watch_line(
                "BOOKMARK", {"kind": "TrainJob", "metadata": {"resourceVersion": request.fields["resourceVersion"]}}
            )
            return Fault(
                answer=(200, {"Content-Type": "application/json"}, bookmark + held[0]), cut=len(bookmark) + size
            )

        self.trains("each-byte", rule, also=all_cut)

    def test_versions_have_expired(self):
        """Error 410 for a resumed watch, as answer and as event, and for the next page of a list (of 1 object each).
        The server has no streams."""
        gone = status_answer(410, "Expired")
        told = watch_line("ERROR", json.loads(gone[2]))
        faults = {
            "watch": self.first_tries(
                Fault(cut=700), Fault(answer=gone), Fault(cut=600), Fault(answer=(200, {}, told))
            ),
            "list": self.first_tries(Fault(answer=gone), of=lambda request: "continue" in request.fields),
        }

        def rule(request):
            if request.is_stream:
                return Fault(answer=status_answer(422, "Invalid"))
            if request.is_watch:
                return faults["watch"](request)
            if not request.is_page:
                return None
            return faults["list"](request) or Fault(query=request.query.replace("limit=500", "limit=1"))

        for number in range(2):  # so that lists have several pages
            self.api.create(
                "trainingruntimes", {**runtime("", 1, container=TRUE), "metadata": {"name": f"page-{number}"}}
            )
        self.trains("expired", rule)
        lists = [
            request for request in self.proxy.requests if request.is_page and request.resource != "jobsets"
        ]  # there are none here
        self.assertEqual({request.status for request in lists}, {200, None})

    def test_streams_are_cut_before_the_mark(self):
        """The list that a stream began comes by pages."""
        for number in range(2):
            self.api.create(
                "trainingruntimes", {**runtime("", 1, container=TRUE), "metadata": {"name": f"stream-{number}"}}
            )

        def stream(lines, send):
            send(next(lines))  # an object, or the mark

        self.trains("streams", lambda request: Fault(stream=stream) if request.is_stream else None)
        pages = {request.resource for request in self.proxy.requests if request.is_page}
        self.assertIn("trainingruntimes", pages)
        self.assertNotIn("jobsets", pages)  # its stream was refused: there are none here

    def test_history_is_compacted_while_watches_stand_still(self):
        """The API server is restarted, so its cache is empty. The informer must list what the held watches missed."""
        held = threading.Event()
        self.addCleanup(held.set)
        self.proxy.obey()
        child = self.start_controller("forgotten", "--no-leader-elect", kubeconfig=self.through_proxy)
        self.addCleanup(self.cluster.processes.stop, "forgotten")
        for name in ("goes", "stays"):
            self.make(name, runtime("", 2, container=TRUE))
            self.running(name)
        self.proxy.obey(lambda request: Fault(stream=lambda lines, send: held.wait()) if request.is_watch else None)
        with self.proxy.lock:
            cut = {(request.path, request.fields.get("fieldSelector")) for request in self.proxy.streams}
        self.assertGreater(len(cut), 5)
        self.proxy.cut_watches()
        self.proxy.await_(
            lambda: (
                cut
                == {
                    (request.path, request.fields.get("fieldSelector"))
                    for request in self.proxy.requests
                    if request.is_watch and request.status == 200
                }
            ),
            "all watches again",
        )
        self.api.delete("trainjobs", "goes")
        self.finish("stays")
        self.make("comes", runtime("", 2, container=TRUE))
        self.cluster.compact()
        self.cluster.restart_api_server()
        self.proxy.obey()
        held.set()
        self.await_job("stays", is_true("Complete"))
        self.running("comes")
        self.make("goes")  # the same name as the job whose deletion no watch reported
        self.running("goes")
        self.assertIsNone(child.poll())
        self.proxy.await_(
            lambda: (
                {"trainjobs", "jobs", "pods"}
                <= {request.resource for request in self.proxy.requests if request.is_stream or request.is_page}
            ),
            "lists",
        )

    def test_an_answer_comes_after_its_object_has_gone(self):
        """The Service is deleted before the controller hears that it has made it. The deletion counts."""
        told, go = threading.Event(), threading.Event()
        self.addCleanup(go.set)

        def stream(lines, send):
            for line in lines:
                send(line)
                event = json.loads(line)
                if (event["type"], event["object"]["metadata"].get("name")) == ("DELETED", "late"):
                    told.set()

        def rule(request):
            if request.is_watch and request.resource == "services":
                return Fault(stream=stream)
            return Fault(hold=go) if (request.method, request.resource) == ("POST", "services") else None

        self.proxy.obey(rule)
        self.start_controller("late", "--no-leader-elect", kubeconfig=self.through_proxy)
        self.addCleanup(self.cluster.processes.stop, "late")
        self.make("late", runtime("", 1, container=TRUE))
        first = self.api.await_object("services", "late", lambda service: True)
        self.api.delete("services", "late")
        self.assertTrue(told.wait(WAIT))
        go.set()
        self.api.await_object(
            "services", "late", lambda service: service["metadata"]["uid"] != first["metadata"]["uid"]
        )
        self.running("late")

    def test_protobuf_means_the_same_as_json(self):
        """The controller reads pods and Jobs from protobuf: all that there are now mean the same in JSON."""
        self.start_controller("same", "--no-leader-elect")
        self.addCleanup(self.cluster.processes.stop, "same")
        sidecar = {"initContainers": [{"name": "sidecar", "image": "busybox", "restartPolicy": "Always"}]}
        for name, pod in (
            ("runs", {}),
            ("ends", sidecar),
            ("waits", {"schedulingGates": [{"name": "example.com/gate"}]}),
        ):
            self.make(name, runtime("", 2, container=TRUE, pod=pod))
        self.running("runs")
        self.running("ends")
        self.finish("ends", "failed", rank=1, code=3)
        self.await_job("ends", is_true("Failed"))
        self.api.await_items("pods", "jobset.sigs.k8s.io/jobset-name=waits", lambda pods: len(pods) == 2)
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("pods", "jobs"):
                files = []
                for name, accept in (("protobuf", "application/vnd.kubernetes.protobuf"), ("json", "application/json")):
                    files.append(os.path.join(folder, f"{kind}.{name}"))
                    with open(files[-1], "wb") as file:
                        file.write(self.api.raw(self.api.path(kind), accept))
                compared = subprocess.run([os.path.join(BIN, "same_objects"), *files], capture_output=True, text=True)
                self.assertEqual((compared.returncode, compared.stdout), (0, ""))

    def test_storms_of_429(self):
        storm = Fault(answer=status_answer(429, "TooManyRequests", {"Retry-After": "1"}))
        at_once = Fault(answer=status_answer(429, "TooManyRequests", {"Retry-After": "0"}))
        plain = Fault(answer=status_answer(429, "TooManyRequests"))
        self.trains("storm", self.first_tries(*[at_once] * 5, storm, plain))

    def test_each_byte_by_itself(self):
        self.trains("drops", lambda request: Fault(by_byte=True))

    def test_answers_of_writes_are_lost(self):
        """The write has succeeded, but its answer is cut: before its head, after its head, or in its body."""
        lost = [Fault(cut=-1), Fault(cut=0), Fault(cut=100)]

        def rule(request):
            if not request.is_write:
                return None
            tries = self.tries.setdefault((request.method, request.path), iter(lost))
            return next(tries, None)

        self.trains("lost", rule)

    def test_the_server_fails(self):
        html = (502, {"Content-Type": "text/html"}, b"<html>Bad Gateway</html>")
        faults = itertools.cycle(
            [
                Fault(answer=status_answer(500, "InternalError")),
                Fault(answer=html),
                Fault(lost=True),
                Fault(answer=status_answer(503, "ServiceUnavailable")),
            ]
        )

        def rule(request):
            key = (request.method, request.path, request.is_watch)
            self.tries[key] = self.tries.get(key, 0) + 1
            return next(faults) if self.tries[key] == 1 else None

        self.trains("failing", rule)


if __name__ == "__main__":
    class_runner.main()
