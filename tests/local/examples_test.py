# SPDX-License-Identifier: Apache-2.0
"""Files of users (tests/controller/examples) by `muster local`: unchanged, except for what only the images contain."""

import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import LocalCase, free_port

import class_runner  # local_case.py says where it is

EXAMPLES = os.path.join(HERE, "..", "controller", "examples")
MANIFESTS = os.path.join(HERE, "..", "..", "controller", "manifests", "runtimes")
# Replaces the script of the images.
TRAIN = """import os, sys
os.write(1, f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']} {' '.join(sys.argv[1:])}\\n".encode())
"""
HERE_TOO = "[torchrun, train.py]"  # train.py is in the folder of --workdir


def job(name, runtime, kind="ClusterTrainingRuntime", more=""):
    """A TrainJob for a runtime whose file has no job."""
    return f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: {name}}}
spec:
  runtimeRef: {{name: {runtime}, kind: {kind}}}
{more}"""


def read(name, folder=EXAMPLES):
    with open(os.path.join(folder, name)) as file:
        return file.read()


class Examples(LocalCase):
    # Files that belong together. Every file is in TOGETHER or ALONE.
    TOGETHER = [
        ["trainjob-v21.yaml", "runtime-with-data-v21.yaml"],
        ["trainjob-v23.yaml"],
        ["pytorchjob-elastic.yaml"],
        ["pytorchjob-exitcode.yaml"],
        ["runtime-elastic-v21.yaml"],
        ["runtime-mpi.yaml"],
    ]
    ALONE = {
        "runtime-elastic-v21.yaml": job(
            "scaled", "torch-elastic", "TrainingRuntime", "  trainer: {numNodes: 2, numProcPerNode: 1}"
        ),
        "runtime-mpi.yaml": job("solve", "mpi-plain"),
    }

    def setUp(self):
        super().setUp()
        self.file("train.py", TRAIN)
        self.port = free_port()  # pods may share this machine's network, so no other process may have the port

    def with_port(self, text):
        """The runtime `text`, with the test's own port for torchrun."""
        return re.sub(
            r"(- name: node\n( +))image:", rf'\1env: [{{name: PET_MASTER_PORT, value: "{self.port}"}}]\n\2image:', text
        )

    def check_ranks(self, said, size, words=""):
        ranks = sorted(int(rank) for rank in re.findall(rf"rank (\d+) of {size} {words}\n", said))
        self.assertEqual(ranks, list(range(size)), said)

    def made(self, name, files):
        """Makes a folder with these files."""
        folder = os.path.join(self.folder, name)
        os.makedirs(folder)
        for key, text in files.items():
            self.file(os.path.join(name, key), text)
        return folder

    def claim(self, name, files):
        """Makes the folder of a PersistentVolumeClaim, with these files."""
        return self.made(os.path.join("state", "muster", "claims", name), files)

    def test_all_of_them_are_planned(self):
        files = sorted(os.path.basename(path) for path in glob.glob(os.path.join(EXAMPLES, "*.yaml")))
        self.assertEqual(sorted(name for group in self.TOGETHER for name in group), files)
        for names in self.TOGETHER:
            with self.subTest(names[0]):
                more = [self.ALONE[name] for name in names if name in self.ALONE]
                said = self.run_job(*map(read, names), *more, arguments=["--dry-run"])
                self.assertRegex(said, r"kind: (Job|Pod)\n")

    def test_everything_a_train_job_could_carry(self):
        """Data, a model, GPUs that this machine lacks, and a helper pod whose command is in its image alone."""
        for name, files in {
            "data": {"a": "1"},
            "model": {"weights": "2"},
            "keys": {"AWS_ACCESS_KEY_ID": "K"},
            "hf": {"token": "t"},
        }.items():
            self.made(name, files)
        workspace = self.claim("workspace", {"train.py": TRAIN})
        said = self.run_job(
            read("trainjob-v21.yaml"),
            self.with_port(read("runtime-with-data-v21.yaml")),
            arguments=[
                "--procs",
                "1",
                "--secret",
                "s3-credentials=keys",
                "--secret",
                "hf-token=hf",
                "--set",
                f"spec.initializer.dataset.storageUri=file://{self.folder}/data",
                "--set",
                f"spec.initializer.model.storageUri=file://{self.folder}/model",
            ],
        )
        self.check_ranks(said, 4, "--epochs=4 --lr=0.01")
        self.assertIn("not honoured here: spec.containers[0].resources.limits.nvidia.com/gpu: 1 asked for", said)
        self.assertIn("the entrypoint of image 'registry.example.com/exporter:1' is unknown; give `command`", said)
        self.assertIn("TrainJob digits: Complete", said)
        for path in ("dataset/a", "model/weights"):
            self.assertTrue(os.path.exists(os.path.join(workspace, path)), path)

    def test_torchrun_by_the_arguments_of_its_runtime(self):
        self.claim("workspace", {"train.py": TRAIN})
        source = f"{{storageUri: 'file://{self.made('data', {'a': '1'})}'}}"
        more = f"  initializer: {{dataset: {source}, model: {source}}}\n  trainer: {{numNodes: 2, numProcPerNode: 2}}"
        said = self.run_job(
            job("args", "torch-with-data", more=more),
            read("runtime-with-data-v21.yaml").replace(":29400", f":{self.port}"),
        )
        self.check_ranks(said, 4)

    def test_the_newest_shape(self):
        runtime = self.with_port(read("torch-distributed.yaml", MANIFESTS)).replace(
            "name: torch-distributed", "name: of-my-own"
        )
        said = self.run_job(
            read("trainjob-v23.yaml"),
            runtime,
            arguments=["--set", "spec.runtimeRef.name=of-my-own", "--set", f"spec.trainer.command={HERE_TOO}"],
        )
        self.check_ranks(said, 8)

    def test_elastic_nodes(self):
        runtime = self.with_port(read("runtime-elastic-v21.yaml"))
        said = self.run_job(
            runtime, self.ALONE["runtime-elastic-v21.yaml"], arguments=["--set", f"spec.trainer.command={HERE_TOO}"]
        )
        self.check_ranks(said, 2)

    def test_pytorch_jobs(self):
        for name, roles, size in (
            ("pytorchjob-elastic.yaml", ["Worker"], 2),
            ("pytorchjob-exitcode.yaml", ["Master", "Worker"], 8),
        ):
            with self.subTest(name):
                arguments = []
                for role in roles:
                    container = f"spec.pytorchReplicaSpecs.{role}.template.spec.containers[0]"
                    arguments += [
                        "--set",
                        f"{container}.command={HERE_TOO}",
                        "--set",
                        f"{container}.ports=[{{name: pytorchjob-port, containerPort: {self.port}}}]",
                    ]
                if name == "pytorchjob-elastic.yaml":
                    arguments += ["--procs", "1"]
                self.check_ranks(self.run_job(read(name), arguments=arguments), size)


if __name__ == "__main__":
    class_runner.main()
