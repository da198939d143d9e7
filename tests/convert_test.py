# SPDX-License-Identifier: Apache-2.0
"""`muster-controller convert` on the command line: `plan` accepts its output; remarks go to stderr; exit codes 0, 64
and 78."""

import json
import os
import subprocess
import tempfile
import unittest

import class_runner

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
CONTROLLER = os.path.join(os.environ.get("MUSTER_BIN", os.path.join(ROOT, "build", "bin")), "muster-controller")
EXAMPLES = os.path.join(ROOT, "tests", "controller", "examples")
EXIT_CODE, ELASTIC = (os.path.join(EXAMPLES, f"pytorchjob-{name}.yaml") for name in ("exitcode", "elastic"))


def run(*arguments, given=""):
    return subprocess.run([CONTROLLER, *arguments], input=given, capture_output=True, text=True, timeout=60)


RENAMED = """kind: PyTorchJob
apiVersion: kubeflow.org/v1
metadata: {name: a}
spec:
  nprocPerNode: "1"
  pytorchReplicaSpecs: {worker: {template: {spec: {containers: [{name: pytorch, image: i}]}}}}
"""


class Convert(unittest.TestCase):
    def planned(self, text):
        done = run("plan", "-f", "-", "-o", "json", given=text)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["items"]

    def test_plan_takes_what_it_prints(self):
        for output in ("yaml", "json"):
            with self.subTest(output=output):
                done = run("convert", "-f", EXIT_CODE, "-f", ELASTIC, "-o", output)
                self.assertEqual(done.returncode, 0, done.stderr)
                jobs = {
                    item["metadata"]["name"]: item["spec"]["completions"]
                    for item in self.planned(done.stdout)
                    if item["kind"] == "Job"
                }
                self.assertEqual(jobs, {"exitcode-node-0": 4, "elastic-node-0": 2})

    def test_other_documents_pass(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file, open(ELASTIC, encoding="utf-8") as example:
            file.write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n---\n" + example.read())
            file.flush()
            done = run("convert", "-f", file.name, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            [item["kind"] for item in json.loads(done.stdout)["items"]], ["ConfigMap", "TrainingRuntime", "TrainJob"]
        )
        self.assertIn(f"{file.name}:2: ConfigMap 'settings' is not a PyTorchJob: it stays as it is\n", done.stderr)

    def test_plan_prints_pods_of_a_pytorch_job(self):
        with open(EXIT_CODE, encoding="utf-8") as example:
            names = [f"{item['kind']} {item['metadata']['name']}" for item in self.planned(example.read())]
        self.assertEqual(names[:3], ["Secret exitcode-token", "Service exitcode-master-0", "Pod exitcode-master-0"])
        self.assertEqual(len(names), 9)

    def test_plan_completes_a_generated_name(self):
        runtime = json.loads(run("convert", "-f", EXIT_CODE, "-o", "json").stdout)["items"][0]
        train_job = {
            "kind": "TrainJob",
            "apiVersion": runtime["apiVersion"],
            "metadata": {"generateName": "a-"},
            "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": runtime["metadata"]["name"]}},
        }
        made = self.planned("\n---\n".join(map(json.dumps, (runtime, train_job))))
        self.assertEqual(made[-1]["metadata"]["name"], "a-xxxxx-node-0")
        made = self.planned(RENAMED.replace("{name: a}", "{generateName: b-}").replace("{worker:", "{Worker:"))
        self.assertEqual([item["metadata"]["name"] for item in made if item["kind"] == "Pod"], ["b-xxxxx-worker-0"])

    def test_a_null_field_is_absent(self):
        """As for the API server: a template with blanks leaves them in files."""
        resources = "resources: {limits: {nvidia.com/gpu: , cpu: 1}, requests: {memory: }}"
        pods = [
            item
            for item in self.planned(
                RENAMED.replace("{worker:", "{Worker:").replace("image: i", f"image: i, {resources}")
            )
            if item["kind"] == "Pod"
        ]
        self.assertEqual(
            [pod["spec"]["containers"][0]["resources"] for pod in pods], [{"limits": {"cpu": 1}, "requests": {}}]
        )
        job = {
            "kind": "TrainJob",
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "metadata": {"name": "a"},
            "spec": {
                "runtimeRef": {"kind": "TrainingRuntime", "name": "exitcode"},
                "trainer": {"resourcesPerNode": {"limits": {"nvidia.com/gpu": None}}},
            },
        }
        runtime = run("convert", "-f", EXIT_CODE, "-o", "json").stdout
        self.assertEqual(
            self.planned(json.dumps(json.loads(runtime)["items"][0]) + "\n---\n" + json.dumps(job))[-1]["kind"], "Job"
        )

    def test_what_is_wrong(self):
        for text, said in (
            (
                "kind: PyTorchJob\nmetadata: {name: a}\nspec: {}\n",
                "stdin:3: spec.pytorchReplicaSpecs: Required value: must be required",
            ),
            (RENAMED, 'stdin:6: spec.pytorchReplicaSpecs[worker]: Unsupported value: "worker"'),
            ("kind: Pod\n", "stdin: there is no PyTorchJob to convert"),
            ("kind: [\n", "stdin:"),
        ):
            with self.subTest(text=text):
                done = run("convert", "-f", "-", given=text)
                self.assertEqual((done.returncode, done.stdout), (78, ""))
                self.assertTrue(done.stderr.startswith(f"muster-controller: {said}"), done.stderr)
        self.assertEqual(run("convert", "-f", "/nowhere/job.yaml").returncode, 78)
        self.assertEqual(run("convert").returncode, 64)
        self.assertEqual(run("convert", "-f", "-", "-o", "xml").returncode, 64)


if __name__ == "__main__":
    class_runner.main()
