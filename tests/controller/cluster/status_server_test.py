# SPDX-License-Identifier: Apache-2.0
"""Pods post the progress of their training to a real controller, with tokens of a real API server."""

import http.client
import json
import os
import ssl
import subprocess

from cluster_case import BIN, MANIFESTS, NAMESPACE
from controller_case import TRUE, WAIT, ControllerCase

import class_runner
from scenario import runtime

AUDIENCE = "trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs/{}/status"  # as upstream's
PATH = f"/apis/{AUDIENCE}"
PROGRESS = {
    "progressPercentage": 40,
    "estimatedRemainingSeconds": 60,
    "metrics": [{"name": "loss", "value": "0.25"}],
    "lastUpdatedTime": "2026-01-01T00:00:00Z",
}


class StatusServer(ControllerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster.kubectl(
            "apply", "--server-side", "-f", os.path.join(MANIFESTS, "components", "status-server", "rbac.yaml")
        )
        ports = [f"{cls.cluster.address}:{cls.cluster.port(name)}" for name in ("webhooks", "status")]
        cls.server = ports[1]
        cls.start_controller("controller", "--webhook-listen", ports[0], "--status-listen", ports[1])
        cls.cluster.processes.await_url(
            "controller", f"http://{cls.cluster.address}:{cls.cluster.port('controller')}/readyz", seconds=WAIT
        )

    def started(self, name):
        """Starts a job and returns its pod."""
        self.make(name, runtime("", 1, container=TRUE))
        self.running(name)
        [pod] = self.items("pods", name)
        return pod

    def token(self, pod, audience):
        """A token, requested as the kubelet does."""
        name = pod["metadata"]["name"]
        answer = self.api.ask(
            "POST",
            self.api.path("serviceaccounts", "default", "token"),
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {
                    "audiences": [audience],
                    "expirationSeconds": 3600,
                    "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": pod["metadata"]["uid"]},
                },
            },
        )
        return answer["status"]["token"]

    def post(self, pod, body, job=None, token=None):
        """Posts as a program in the pod does, by its environment. Returns (code, answer)."""
        [container] = [one for one in pod["spec"]["containers"] if one["name"] == "node"]
        told = {one["name"]: one.get("value") for one in container["env"]}
        url = told["KUBEFLOW_TRAINER_SERVER_URL"]
        [projected] = [
            volume["projected"] for volume in pod["spec"]["volumes"] if volume["name"] == "kubeflow-trainer-token"
        ]
        account, authority = projected["sources"][0]["serviceAccountToken"], projected["sources"][1]["configMap"]
        if token is None:
            token = self.token(pod, account["audience"])
        pem = self.api.get("configmaps", authority["name"])["data"]["ca.crt"]
        connection = http.client.HTTPSConnection(
            self.server, context=ssl.create_default_context(cadata=pem), timeout=WAIT
        )
        path = url[url.index("/apis") :]
        self.assertEqual(url, f"https://{self.server}{path}")
        if job:
            path = PATH.format(NAMESPACE, job)
        try:
            connection.request(
                "POST",
                path,
                body if isinstance(body, str) else json.dumps(body),
                {"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
            )
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, json.loads(text) if answer.headers["Content-Type"] == "application/json" else text
        finally:
            connection.close()

    def trainer_status(self, name):
        return self.api.get("trainjobs", name)["status"].get("trainerStatus")

    def test_a_pod_posts_its_progress(self):
        pod = self.started("posts")
        self.assertEqual(self.post(pod, {"trainerStatus": PROGRESS}), (200, {"trainerStatus": PROGRESS}))
        self.assertEqual(self.trainer_status("posts"), PROGRESS)
        less = {"progressPercentage": 50, "lastUpdatedTime": "2026-01-01T00:01:00Z"}
        self.assertEqual(self.post(pod, {"trainerStatus": less})[0], 200)
        self.assertEqual(self.trainer_status("posts"), less)  # the whole trainerStatus is replaced
        self.assertEqual(self.post(pod, {}), (200, {}))
        self.assertEqual(self.trainer_status("posts"), less)
        self.finish("posts")
        job = self.await_job("posts", lambda job: job["status"]["state"] == "Complete")
        self.assertEqual(job["status"]["trainerStatus"], less)  # the controller's own writes do not change it
        owners = [
            one["manager"]
            for one in job["metadata"]["managedFields"]
            if "f:trainerStatus" in one["fieldsV1"].get("f:status", {})
        ]
        self.assertEqual(owners, ["trainer-status"])
        least = {"lastUpdatedTime": "2026-01-01T00:02:00Z"}
        self.assertEqual(self.post(pod, {"trainerStatus": least})[0], 200)
        self.assertEqual(self.trainer_status("posts"), least)  # also after the controller has written its own status

    def test_what_is_wrong_is_refused(self):
        pod = self.started("wrong")
        for body, code, why in (
            (
                {"trainerStatus": {"progressPercentage": 101, "lastUpdatedTime": PROGRESS["lastUpdatedTime"]}},
                422,
                "less than or equal to 100",
            ),
            (
                {"trainerStatus": {"progressPercentage": 1}},
                422,
                "lastUpdatedTime is required when trainerStatus is present",
            ),
            (
                {"trainerStatus": {"progressPercentage": "far", "lastUpdatedTime": PROGRESS["lastUpdatedTime"]}},
                422,
                "progressPercentage",
            ),
            ("{", 422, "Invalid payload"),
            ({"trainerStatus": 1}, 422, "Invalid payload"),
        ):
            with self.subTest(body):
                status, answer = self.post(pod, body)
                self.assertEqual((status, answer["code"], answer["kind"]), (code, code, "Status"))
                self.assertIn(why, answer["message"])
        self.assertEqual(self.post(pod, "x" * 70_000)[0], 413)
        self.assertIsNone(self.trainer_status("wrong"))

    def test_others_are_kept_out(self):
        mine, other = self.started("mine"), self.started("theirs")
        body = {"trainerStatus": PROGRESS}
        for what, pod, job, token, why in (
            ("no token", mine, None, "", "Forbidden"),
            ("not signed by the API server", mine, None, "a.b.c", "not valid"),
            ("a token for the API server", mine, None, self.token(mine, "https://kubernetes.default.svc"), "not valid"),
            (
                "a token for another job",
                mine,
                "theirs",
                self.token(mine, AUDIENCE.format(NAMESPACE, "mine")),
                "not valid",
            ),
            (
                "another job's pod, with a token for this one",
                mine,
                None,
                self.token(other, AUDIENCE.format(NAMESPACE, "mine")),
                "none of TrainJob",
            ),
            (
                "a token of no pod",
                mine,
                None,
                self.cluster.kubectl(
                    "create", "token", "default", "-n", NAMESPACE, f"--audience={AUDIENCE.format(NAMESPACE, 'mine')}"
                ).strip(),
                "bound to no pod",
            ),
        ):
            with self.subTest(what):
                status, answer = self.post(pod, body, job, token)
                self.assertEqual((status, answer["reason"]), (403, "Forbidden"), answer)
                self.assertIn(why, answer["message"])
        self.assertIsNone(self.trainer_status("mine"))
        self.assertIsNone(self.trainer_status("theirs"))

    def test_wrong_flags_are_named(self):
        for flags, said in (
            (["--status-listen", ":0"], "--status-listen needs --webhook-listen"),
            (
                ["--webhook-listen", ":0", "--status-listen", "10443"],
                "--status-listen '10443': want HOST:PORT or :PORT",
            ),
        ):
            done = subprocess.run(
                [
                    os.path.join(BIN, "muster-controller"),
                    "run",
                    "--kubeconfig",
                    self.kubeconfig,
                    "--listen",
                    f"{self.cluster.address}:0",
                    *flags,
                ],
                env=self.cluster.environment,
                capture_output=True,
                text=True,
                timeout=WAIT,
            )
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(said, done.stderr)

    def test_a_job_that_has_gone(self):
        pod = self.started("gone")
        token = self.token(pod, AUDIENCE.format(NAMESPACE, "gone"))
        self.api.delete("trainjobs", "gone", "Orphan")
        self.api.await_gone("trainjobs", "gone")
        status, answer = self.post(pod, {"trainerStatus": PROGRESS}, token=token)
        self.assertEqual((status, answer["message"]), (404, "Train job not found"))


if __name__ == "__main__":
    class_runner.main()
