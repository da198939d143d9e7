# SPDX-License-Identifier: Apache-2.0
"""Runs the table of cause_rows.py in a cluster with a real kubelet. Every place names the same cause and next step."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import threading
import time

import cause_row
import cause_rows
from await_file import await_file
from cluster import json_stream
from failure_rows import parent_of
from images import BUSYBOX
from processes import Broken
from scenario import Scenario, shell

PORT = 29400  # the same for all, as each pod has its own network
OF_PODS = ("PodFailed", "PodDisrupted")  # reasons of events
OF_JOBS = {
    "Failed": ("Failed", "PyTorchJobFailed", "DeadlineExceeded"),
    "Waiting": ("Waiting",),
}  # of a job in that state
AT_A_TIME = 10
SECONDS = 300  # for these


class Watch:
    """All objects of some kinds in a namespace, as they were seen: versions[kind][name] is [(moment, object)], the
    oldest first."""

    def __init__(self, cluster, namespace, kinds):
        self.versions, self.changed, self.watches = {kind: {} for kind in kinds}, threading.Condition(), []
        for kind in kinds:
            command = [
                cluster.program("kubectl"),
                "get",
                kind,
                "-n",
                namespace,
                "--watch",
                "-o",
                "json",
                "--output-watch-events",
            ]
            watch = subprocess.Popen(
                cluster.inside(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=cluster.environment,
            )
            reader = threading.Thread(target=self.read, args=(kind, watch), daemon=True)
            self.watches.append((watch, reader))
            reader.start()

    def read(self, kind, watch):
        for event in json_stream(watch.stdout, time.monotonic() + 3600):
            with self.changed:
                self.versions[kind].setdefault(event["object"]["metadata"]["name"], []).append(
                    (time.monotonic(), event["object"])
                )
                self.changed.notify_all()

    def first(self, kind, name, wanted):
        """(moment, object): the first version of an object whose name matches `name` for which `wanted` is true. None:
        there is none."""
        with self.changed:
            found = [
                version
                for each, versions in self.versions[kind].items()
                if re.fullmatch(name, each)
                for version in versions
                if wanted(version[1])
            ]
        return min(found, key=lambda version: version[0], default=None)

    def await_(self, kind, name, wanted, until):
        """Like first(). None: `until` has come."""
        with self.changed:
            self.changed.wait_for(lambda: self.first(kind, name, wanted), max(0, until - time.monotonic()))
            return self.first(kind, name, wanted)

    def end(self):
        for watch, reader in self.watches:
            watch.kill()
            watch.wait()
            reader.join()
            watch.stdout.close()


def version(found):
    return int(found[1]["metadata"]["resourceVersion"])


def condition(job, kind):
    return next(
        (
            each
            for each in job.get("status", {}).get("conditions", [])
            if each["type"] == kind and each["status"] == "True"
        ),
        None,
    )


def has_come(row):
    """Whether a job is where the row ends."""

    def wanted(job):
        status = job.get("status", {})
        if row.state == "Waiting":
            return row.words in status.get("message", "")
        return len(status.get("failures", [])) >= row.failures and (row.state == "Running" or condition(job, row.state))

    return wanted


def has_ended(pod):
    """A container of the pod has failed, or the pod itself."""
    if pod["status"].get("phase") == "Failed":
        return True
    statuses = [*pod["status"].get("containerStatuses", []), *pod["status"].get("initContainerStatuses", [])]
    return any(
        (each.get("state", {}).get("terminated") or each.get("lastState", {}).get("terminated") or {}).get("exitCode")
        for each in statuses
    )


class Causes(Scenario):
    def folder_of(self, row):
        folder = os.path.join(self.shared(), row.name)
        os.makedirs(folder, exist_ok=True)
        return folder

    def kubectl(self, *arguments, content=None):
        return self.cluster.kubectl(arguments[0], "-n", self.namespace, *arguments[1:], content=content)

    def act(self, row, kind, until):
        """Does what the row needs from outside, once its ranks have begun. Broken: they have not begun."""
        for rank in (0, 1):
            await_file(os.path.join(self.folder_of(row), f"begun-{rank}"), until - time.monotonic())
        _, pod = self.watch.first("pods", row.pod(kind), lambda pod: True)
        getattr(self, row.act)(row, kind, pod["metadata"]["name"])

    def delete(self, row, kind, pod):
        self.kubectl("delete", "pod", pod, "--wait=false")

    def evict(self, row, kind, pod):
        asked = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.namespace}}
        self.cluster.kubectl(
            "create",
            "--raw",
            f"/api/v1/namespaces/{self.namespace}/pods/{pod}/eviction",
            "-f",
            "-",
            content=json.dumps(asked),
        )

    def preempt(self, row, kind, pod):
        made = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "important"},
            "spec": {
                "priorityClassName": "important",
                "terminationGracePeriodSeconds": 0,
                "containers": [
                    {
                        "name": "main",
                        "image": BUSYBOX,
                        "command": shell("exec sleep 1000"),
                        "resources": {"limits": {cause_row.SLOT: "1"}},
                    }
                ],
            },
        }
        self.create(made)
        self.addCleanup(self.kubectl, "delete", "pod", "important", "--wait=false")

    def suspend(self, row, kind, pod):
        field = {"suspend": True} if kind == cause_row.TRAIN else {"runPolicy": {"suspend": True}}
        self.kubectl("patch", kind.lower(), row.name, "--type=merge", "-p", json.dumps({"spec": field}))

    def kill_agent(self, row, kind, pod):
        host = f"{row.name}-node-0-1" if kind == cause_row.TRAIN else pod
        agents = {
            process
            for name in ("muster", "torchrun")
            for process in self.node.processes_in_pods(name, f"HOSTNAME={host}")
        }
        (first,) = (process for process in agents if parent_of(process) not in agents)
        os.kill(first, signal.SIGKILL)

    def make_room(self):
        """Slots on one node, and the priority class, for the row `preempted`."""
        node = self.cluster.get("nodes")["items"][0]["metadata"]["name"]
        self.cluster.kubectl(
            "patch",
            "node",
            node,
            "--subresource=status",
            "--type=json",
            "-p",
            json.dumps(
                [
                    {"op": "add", "path": f"/status/{field}/{cause_row.SLOT.replace('/', '~1')}", "value": "2"}
                    for field in ("capacity", "allocatable")
                ]
            ),
        )
        made = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "important"},
            "value": 1000,
        }
        self.cluster.kubectl("apply", "-f", "-", content=json.dumps(made))

    def run_rows(self, kind):
        """Runs the rows, AT_A_TIME at the same time: a node with more pods than it has cores for reports their ends
        late."""
        rows = cause_rows.runnable([row for row in cause_rows.rows() if kind in row.kinds])
        self.make_room()
        self.watch = Watch(self.cluster, self.namespace, ("pods", "events", kind.lower() + "s"))
        self.addCleanup(self.watch.end)
        wrong, delays = [], []
        for i in range(0, len(rows), AT_A_TIME):
            self.run_some(rows[i : i + AT_A_TIME], kind, wrong, delays)
        print(
            "\n".join(
                f"  {kind} {name}: {milliseconds:.0f} ms from the pod's end to the status"
                for name, milliseconds in delays
            ),
            flush=True,
        )
        self.assertFalse(wrong, "\n".join(wrong))
        latest = max(milliseconds for _, milliseconds in delays)
        self.remark = f"{len(rows)} rows; the status names the cause at most {latest:.0f} ms after the pod's end"

    def run_some(self, rows, kind, wrong, delays):
        until = time.monotonic() + SECONDS
        objects = [row.objects(kind, self.folder_of(row), PORT) for row in rows]
        for part in (
            [made for each in objects for made in each[:-1]],
            [each[-1] for each in objects],
        ):  # runtimes first
            if not part:
                continue
            self.made.update((made["kind"], made["metadata"]["name"]) for made in part)
            self.kubectl("create", "-f", "-", content=json.dumps({"apiVersion": "v1", "kind": "List", "items": part}))
        for row in rows:
            if row.act:
                try:
                    self.act(row, kind, until)
                except Broken as error:
                    wrong.append(f"{row.name}: {error}")
        for row in rows:
            found = self.watch.await_(kind.lower() + "s", row.name, has_come(row), until)
            if found is None:
                wrong.append(
                    f"{row.name}: not {row.state}: "
                    f"{json.dumps(self.cluster.get(kind.lower(), row.name, '-n', self.namespace).get('status'))}"
                )
                continue
            wrong += self.check(row, kind, found[1])
            delays += self.check_order(row, kind, wrong)
        self.kubectl("delete", kind.lower(), *(row.name for row in rows), "--wait=false")

    def check(self, row, kind, job):
        """What the places of one job lack."""
        status, wrong = job["status"], []
        sentences = {"status.message": status.get("message", "")} if row.state in ("Failed", "Waiting") else {}
        failure = status["failures"][-1] if row.failures else {}
        if "failures" in status and not row.failures:
            wrong.append(f"{row.name}: failures: {status['failures']}")
        if row.failures:
            wrong += self.check_failure(row, kind, failure)
        logs = f"see kubectl logs -n {self.namespace} {failure.get('pod')} -c {row.container_of(kind)}"
        if row.state == "Failed" and row.failures:
            sentences["the condition"] = condition(job, "Failed")["message"]
            upstream = "jobset failed" if kind == cause_row.TRAIN else ("PyTorchJob ", "Job ")
            if not sentences["the condition"].startswith(upstream):
                wrong.append(f"{row.name}: the condition does not begin as upstream's: {sentences['the condition']}")
            sentences["kubectl get"] = self.first_line(row, kind)
        events = self.warnings(row, kind)
        if row.failures:
            sentences["the pod's event"] = next(
                (text for reason, text in events if reason in OF_PODS), f"none of {events}"
            )
        if row.state in OF_JOBS:
            sentences["the job's event"] = next(
                (text for reason, text in reversed(events) if reason in OF_JOBS[row.state]), f"none of {events}"
            )
        if row.state == "Suspended" and events:
            wrong.append(f"{row.name}: events: {events}")
        if row.state == "Running" and status.get("restarts", 0):
            wrong.append(f"{row.name}: a disruption cost a restart: {status}")
        if kind == cause_row.PYTORCH and row.state == "Failed" and row.failures:
            wrong.append(self.check_counts(row, status))
        wrong += [cause_row.wrong(row, kind, place, text, row.pod(kind), logs) for place, text in sentences.items()]
        return list(filter(None, wrong))

    def check_counts(self, row, status):
        """The replica that is to blame is counted as failed, and none of its type as active."""
        blamed = "Master" if "-master-" in status["failures"][-1]["pod"] else "Worker"
        counts = status["replicaStatuses"][blamed]
        is_right = (counts.get("failed"), counts.get("active", 0)) == (1, 0)
        return "" if is_right else f"{row.name}: replicaStatuses of {blamed}: {counts}"

    def check_failure(self, row, kind, failure):
        """What status.failures[-1], the pod's log and its termination message lack."""
        wrong = []
        expected = {"exitCode": row.code, "container": row.container_of(kind)} if row.code else {}
        if row.rank is not None and not row.initializer:
            expected["rank" if "rank" in failure else "nodeRank"] = row.rank
        if row.reason:
            expected["reason"] = row.reason
        got = {key: failure.get(key) for key in expected}
        if (
            got != expected
            or not re.fullmatch(row.pod(kind), failure["pod"])
            or row.words not in failure.get("message", "")
        ):
            wrong.append(f"{row.name}: failures: not {expected}, or not {row.pod(kind)}, or not {row.words}: {failure}")
        if row.step == cause_row.LOGS:
            done = self.cluster.try_kubectl(*failure.get("nextStep", "").removeprefix("see kubectl ").split())
            # Once one pod has failed the Job, the Job controller deletes those whose phase is not set. Of these rows
            # more than one pod fails.
            is_gone = kind == cause_row.TRAIN and (row.torchrun or row.rank is None) and "NotFound" in done.stderr
            if not is_gone and (done.returncode or (row.torchrun and row.words not in done.stdout + done.stderr)):
                wrong.append(f"{row.name}: next step {failure.get('nextStep')}: {done.stderr or done.stdout}")
        told = self.termination_message(failure)
        if told is not None and (
            (row.code and told["exit_code"] != row.code)
            or (not row.reason and row.words not in json.dumps(told, ensure_ascii=False).replace('\\"', '"'))
        ):
            wrong.append(f"{row.name}: termination message: {told}")
        return wrong

    def termination_message(self, failure):
        """Of the container that is to blame, if an agent has written one."""
        ended = self.watch.first("pods", failure["pod"], has_ended)
        for status in ended[1]["status"].get("containerStatuses", []) if ended else []:
            text = (status.get("state", {}).get("terminated") or {}).get("message", "")
            if status["name"] == failure.get("container") and text.startswith("{"):
                return json.loads(text)
        return None

    def first_line(self, row, kind):
        return self.kubectl("get", kind.lower(), row.name, "-o", "wide", "--no-headers").splitlines()[0]

    def warnings(self, row, kind):
        """[(reason, message)] of the Warning events about the job, the oldest first. Waits for those that must come."""
        about = lambda event: (
            event["type"] == "Warning"
            and (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (kind, row.name)
        )
        due = [*([OF_PODS] if row.failures else []), *([OF_JOBS[row.state]] if row.state in OF_JOBS else [])]
        for reasons in due:
            self.watch.await_(
                "events", ".*", lambda event: about(event) and event["reason"] in reasons, time.monotonic() + 60
            )
        with self.watch.changed:
            found = [versions[-1][1] for versions in self.watch.versions["events"].values() if about(versions[-1][1])]
        return [
            (event["reason"], event["message"])
            for event in sorted(found, key=lambda event: int(event["metadata"]["resourceVersion"]))
        ]

    def check_order(self, row, kind, wrong):
        """The pod ends, then the status names it. Returns [(row, milliseconds between the two)]."""
        if not row.failures:
            return []
        named = self.watch.first(kind.lower() + "s", row.name, lambda job: job.get("status", {}).get("failures"))
        first = named[1]["status"]["failures"][0]
        ended = self.watch.first("pods", first.get("reportedBy", first["pod"]), has_ended)
        if ended is None or version(named) < version(ended):
            wrong.append(f"{row.name}: the status names the failure before the pod's end: {first}")
            return []
        return [(row.name, (named[0] - ended[0]) * 1000)]

    def test_a_lost_node(self):
        """The kubelet is away until its node is not ready. Both jobs say which pod and which node they wait for."""
        stays = next(row for row in cause_rows.rows() if row.name == "deleted")
        rows = {kind: dataclasses.replace(stays, name=f"lost-{kind.lower()}") for kind in cause_row.BOTH}
        for kind, row in rows.items():
            self.create(*row.objects(kind, self.folder_of(row), PORT))
        for row in rows.values():
            for rank in (0, 1):
                await_file(os.path.join(self.folder_of(row), f"begun-{rank}"), SECONDS)
        self.addCleanup(self.kubelet_runs)
        self.node.kill_kubelet()
        for kind, row in rows.items():
            job = self.cluster.await_object(
                f"{kind.lower()}/{row.name}",
                lambda job: "not ready" in job.get("status", {}).get("message", ""),
                self.namespace,
            )
            status = job["status"]
            self.assertRegex(status["message"], f"pod {row.name}-.*: its node node-0 is not ready, and does not answer")
            self.assertEqual(
                (status.get("reason", "NodeNotReady"), status.get("restarts", 0), status.get("failures", [])),
                ("NodeNotReady", 0, []),
            )

    def kubelet_runs(self):
        if not self.node.alive("kubelet"):
            self.node.start_kubelet()

    def test_causes_of_train_jobs(self):
        self.run_rows(cause_row.TRAIN)

    def test_causes_of_pytorch_jobs(self):
        self.run_rows(cause_row.PYTORCH)
