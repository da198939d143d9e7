# SPDX-License-Identifier: Apache-2.0
"""Admission webhooks: what the real API server accepts, changes and refuses when it asks a real controller."""

import base64
import http.client
import http.server
import json
import ssl
import threading
import urllib.parse

from admission_case import AdmissionCase
from cluster_case import NAMESPACE, changed
from controller_case import TRUE, WAIT, is_true

import class_runner
from scenario import runtime, train_job

ELASTIC = {"numNodes": None, "torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 4}}}
IMAGE = {"image": "another"}
QUEUE = {"kueue.x-k8s.io/queue-name": "q"}
VALIDATE = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"


def patch(pod=None, manager="a.example.com/b", job="node"):
    return {
        "manager": manager,
        "trainingRuntimeSpec": {
            "template": {
                "spec": {
                    "replicatedJobs": [
                        {
                            "name": job,
                            "template": {"spec": {"template": {"spec": pod or {"nodeSelector": {"type": "kwok"}}}}},
                        }
                    ]
                }
            }
        },
    }


# (spec of a new TrainJob, code, what the refusal says)
NOT_CREATED = [
    (
        {"runtimeRef": {"kind": "TrainingRuntime", "name": "none"}},
        403,
        "spec.runtimeRef: Invalid value: 'none': specified trainingRuntime must be created",
    ),
    (
        {"runtimeRef": {"kind": "ClusterTrainingRuntime", "name": "none"}},
        403,
        "specified clusterTrainingRuntime must be created before the TrainJob is created",
    ),
    ({"runtimeRef": {"kind": "Pod", "name": "none"}}, 403, "unsupported runtime: Pod.trainer.kubeflow.org"),
    ({"trainer": {"numProcPerNode": "many"}}, 422, "spec.trainer.numProcPerNode: 'many'"),
    ({"trainer": {"numNodes": -1}}, 422, "spec.trainer.numNodes"),
    (
        {"initializer": {"dataset": {"storageUri": "s3://a"}}},
        403,
        "must have dataset-initializer job when trainJob is configured with input datasetConfig",
    ),
    ({"runtimePatches": [patch(job="nodes")]}, 403, "the runtime has no job 'nodes'; there are: node"),
    ({"runtimePatches": [patch(manager="kueue")]}, 403, "must be a domain-prefixed path"),
    ({"runtimePatches": [patch({"containers": [{"name": "main"}]})]}, 403, "has no container 'main'; there are: node"),
]


class Admission(AdmissionCase):
    def elastic(self, name, **spec):
        self.api.create(
            "trainingruntimes",
            {**changed(runtime(name, 1, container=TRUE), "spec.mlPolicy", {"torch": ELASTIC["torch"]})},
        )
        return self.api.create("trainjobs", train_job(name, name, **spec))

    def update(self, name, spec, labels=None):
        return self.api.patch("trainjobs", name, {"metadata": {"labels": labels or {}}, "spec": spec})

    def post(self, path, body, headers=None):
        url = urllib.parse.urlsplit(self.url("one"))
        context = ssl._create_unverified_context()
        context.load_cert_chain(self.clients.path("api-server.crt"), self.clients.path("api-server.key"))
        connection = http.client.HTTPSConnection(url.hostname, url.port, context=context, timeout=WAIT)
        try:
            connection.request("POST", path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def test_what_is_not_created(self):
        self.api.create("trainingruntimes", runtime("strict", 2, container=TRUE))
        for spec, code, message in NOT_CREATED:
            with self.subTest(message), self.refused(code, message):
                self.api.create("trainjobs", train_job("strict", "strict", **spec))
        self.assertIsNone(self.api.find("trainjobs", "strict"))

    def test_a_gang_that_the_cluster_does_not_know(self):
        self.api.create("trainingruntimes", runtime("gang", 2, container=TRUE))
        job = train_job("gang", "gang", {"muster.dev/gang": "native"})
        with self.refused(
            403,
            "metadata.annotations.muster.dev/gang: native: the cluster does not serve Workload of "
            "scheduling.k8s.io/v1alpha2",
            "feature gates GenericWorkload and GangScheduling",
        ):
            self.api.create("trainjobs", job)

    def test_a_runtime_and_its_job_at_once(self):
        """If the job comes before the watch reports its runtime, the webhook asks the API server for the runtime."""
        for number in range(10):
            self.make(f"both-{number}", runtime("", 1, container=TRUE), suspend=True)

    def test_both_shapes(self):
        self.api.create("trainingruntimes", runtime("shapes", 2, {"torch": {}}, container=TRUE))
        new = self.api.create(
            "trainjobs", train_job("new", "shapes", trainer={"numNodes": 1, "numProcPerNode": 2}, suspend=True)
        )
        self.assertEqual(new["spec"]["trainer"], {"numNodes": 1, "numProcPerNode": 2})
        self.assertNotIn("runtimePatches", new["spec"])
        overrides = [{"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"type": "kwok"}}}]
        made = train_job(
            "old",
            "shapes",
            trainer={"numProcPerNode": "auto"},
            podTemplateOverrides=overrides,
            labels={"a": "b"},
            suspend=True,
        )
        done = self.cluster.try_kubectl("create", "-n", NAMESPACE, "-f", "-", content=json.dumps(made))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Warning: spec.podTemplateOverrides is of v2.1; the patch of manager muster.dev/v21", done.stderr)
        old = self.api.get("trainjobs", "old")
        self.assertEqual(old["spec"]["trainer"], {})
        self.assertEqual(old["spec"]["podTemplateOverrides"], overrides)
        self.assertEqual(old["metadata"]["annotations"]["muster.dev/num-proc-per-node"], "auto")
        (stored,) = old["spec"]["runtimePatches"]
        self.assertEqual(stored["manager"], "muster.dev/v21")
        self.assertTrue(stored["time"])
        # Writing the same spec again, in either shape, changes nothing.
        for again in (made, changed(old, "metadata.resourceVersion", None)):
            self.cluster.kubectl("replace", "-n", NAMESPACE, "-f", "-", content=json.dumps(again))
            self.assertEqual(self.api.get("trainjobs", "old")["metadata"]["generation"], old["metadata"]["generation"])
        with self.refused(422, "spec.trainer.numProcPerNode: field is immutable"):
            self.update("old", {"trainer": {"numProcPerNode": 3}})

    def test_times_of_patches(self):
        self.make("stamps", runtime("", 1, container=TRUE), suspend=True, runtimePatches=[patch()])
        made = self.api.get("trainjobs", "stamps")["spec"]["runtimePatches"][0]
        self.assertTrue(made["time"])
        told = {**patch(), "time": "2020-01-01T00:00:00Z"}
        self.update(
            "stamps",
            {
                "runtimePatches": [told, {**patch(manager="c.example.com/d"), "time": "2020-01-01T00:00:00Z"}],
                "ttlSecondsAfterFinished": 9,
            },
        )
        stored = self.api.get("trainjobs", "stamps")["spec"]["runtimePatches"]
        self.assertEqual([entry["time"] for entry in stored], [made["time"], "2020-01-01T00:00:00Z"])
        self.update("stamps", {"runtimePatches": [{**told, **patch({"nodeSelector": {"type": "other"}})}]})
        self.assertNotEqual(self.api.get("trainjobs", "stamps")["spec"]["runtimePatches"][0]["time"], told["time"])

    def test_what_is_immutable(self):
        self.make(
            "fixed",
            runtime("", 2, container=TRUE),
            trainer={"image": "x", "resourcesPerNode": {"limits": {"cpu": "1000m"}}},
            activeDeadlineSeconds=900,
        )
        for spec, message in (
            ({"trainer": IMAGE}, "spec.trainer.image: field is immutable"),
            ({"trainer": None}, "spec.trainer.image: field is immutable"),
            ({"trainer": {"numNodes": 3}}, "spec.trainer.numNodes: field is immutable while the job runs"),
            ({"initializer": {"model": {"storageUri": "s3://a"}}}, "spec.initializer.model: field is immutable"),
            ({"activeDeadlineSeconds": 800}, "spec.activeDeadlineSeconds: field is immutable"),
            ({"runtimeRef": {"name": "other"}}, "field is immutable"),
            ({"managedBy": "kueue.x-k8s.io/multikueue"}, "field is immutable"),
        ):
            for more in ({}, {"suspend": True}):
                if "numNodes" in str(spec) and more:
                    continue
                with self.subTest(spec=spec, more=more), self.refused(422, message):
                    self.update("fixed", {**spec, **more})
        # The same values in another form, as typed clients write them.
        self.update(
            "fixed",
            {
                "trainer": {"resourcesPerNode": {"limits": {"cpu": "1"}}, "env": [], "args": None},
                "ttlSecondsAfterFinished": 900,
            },
        )
        self.assertEqual(self.api.get("trainjobs", "fixed")["spec"]["ttlSecondsAfterFinished"], 900)

    def test_a_suspended_job(self):
        self.make("held", runtime("", 2, container=TRUE))
        self.running("held")
        with self.refused(
            403, "RuntimePatches can only be modified when the TrainJob is suspended before or after the update"
        ):
            self.update("held", {"runtimePatches": [patch()]})
        with self.refused(
            403, "RuntimePatches cannot be modified when the JobSet's ReplicatedJob node is still active"
        ):
            self.update("held", {"runtimePatches": [patch()], "suspend": True})
        self.update("held", {"suspend": True})
        self.await_job(
            "held",
            lambda job: (
                job["status"].get("state") == "Suspended"
                and not any(part["active"] for part in job["status"]["jobsStatus"])
            ),
        )
        self.update("held", {"trainer": {"numNodes": 3}})
        self.update("held", {"runtimePatches": [patch()], "suspend": False})
        self.running("held")
        self.assertEqual(self.api.get("jobs", "held-node-0")["spec"]["completions"], 3)
        self.finish("held")
        self.await_job("held", is_true("Complete"))
        self.update("held", {"ttlSecondsAfterFinished": 900, "runtimePatches": None})

    def test_the_runtime_is_gone(self):
        self.make("orphan", runtime("", 1, container=TRUE))
        self.running("orphan")
        self.api.delete("trainingruntimes", "orphan")
        self.update("orphan", {"suspend": True})
        self.await_job(
            "orphan",
            lambda job: (
                job["status"].get("state") == "Suspended"
                and not any(part["active"] for part in job["status"]["jobsStatus"])
            ),
        )
        with self.refused(403, "has no job 'nodes'; there are: node"):  # the snapshot says so
            self.update("orphan", {"runtimePatches": [patch(job="nodes")]})
        self.update("orphan", {"runtimePatches": [patch()]})
        self.update("orphan", {"suspend": False})
        self.running("orphan")

    def test_a_scale_is_judged_by_the_runtime(self):
        self.assertEqual(self.elastic("grows")["spec"]["trainer"], {"numNodes": 4})
        self.running("grows")
        self.cluster.kubectl("scale", "trainjob/grows", "-n", NAMESPACE, "--replicas=2")
        self.assertEqual(self.api.get("trainjobs", "grows")["spec"]["trainer"]["numNodes"], 2)
        with self.refused(403, "spec.trainer.numNodes: 5 is not between minNodes 1 and maxNodes 4"):
            self.api.patch("trainjobs", "grows", {"spec": {"replicas": 5}}, "scale")
        with self.refused(403, "spec.trainer.numNodes: 5 is not between"):
            self.update("grows", {"trainer": {"numNodes": 5}})
        # Writing the job without the number is not a change of the number.
        again = train_job("grows", "grows", ttlSecondsAfterFinished=900)
        self.cluster.kubectl("replace", "-n", NAMESPACE, "-f", "-", content=json.dumps(again))
        self.assertEqual(self.api.get("trainjobs", "grows")["spec"]["trainer"]["numNodes"], 2)
        self.make("rigid", runtime("", 2, container=TRUE), trainer={"numNodes": 2})
        with self.refused(422, "spec.trainer.numNodes: field is immutable while the job runs"):
            self.api.patch("trainjobs", "rigid", {"spec": {"replicas": 3}}, "scale")

    def test_a_queue_of_kueue(self):
        self.elastic("queued", suspend=True)
        self.update("queued", {"suspend": False}, QUEUE)
        with self.refused(403, "spec.trainer.numNodes: queue 'q' of Kueue has admitted the job"):
            self.api.patch("trainjobs", "queued", {"spec": {"replicas": 2}}, "scale")
        self.update("queued", {"suspend": True, "trainer": {"numNodes": 2}})

    def test_server_side_apply(self):
        self.elastic("base", suspend=True)
        made = json.dumps(train_job("applied", "base", labels={"a": "b"}, suspend=True))
        path = f"{self.api.path('trainjobs', 'applied')}?fieldManager=somebody"
        versions = {
            self.api.ask("PATCH", path, made, "application/apply-patch+yaml")["metadata"]["generation"]
            for _ in range(3)
        }
        self.assertEqual(versions, {1})
        self.assertEqual(self.api.get("trainjobs", "applied")["spec"]["trainer"], {"numNodes": 4})
        self.api.patch("trainjobs", "applied", {"spec": {"replicas": 2}}, "scale")
        self.api.ask("PATCH", path, made, "application/apply-patch+yaml")
        self.assertEqual(self.api.get("trainjobs", "applied")["spec"]["trainer"], {"numNodes": 2})

    def test_asked_again(self):
        """If another webhook changes the object, the API server calls Muster's webhook a second time."""
        reviews = []

        class Labels(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                reviews.append(review["request"]["object"])
                change = json.dumps([{"op": "add", "path": "/spec/labels", "value": {"second": "webhook"}}]).encode()
                body = json.dumps(
                    {
                        "apiVersion": review["apiVersion"],
                        "kind": review["kind"],
                        "response": {
                            "uid": review["request"]["uid"],
                            "allowed": True,
                            "patchType": "JSONPatch",
                            "patch": base64.b64encode(change).decode(),
                        },
                    }
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        keys = self.cluster.certificates
        keys.serve("labels", "/CN=labels", [f"IP:{self.cluster.address}"])
        server = http.server.ThreadingHTTPServer((self.cluster.address, 0), Labels)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(keys.path("labels.crt"), keys.path("labels.key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        with open(keys.path("ca.crt"), "rb") as file:
            bundle = base64.b64encode(file.read()).decode()
        made = json.loads(json.dumps(next(made for made in self.configurations if made["kind"].startswith("Mutating"))))
        made["metadata"] = {"name": "z-labels"}
        made["webhooks"][0].update(
            name="labels.example.com",
            clientConfig={"url": f"https://{self.cluster.address}:{server.server_port}/", "caBundle": bundle},
            objectSelector={"matchLabels": {"twice": "true"}},
        )
        self.cluster.apply([made])
        self.addCleanup(self.cluster.kubectl, "delete", "mutatingwebhookconfiguration", "z-labels")
        self.api.create("trainingruntimes", runtime("twice", 1, container=TRUE))
        job = changed(train_job("twice", "twice", suspend=True), "metadata.labels", {"twice": "true"})
        while not reviews:  # until the API server calls that webhook
            stored = self.api.ask("POST", f"{self.api.path('trainjobs')}?dryRun=All", job)
        stored = self.api.create("trainjobs", job)
        (entry,) = stored["spec"]["runtimePatches"]
        self.assertEqual(entry["trainingRuntimeSpec"]["template"]["metadata"]["labels"], {"second": "webhook"})

    def test_a_wrong_runtime_is_refused(self):
        with self.refused(403, "'none' is not a replicated job; these are: node"):
            self.api.create(
                "trainingruntimes",
                changed(
                    runtime("wrong", 1),
                    "spec.template.spec.successPolicy",
                    {"operator": "All", "targetReplicatedJobs": ["none"]},
                ),
            )
        self.api.create("trainingruntimes", runtime("right", 1))
        [step] = self.api.get("trainingruntimes", "right")["spec"]["template"]["spec"]["replicatedJobs"]
        with self.refused(403, "always must be 1"):
            self.api.patch(
                "trainingruntimes",
                "right",
                {"spec": {"template": {"spec": {"replicatedJobs": [{**step, "replicas": 2}]}}}},
            )
        exempt = changed(
            runtime("exempt", 1), "metadata.labels", {"trainer.kubeflow.org/webhook-validation": "disabled"}
        )
        self.api.create("trainingruntimes", changed(exempt, "spec.template.spec.replicatedJobs.0.replicas", 2))
        with self.refused(403, "which has 1 replicas"):
            self.api.patch(
                "trainingruntimes",
                "right",
                {"spec": {"template": {"spec": {"coordinator": {"replicatedJob": "node", "jobIndex": 1}}}}},
            )
        made = {**runtime("late", 1), "kind": "ClusterTrainingRuntime"}
        made["metadata"]["labels"] = {"trainer.kubeflow.org/support": "deprecated"}
        done = self.cluster.try_kubectl("create", "-f", "-", content=json.dumps(made))
        self.assertIn('Warning: ClusterTrainingRuntime "late" is deprecated and will be removed', done.stderr)
        job = train_job("late", "late", runtimeRef={"name": "late"}, suspend=True)
        done = self.cluster.try_kubectl("create", "-n", NAMESPACE, "-f", "-", content=json.dumps(job))
        self.assertIn('Warning: Referenced ClusterTrainingRuntime "late" is deprecated', done.stderr)

    def test_a_runtime_that_is_protected(self):
        self.make("guarded", runtime("", 1, container=TRUE))
        self.running("guarded")
        self.api.patch("trainingruntimes", "guarded", {"metadata": {"labels": {"muster.dev/protected": "true"}}})
        with self.refused(
            403, "TrainingRuntime 'guarded' has label muster.dev/protected", "TrainJob 'vision/guarded' uses it"
        ):
            self.api.delete("trainingruntimes", "guarded")
        self.finish("guarded")
        self.await_job("guarded", is_true("Complete"))
        self.api.delete("trainingruntimes", "guarded")

    def test_garbage_does_not_stop_the_webhooks(self):
        for body in (
            b"",
            b"null",
            b"[" * 100000,
            b"\xff" * 1000,
            b'{"apiVersion": "v1", "kind": "Pod"}',
            b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {}}',
        ):
            with self.subTest(body=body[:50]):
                status, text = self.post(VALIDATE, body)
                self.assertEqual(status, 400, text)
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "a",
                "operation": "CREATE",
                "resource": {"resource": "trainjobs"},
                "object": {"spec": 5},
            },
        }
        status, text = self.post(VALIDATE, json.dumps(review))
        self.assertEqual((status, json.loads(text)["response"]["status"]["code"]), (200, 422))
        status, text = self.post(VALIDATE.replace("trainjob", "trainingruntime"), json.dumps(review))
        self.assertEqual(status, 400)
        self.assertIn("this path reviews trainingruntimes, and trainjobs came", text)
        self.assertEqual(self.post("/elsewhere", "{}")[0], 404)
        self.assertEqual(self.post(VALIDATE, None, {"Content-Length": str(7 << 20)})[0], 413)


class Anybody(AdmissionCase):
    """The API server shows no certificate, so the webhooks cannot tell it from a stranger."""

    CERTIFICATE = False
    IMMUTABLE = "spec.trainer.numNodes: field is immutable while the job runs"

    def test_a_runtime_that_is_missing(self):
        self.api.create("trainjobs", train_job("early", "not-yet"))
        self.await_job(
            "early", lambda job: "there is no TrainingRuntime not-yet" in job.get("status", {}).get("message", "")
        )

    def test_an_update_names_the_uid(self):
        self.make("fixed", runtime("", 2, container=TRUE), trainer={"numNodes": 2})
        self.running("fixed")
        with self.refused(422, self.IMMUTABLE):
            self.api.patch("trainjobs", "fixed", {"spec": {"trainer": {"numNodes": 3}}})
        with self.refused(422, self.IMMUTABLE):
            self.api.patch("trainjobs", "fixed", {"spec": {"replicas": 3}}, "scale")


if __name__ == "__main__":
    class_runner.main()
