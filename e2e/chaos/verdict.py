# SPDX-License-Identifier: Apache-2.0
"""What must hold for each job at its end, and for the cluster when all jobs are gone. Each check returns sentences
about what does not hold."""

import collections
import json

import control_groups
from faults import job_of, variables
from jobs import MARK
from kueue import WORKLOADS
from node import read_words

ENDS = {"Complete": True, "Succeeded": True, "Failed": False}
NO_PROGRESS = "no progress over 3 restarts in a row"  # the agents' words, where a runtime sets maxRestarts


def end_of(item):
    """(whether it has succeeded, reason, message) of a job that has ended; None: it has not."""
    for condition in item.get("status", {}).get("conditions", []):
        if condition["status"] == "True" and condition["type"] in ENDS:
            return ENDS[condition["type"]], condition["reason"], condition["message"]
    return None


def has_ended(item):
    return end_of(item) is not None


def judge(job, item, record):
    """What is wrong with the end of a job. `record`: what was struck, as Record."""
    charged, status = record.charged[job.name], item.get("status", {})
    found = []
    end = end_of(item)
    # Its pod ends with success for good if it is evicted while the kubelet waits to start it again.
    if job.endless and (end is None or end[0]):
        return [job.wrong()] if job.wrong() else []
    if end is None:
        return [f"it has not ended: state {status.get('state')}, {status.get('message') or 'no message'}"]
    succeeded, reason, message = end
    struck = charged + (record.moved[job.name] if "platform" in job.may_fail else 0)
    if succeeded:
        if wrong := job.wrong():
            found.append(wrong)
    elif NO_PROGRESS in message:
        if charged < 4:
            found.append(f"it has failed after {charged} faults of its own: {message}")
    elif not job.may_fail or reason not in job.reasons or struck == 0:
        found.append(f"it has failed: {reason}: {message}")
    elif reason == "ReachedMaxRestarts" and charged <= job.budget:
        found.append(f"it has failed after {charged} faults of its own, with a budget of {job.budget}: {message}")
    restarts = status.get("restarts", 0)
    if restarts > job.budget:
        found.append(f"{restarts} restarts are more than its budget of {job.budget}")
    if restarts > charged:
        failures = json.dumps([failure for failure in status.get("failures", []) if failure.get("counted")])
        found.append(f"{restarts} restarts are charged for {charged} faults of its own: {failures}")
    return found


class Record:
    """How often faults have struck each job: `charged` by faults of its own processes, `moved` by the platform."""

    def __init__(self):
        self.charged, self.moved = collections.Counter(), collections.Counter()

    def add(self, struck):
        self.charged.update(struck.charged)
        self.moved.update(struck.moved)


def left(world, allowed):
    """What is left of the jobs after their deletion. `allowed`: (kind, name) of objects that are not theirs."""
    found = []
    for kind in ("trainjobs", "pytorchjobs", "jobs", "pods", "services", "configmaps", "secrets", WORKLOADS):
        for item in world.get(kind):
            if (kind, item["metadata"]["name"]) not in allowed:
                found.append(f"{kind}/{item['metadata']['name']} of {job_of(item) or 'no job'} is left")
    return found


def processes_left(world):
    """The processes of jobs that still run on the nodes, when no object is left."""
    found = []
    for node in world.nodes:
        for pid in control_groups.processes(f"{node.group}/kubepods"):
            try:
                marked, line = MARK in variables(pid), " ".join(read_words(f"/proc/{pid}/cmdline"))
            except OSError:  # it has just ended
                continue
            if marked:
                found.append(f"process {pid} is left on {node.name}: {line[:200]}")
    return found
