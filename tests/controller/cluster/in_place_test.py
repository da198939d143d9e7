"""Restarts in the pods of a running job, as its agents tell of them. The agent here is a server of the test."""
import http.server
import json
import threading

from controller_case import TRUE, ControllerCase
import class_runner
from scenario import runtime


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


class InPlace(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start_controller()

    def test_restarts_are_counted_while_they_happen(self):
        server = http.server.ThreadingHTTPServer((self.cluster.address, 0), Agent)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        container = {**TRUE, "env": [{"name": "MUSTER_HTTP_PORT", "value": str(server.server_port)}]}
        self.make("again", runtime("", 2, container=container))
        self.running("again")
        pods = {pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]: pod for pod in self.items("pods", "again")}
        Agent.said = {"restart_count": 1, "max_restarts": 6, "overcome": {
            "rank": 1, "node": "n", "host": "again-node-0-1", "pid": 7, "exit_code": 139, "signal": "SIGSEGV",
            "ended_unix_ms": 1800000000000, "stderr_reason": "Segmentation fault in custom_ops.so"}}
        for pod in pods.values():
            address = self.cluster.address
            self.api.patch("pods", pod["metadata"]["name"], {"status": {"podIP": address, "podIPs": [{"ip": address}]}}, "status")
        job = self.await_job("again", lambda job: job["status"].get("restarts") == 1)
        self.assertEqual(job["status"]["state"], "Running")
        failure, = job["status"]["failures"]
        self.assertEqual((failure["pod"], failure["rank"], failure["nodeRank"], failure["exitCode"], failure["message"]),
                         (pods["1"]["metadata"]["name"], 1, 1, 139, "Segmentation fault in custom_ops.so"))
        events = self.api.await_items("events", "", lambda events: any(
            event["reason"] == "Restarted" and event["involvedObject"]["name"] == "again" for event in events))
        said = next(event["message"] for event in events if event["reason"] == "Restarted")
        self.assertIn("Segmentation fault in custom_ops.so; the training started again in its pods", said)


if __name__ == "__main__":
    class_runner.main()
