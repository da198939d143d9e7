# SPDX-License-Identifier: Apache-2.0
"""Debian's PyTorch trains the digits on 2 nodes x 2 workers."""

import json
import os

from digits import Digits
from scenario import INITIALIZER


class Torch(Digits):
    def test_digits(self):
        """The initializer fetches the data set from an S3 server before the nodes start."""
        self.train(store=self.store_with_data())
        job = self.finished("digits", 300)
        self.condition(job, "Complete")
        self.assertEqual((job["status"]["nodes"], job["status"]["restarts"]), (2, 0))
        self.check_accuracy()
        self.assertIn("with 4 workers", self.logs("digits")[0])
        with open(os.path.join(self.dataset, ".muster", "manifest.json")) as file:
            self.assertEqual(json.load(file)["source"], "s3://digits/train/")
        initializer, node = (
            self.cluster.get(f"job/digits-{name}-0", "-n", self.namespace)["status"] for name in (INITIALIZER, "node")
        )
        self.assertLessEqual(initializer["completionTime"], node["startTime"])

    def test_digits_with_a_killed_worker(self):
        """The agents restart the workers in their pods from the newest checkpoint. No pod is replaced."""
        self.train("--fault", "kill:rank=3,epoch=4")
        job = self.finished("digits", 300)
        self.condition(job, "Complete")
        self.check_accuracy()
        self.assertIn("resumed after epoch 3 with 4 workers", self.logs("digits")[0])
        self.assertEqual((job["status"]["restarts"], job["status"]["attempt"]), (1, 0))
        self.assertEqual(len(self.cluster.get("pods", "-n", self.namespace)["items"]), 2)
