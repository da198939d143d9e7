# SPDX-License-Identifier: Apache-2.0
"""Restarts in the pods of a running job, lost nodes, the training and its time, as its agents tell of them. The agents
are a server of this test."""

import http.server
import json
import threading
import urllib.parse
import zlib

from controller_case import TRUE
from pytorch_case import LABEL, PyTorchCase, conditions, pytorch_job

import class_runner
from scenario import runtime, shell


class Agent(http.server.BaseHTTPRequestHandler):
    said = {"restart_count": 0}
    changed = threading.Condition()

    @classmethod
    def say(cls, **said):
        with cls.changed:
            cls.said = said
            cls.changed.notify_all()

    @classmethod
    def version(cls):
        return f"{zlib.crc32(json.dumps(cls.said).encode()):08x}"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        with self.changed:
            if "after" in asked:
                self.changed.wait_for(lambda: self.version() != asked["after"], int(asked["wait"]))
            version, said = self.version(), self.said
        known = asked.get("after") == version
        body = b"" if known else json.dumps({**said, "version": version, "source": "coordinator"}).encode()
        self.send_response(404 if path != "/status" else 304 if known else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


BEGAN = 1_800_000_000_000  # when the agent began, in milliseconds


def training(position, seconds):
    """What an agent says whose workers have done `position` of 1,000 steps, and have trained for so many seconds."""
    return {
        "training": {"rank": 0, "unit": "steps", "position": position, "end": 1000, "loss": 0.5, "left_seconds": 30},
        "began_unix_ms": BEGAN,
        "seconds": {"start": 1, "training": seconds},
    }


LOST_ADDRESS = "10.255.0.7"  # no agent is there
FINALIZERS = ["batch.kubernetes.io/job-tracking"]
STAYS = "e2e.muster.dev/stays"


def apart(label, name):
    """Fields of a pod that runs on another node than its peers."""
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**spread, "labelSelector": {"matchLabels": {label: name}}}]}


class InPlace(PyTorchCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.serve()

    def serve_agent(self):
        """Starts the server. Returns a container whose agent it stands for."""
        server = http.server.ThreadingHTTPServer((self.cluster.address, 0), Agent)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        Agent.say(restart_count=0)
        return {"env": [{"name": "MUSTER_HTTP_PORT", "value": str(server.server_port)}]}

    def tell(self, pods, host):
        """The agents tell of one restart, whose cause was on `host`."""
        Agent.say(
            restart_count=1,
            max_restarts=6,
            overcome={
                "rank": 1,
                "node": "n",
                "host": host,
                "pid": 7,
                "exit_code": 139,
                "signal": "SIGSEGV",
                "ended_unix_ms": 1800000000000,
                "stderr_reason": "Segmentation fault in custom_ops.so",
            },
        )
        for pod in pods:
            self.place(pod, self.cluster.address)

    def place(self, pod, address):
        change = {"status": {"podIP": address, "podIPs": [{"ip": address}]}}
        self.api.patch("pods", pod["metadata"]["name"], change, "status")

    def lose(self, pod, speaker):
        """The agent of `speaker` tells that the node of `pod` is lost."""
        self.place(pod, LOST_ADDRESS)
        self.place(speaker, self.cluster.address)
        lost = {"node": "n", "host": "h", "address": LOST_ADDRESS, "how": "closed"}
        lost.update(lost_seconds=0.1, last_heard_seconds=1)
        Agent.say(restart_count=0, heartbeat_timeout_seconds=15, lost=[lost])

    def is_elsewhere(self, pod, lost):
        """`pod` runs on another node than `lost`, and may not run on that one."""
        node = lost["spec"]["nodeName"]
        (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        self.assertEqual(term["matchFields"], [{"key": "metadata.name", "operator": "NotIn", "values": [node]}])
        self.assertNotEqual(pod["spec"]["nodeName"], node)

    def shows(self, job, pod):
        """The job's status and an event have the restart. `pod`: of the cause."""
        (failure,) = job["status"]["failures"]
        self.assertEqual(
            (failure["pod"], failure["rank"], failure["nodeRank"], failure["exitCode"], failure["message"]),
            (pod["metadata"]["name"], 1, 1, 139, "Segmentation fault in custom_ops.so"),
        )

        self.api.await_event(
            job["metadata"]["name"],
            "Restarted",
            words="Segmentation fault in custom_ops.so; the training started again in its pods",
        )

    def test_restarts_are_counted_while_they_happen(self):
        self.make("again", runtime("", 2, container={**TRUE, **self.serve_agent()}))
        self.running("again")
        pods = {
            pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]: pod
            for pod in self.items("pods", "again")
        }
        self.tell(pods.values(), "again-node-0-1")
        job = self.await_job("again", lambda job: job["status"].get("restarts") == 1)
        self.assertEqual(job["status"]["state"], "Running")
        self.shows(job, pods["1"])

    def trains(self, name):
        """A running job of that name, whose agents tell of a training that is a quarter done."""
        self.make(name, runtime("", 2, container={**TRUE, **self.serve_agent()}))
        self.running(name)
        Agent.say(restart_count=0, **training(250, 9))
        for pod in self.items("pods", name):
            self.place(pod, self.cluster.address)
        return self.await_job(name, lambda job: "trainerStatus" in job["status"])

    def test_the_training_shows_in_the_status(self):
        job = self.trains("trains")
        told = job["status"]["trainerStatus"]
        self.assertTrue(told.pop("lastUpdatedTime"))
        metrics = [{"name": "step", "value": "250"}, {"name": "loss", "value": "0.5"}]
        self.assertEqual(
            told, {"progressPercentage": 25, "estimatedRemainingSeconds": 30, "metrics": metrics}, job["status"]
        )
        goodput = self.await_job("trains", lambda job: "goodput" in job["status"])["status"]["goodput"]
        self.assertEqual(goodput["percentage"], 90)
        self.assertEqual(goodput["run"]["seconds"], {"start": 1, "training": 9})
        end = {"version": 1, "exit_code": 0, "class": "success", "node_rank": 0, **training(1000, 99)}
        self.finish("trains", message=json.dumps(end))
        job = self.await_job("trains", lambda job: job["status"]["state"] == "Complete")
        self.assertEqual(job["status"]["goodput"]["percentage"], 99)
        job = self.await_job("trains", lambda job: job["status"]["trainerStatus"]["progressPercentage"] == 100)
        self.assertEqual(job["status"]["trainerStatus"]["metrics"][0], {"name": "step", "value": "1000"})

    def test_what_a_pod_posts_goes_before_what_the_agents_read(self):
        job = self.trains("posts")
        posted = {"progressPercentage": 7, "lastUpdatedTime": "2026-01-01T00:00:00Z"}
        self.api.ask(  # as the status server does
            "PATCH",
            self.api.path("trainjobs", "posts", "status") + "?fieldManager=trainer-status&force=true",
            {key: job[key] for key in ("apiVersion", "kind")}
            | {"metadata": {"name": "posts"}, "status": {"trainerStatus": posted}},
            "application/apply-patch+yaml",
        )
        Agent.say(restart_count=0, **training(500, 19))

        def owners(job):
            return {
                one["manager"]
                for one in job["metadata"]["managedFields"]
                if "f:trainerStatus" in one["fieldsV1"].get("f:status", {})
            }

        job = self.await_job("posts", lambda job: owners(job) == {"trainer-status"})
        self.assertEqual(job["status"]["trainerStatus"], posted)
        Agent.say(restart_count=0, **training(750, 39))
        job = self.await_job("posts", lambda job: job["status"]["goodput"]["percentage"] == 97)
        self.finish("posts")
        job = self.await_job("posts", lambda job: job["status"]["state"] == "Complete")
        self.assertEqual(job["status"]["trainerStatus"], posted)

    def test_a_pod_on_a_lost_node_is_replaced_elsewhere(self):
        pod = apart("jobset.sigs.k8s.io/jobset-name", "lost")
        self.make("lost", runtime("", 2, container={**TRUE, **self.serve_agent()}, pod=pod))
        self.running("lost")
        first, second = sorted(self.items("pods", "lost"), key=lambda pod: pod["metadata"]["name"])
        # It does not end, as on a node that does not answer.
        self.api.patch("pods", second["metadata"]["name"], {"metadata": {"finalizers": [*FINALIZERS, STAYS]}})
        self.lose(second, first)
        words = f"the agents have lost pod {second['metadata']['name']} (node {second['spec']['nodeName']})"
        event = self.api.await_event("lost", "PodLost", words=words)
        name = event["message"].partition("; pod ")[2].split()[0]
        replacement = self.api.await_object("pods", name, lambda pod: pod.get("status", {}).get("phase") == "Running")
        self.is_elsewhere(replacement, second)
        self.assertIn("deletionTimestamp", self.api.get("pods", second["metadata"]["name"])["metadata"])
        self.assertEqual(len(self.items("pods", "lost")), 3, "one word, one new pod")
        self.assertEqual(self.running("lost")["status"]["restarts"], 0)
        self.api.patch("pods", second["metadata"]["name"], {"metadata": {"finalizers": None}})

    def test_of_a_pytorchjob_too(self):
        made = pytorch_job(
            "torch-lost",
            workers=1,
            annotations={"muster.dev/restart": "job"},
            container={"command": shell("torchrun train.py"), **self.serve_agent()},
        )
        for replicas in made["spec"]["pytorchReplicaSpecs"].values():
            replicas["template"]["spec"].update(apart(LABEL + "job-name", "torch-lost"))
        self.api.create("pytorchjobs", made)
        self.await_running("torch-lost")
        pods = self.of("pods", "torch-lost")
        lost = pods["torch-lost-worker-0"]
        self.lose(lost, pods["torch-lost-master-0"])
        self.is_elsewhere(self.await_other("torch-lost-worker-0", lost["metadata"]["uid"]), lost)
        self.assertEqual(self.await_running("torch-lost")["status"].get("restarts", 0), 0)

    def test_of_a_pytorchjob(self):
        self.create_job(
            "torch",
            workers=1,
            annotations={"muster.dev/restart": "job"},
            container={"command": shell("torchrun train.py"), **self.serve_agent()},
        )
        self.await_running("torch")
        pods = {
            pod["metadata"]["labels"][LABEL + "replica-type"]: pod
            for pod in self.api.items("pods", f"{LABEL}job-name=torch")
        }
        self.tell(pods.values(), "torch-worker-0")
        job = self.await_pytorch("torch", lambda job: job["status"].get("restarts") == 1)
        self.assertEqual(conditions(job)[-1], "Running")
        self.shows(job, pods["worker"])


if __name__ == "__main__":
    class_runner.main()
