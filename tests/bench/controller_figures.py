# SPDX-License-Identifier: Apache-2.0
"""What controller_bench.py sets up, and its figures: read from the system, written for the table."""

import os
import re
import statistics
import time

from scenario import runtime, shell

ACCOUNT = ("kubeflow-system", "kubeflow-trainer-controller-manager")
OFF = {"muster.dev/agent": "off"}
AUDITED = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata", "users": [f"system:serviceaccount:{':'.join(ACCOUNT)}"]}, {"level": "None"}],
}


def runtimes():
    """The runtimes by name: with the agent; without it, with three restarts or with none."""
    made = {"agent": runtime("agent", 2, container={"command": shell("true")})}
    for name, restarts in (("restarts", 3), ("fails", 0)):
        made[name] = runtime(
            name,
            2,
            container={"command": shell("true")},
            annotations=OFF,
            job={"backoffLimit": 0},
            pod={"restartPolicy": "Never"},
        )
        made[name]["spec"]["template"]["spec"]["failurePolicy"] = {"maxRestarts": restarts}
    return {name: {**each, "kind": "ClusterTrainingRuntime"} for name, each in made.items()}


def spread(values, factor=1, digits=3):
    low, middle, high = (
        float(f"{value * factor:.{digits}g}") for value in (min(values), statistics.median(values), max(values))
    )
    return f"{middle:g} ({low:g}-{high:g})"


def milliseconds(figures):
    """Formats loadgen's summary, which is in seconds."""
    return "{:.3g} ({:.3g}-{:.3g}) ms".format(*(figures[name] * 1000 for name in ("median", "min", "max")))


def now():
    """The time in the audit log's format."""
    seconds, rest = divmod(time.time_ns() // 1000, 1000000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:06}Z"


def processor_seconds(process):
    with open(f"/proc/{process.pid}/stat") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def resident(process):
    with open(f"/proc/{process.pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) * 1.024 / 1000
