"""`muster-controller convert` on the command line: `plan` accepts its output; remarks go to stderr; exit codes 0, 64 and 78."""
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
                jobs = {item["metadata"]["name"]: item["spec"]["completions"]
                        for item in self.planned(done.stdout) if item["kind"] == "Job"}
                self.assertEqual(jobs, {"exitcode-node-0": 4, "elastic-node-0": 2})

    def test_other_documents_pass(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file, open(ELASTIC, encoding="utf-8") as example:
            file.write("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n---\n" + example.read())
            file.flush()
            done = run("convert", "-f", file.name, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([item["kind"] for item in json.loads(done.stdout)["items"]], ["ConfigMap", "TrainingRuntime", "TrainJob"])
        self.assertIn(f"{file.name}:2: ConfigMap 'settings' is no PyTorchJob: it stays as it is\n", done.stderr)

    def test_plan_prints_pods_of_a_pytorch_job(self):
        with open(EXIT_CODE, encoding="utf-8") as example:
            names = [f"{item['kind']} {item['metadata']['name']}" for item in self.planned(example.read())]
        self.assertEqual(names[:3], ["Secret exitcode-token", "Service exitcode-master-0", "Pod exitcode-master-0"])
        self.assertEqual(len(names), 9)

    def test_what_is_wrong(self):
        for text, said in (("kind: PyTorchJob\nmetadata: {name: a}\nspec: {}\n", "stdin:3: spec.pytorchReplicaSpecs: Required value: must be required"),
                           (RENAMED, "stdin:6: spec.pytorchReplicaSpecs[worker]: Unsupported value: \"worker\""),
                           ("kind: Pod\n", "stdin: there is no PyTorchJob to convert"),
                           ("kind: [\n", "stdin:")):
            with self.subTest(text=text):
                done = run("convert", "-f", "-", given=text)
                self.assertEqual((done.returncode, done.stdout), (78, ""))
                self.assertTrue(done.stderr.startswith(f"muster-controller: {said}"), done.stderr)
        self.assertEqual(run("convert", "-f", "/nowhere/job.yaml").returncode, 78)
        self.assertEqual(run("convert").returncode, 64)
        self.assertEqual(run("convert", "-f", "-", "-o", "xml").returncode, 64)


if __name__ == "__main__":
    class_runner.main()
