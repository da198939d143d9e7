# SPDX-License-Identifier: Apache-2.0
"""muster-initializer as Kubeflow Trainer runs its own initializers: the role as the only argument, Kubeflow's
variables, and one volume at /workspace that both initializers fill at the same time."""

import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub_case import FILES, NAME, URI, HubCase, subset
from initializer_case import DEADLINE, main, some_bytes


class Workspace(HubCase):
    """Private repositories, with a token from a Secret."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            self.skipTest("only root can have mounts of its own")
        self.volume = os.path.join(self.dir, "volume")
        os.mkdir(self.volume)
        self.rows = {"train/0.parquet": some_bytes(2 << 20, 5), "README.md": b"#"}
        rows = self.hub.add("muster/rows", self.rows, kind="datasets")
        self.repository.private = rows.private = True
        self.secret = {"ACCESS_TOKEN": self.token(self.repository, rows), "HF_ENDPOINT": self.hub.url}

    def check_volume(self, **expected):
        """`expected`: folder of the volume -> path -> content."""
        self.assertEqual(sorted(os.listdir(self.volume)), sorted(expected))
        for folder, files in expected.items():
            self.target = os.path.join(self.volume, folder)
            self.check_right(files)

    def test_both_at_once(self):
        for again in (False, True):
            runs = [
                self.in_a_pod("dataset", self.volume, {**self.secret, "STORAGE_URI": "hf://muster/rows"}),
                self.in_a_pod("model", self.volume, {**self.secret, "STORAGE_URI": URI}),
            ]
            for run in runs:
                _, said = run.communicate(timeout=DEADLINE)
                self.assertEqual(run.returncode, 0, said)
                self.assertEqual("no byte was moved" in said, again, said)
            self.check_volume(dataset=self.rows, model=FILES)
            for role in ("dataset", "model"):
                os.rename(os.path.join(self.dir, f"root-{role}"), os.path.join(self.dir, f"first-{role}-{again}"))

    def test_what_is_ignored(self):
        run = self.in_a_pod(
            "model",
            self.volume,
            {**self.secret, "STORAGE_URI": f"hf://{NAME}", "IGNORE_PATTERNS": "*.bin, *.onnx,sub*,tokenizer*"},
        )
        _, said = run.communicate(timeout=DEADLINE)
        self.assertEqual(run.returncode, 0, said)
        self.check_volume(model=subset("config.json", "empty", "model.safetensors"))

    def test_no_source(self):
        """The message names the missing variable; the volume stays unchanged."""
        run = self.in_a_pod("dataset", self.volume, self.secret)
        _, said = run.communicate(timeout=DEADLINE)
        self.assertEqual((run.returncode, os.listdir(self.volume)), (64, []), said)
        self.assertIn("STORAGE_URI", said)


if __name__ == "__main__":
    main()
