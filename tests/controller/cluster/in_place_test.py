"""Restarts in the pods of a running job, as its agents tell of them. The agents here are a server of the test."""

import http.server
import json
import threading

from controller_case import TRUE
from pytorch_case import LABEL, PyTorchCase, conditions

import class_runner
from scenario import runtime, shell


class Agent(http.server.BaseHTTPRequestHandler):
    said = {"restart_count": 0}

    def do_GET(self):
        body = json.dumps(type(self).said).encode()
        self.send_response(200 if self.path == "/status" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


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
        Agent.said = {"restart_count": 0}
        return {"env": [{"name": "MUSTER_HTTP_PORT", "value": str(server.server_port)}]}

    def tell(self, pods, host):
        """The agents tell of one restart, whose cause was on `host`."""
        Agent.said = {
            "restart_count": 1,
            "max_restarts": 6,
            "overcome": {
                "rank": 1,
                "node": "n",
                "host": host,
                "pid": 7,
                "exit_code": 139,
                "signal": "SIGSEGV",
                "ended_unix_ms": 1800000000000,
                "stderr_reason": "Segmentation fault in custom_ops.so",
            },
        }
        address = self.cluster.address
        for pod in pods:
            self.api.patch(
                "pods", pod["metadata"]["name"], {"status": {"podIP": address, "podIPs": [{"ip": address}]}}, "status"
            )

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
