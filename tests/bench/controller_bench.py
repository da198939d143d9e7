#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures muster-controller from outside, on a real API server, etcd, controller manager and scheduler. kwok simulates
the nodes. Prints a markdown table. Figures are medians (lowest-highest).

    tests/bench/controller_bench.py [--only REGEX] [--repeat N] [--big]

It takes about 10 minutes; --big adds 20,000 pods, a job of 10,000 nodes and 5,000 finished TrainJobs, 25 minutes more.
The API server calls the controller's webhooks. loadgen (e2e/cluster/programs) creates the TrainJobs and measures the
times: each is taken when an event arrives at loadgen's own watch. It also reports which share of the machine other
processes used meanwhile. If that is more than a little, only the ratios are meaningful.
"""

import argparse
import base64
import collections
import contextlib
import json
import os
import re
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "e2e", "cluster"), os.path.join(ROOT, "e2e", "controller")]

from cluster import Cluster, binaries
from controller_figures import ACCOUNT, AUDITED, milliseconds, now, processor_seconds, resident, runtimes, spread
from processes import Broken
from scenario import train_job

CONTROLLER = os.path.join(os.environ.get("MUSTER_BIN", os.path.join(ROOT, "build", "bin")), "muster-controller")
PLACEHOLDER = "name-of-the-trainjob"  # loadgen's
WORKERS = 32  # TrainJobs that the controller works on at a time


class Bench:
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.programs = binaries(build=True)
        self.audit = os.path.join(folder, "audit.log")
        self.cluster = Cluster(os.path.join(folder, "cluster"), self.programs)
        self.others = []  # shares of the machine that other processes used
        self.starts = 0

    def start(self):
        self.cluster.start()
        manifests = os.path.join(ROOT, "controller", "manifests")
        self.cluster.kubectl("apply", "--server-side", "-k", os.path.join(manifests, "base", "crds"))
        self.cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
        self.cluster.kubectl("apply", "--server-side", "-k", os.path.join(manifests, "overlays", "default"))
        self.cluster.kubectl("delete", "deployment", ACCOUNT[1], "-n", ACCOUNT[0])  # kwok would only simulate its pods
        self.webhooks = f"{self.cluster.address}:{self.cluster.port('webhooks')}"
        self.configure("Ignore" if self.options.webhooks else None)
        self.cluster.add_fake_nodes(45 if self.options.big else 4)
        self.cluster.apply(list(runtimes().values()))
        self.kubeconfig = self.cluster.account_kubeconfig(*ACCOUNT)

    def configure(self, policy):
        """Makes the API server call the webhooks at this machine: it reaches no Service. None: removes the webhooks."""
        if policy is None:
            self.cluster.kubectl("delete", "validatingwebhookconfigurations,mutatingwebhookconfigurations", "--all")
            return
        made = self.cluster.get("validatingwebhookconfigurations,mutatingwebhookconfigurations")["items"]
        for configuration in made:
            configuration["metadata"] = {"name": configuration["metadata"]["name"]}
            for webhook in configuration["webhooks"]:
                client = webhook["clientConfig"]
                if "service" in client:
                    client["url"] = f"https://{self.webhooks}{client.pop('service')['path']}"
                webhook["failurePolicy"] = policy
        self.cluster.kubectl(
            "replace", "-f", "-", content=json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
        )

    def await_webhooks(self):
        """Waits until the API server knows the webhooks and their certificate authority."""
        probe = {**train_job("probe", "none"), "spec": {"runtimeRef": {"name": "none"}}}
        until = time.monotonic() + 60
        while "must be created before" not in (
            said := self.cluster.try_kubectl("create", "--dry-run=server", "-f", "-", content=json.dumps(probe)).stderr
        ):
            if time.monotonic() > until:
                raise Broken(f"the API server does not ask the webhooks: {said}")

    def start_audit(self):
        """Makes the API server log each call of the controller. Not done before it is needed, since that takes time."""
        if "apiserver" in self.cluster.flags:
            return
        policy = os.path.join(self.folder, "audit-policy.json")
        with open(policy, "w") as file:
            json.dump(AUDITED, file)
        self.cluster.flags["apiserver"] = [
            "--audit-policy-file",
            policy,
            "--audit-log-path",
            self.audit,
            "--audit-log-maxsize",
            "4000",
        ]
        self.cluster.restart_api_server()

    def calls(self, since):
        """The controller's calls since that moment, without those for its Lease."""
        with open(self.audit) as file:
            made = [json.loads(line) for line in file]
        return [
            call
            for call in made
            if call["requestReceivedTimestamp"] > since and call["objectRef"]["resource"] != "leases"
        ]

    @contextlib.contextmanager
    def controller(self, warm=True):
        """Starts a new controller and yields its process. `warm`: it has served a job already."""
        name, port = f"muster-controller-{self.starts}", self.cluster.port("muster-controller")
        self.starts += 1
        listen = f"{self.cluster.address}:{port}"
        process = self.cluster.start_program(
            name,
            [
                CONTROLLER,
                "run",
                "--kubeconfig",
                self.kubeconfig,
                "--listen",
                listen,
                "--lease-namespace",
                ACCOUNT[0],
                "--workers",
                str(WORKERS),
                "--webhook-listen",
                self.webhooks,
            ],
        )
        self.cluster.processes.await_url(name, f"http://{listen}/healthz")
        # First its Lease has a holder. Then it lists the objects, and is ready when that is done.
        self.cluster.await_object(
            "lease/trainer.kubeflow.org", lambda lease: lease["spec"].get("holderIdentity"), ACCOUNT[0]
        )
        self.cluster.processes.await_url(name, f"http://{listen}/readyz")
        if self.options.webhooks:
            self.configure("Fail")
            self.await_webhooks()
        if warm:
            self.load("latency", 1)
        try:
            yield process
        finally:
            if self.options.webhooks:
                self.configure("Ignore")
            self.cluster.processes.stop(name)  # the controller releases its Lease

    def load(self, mode, number, runtime="agent", limit="5m", **flags):
        """loadgen's report of one run. Raises Broken, with the reason, if loadgen gave up."""
        children = self.cluster.processes.children
        pids = ",".join(f"{'controller' if 'muster' in name else name}={child.pid}" for name, child in children.items())
        command = [
            self.cluster.program("loadgen"),
            "-mode",
            mode,
            "-n",
            str(number),
            "-runtime",
            runtime,
            "-limit",
            limit,
            "-pids",
            pids,
            "-parallel",
            str(WORKERS),
        ]
        command += [word for name, value in flags.items() for word in (f"-{name.replace('_', '-')}", str(value))]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.cluster.environment
        )
        with process, selectors.DefaultSelector() as selector, contextlib.ExitStack() as opened:
            opened.callback(process.kill)
            for each in (process, *children.values()):
                descriptor = os.pidfd_open(each.pid)
                opened.callback(os.close, descriptor)
                selector.register(descriptor, selectors.EVENT_READ)
            selector.select()  # a program that ends before loadgen breaks the run
            for name, child in children.items():
                if child.poll() is not None:
                    raise Broken(
                        f"{name} ended with {child.returncode}; its log ends with:\n{self.cluster.processes.tail(name)}"
                    )
            output, errors = process.communicate()
        if process.returncode:
            raise Broken(f"loadgen -mode {mode}: {errors.strip()}")
        if self.options.verbose:
            print(output.strip(), file=sys.stderr, flush=True)
        said = json.loads(output)
        self.others.append(said["others_cpu_of_machine"])
        return said

    # ---- the rows: each yields (what, goal, measured)

    def latency(self):
        """From before the TrainJob's creation to its Job's arrival. The next one is created when the last is gone."""
        with self.controller():
            said = self.load("latency", 30)
        yield (
            "one TrainJob on a quiet cluster: creation -> its Job exists",
            "<= 20 ms",
            milliseconds(said["create_to_job_s"]),
        )

    def admission(self):
        """The webhooks' time as the API server measures it, one creation after the other; and their time with many
        clients at once, each of which calls both webhooks in turn."""
        with self.controller() as process:
            before = self.webhook_times()
            self.load("latency", 100)
            spent = [
                (seconds - before[name][0]) / (count - before[name][1])
                for name, (seconds, count) in self.webhook_times().items()
                if count > before[name][1]
            ]
            yield (
                "webhooks of a TrainJob's creation, mutating and validating together",
                "<= 5 ms",
                f"{sum(spent) * 1000:.3g} ms in the mean",
            )
            begun = processor_seconds(process)
            said = self.review_load()
            spent = (processor_seconds(process) - begun) / said["rounds"]
        yield (
            "64 such requests at a time",
            "p99 <= 20 ms",
            (
                f"median {said['median_s'] * 1000:.3g} ms, p99 {said['p99_s'] * 1000:.3g} ms; "
                f"{said['rounds_per_s']:.0f} a second, {spent * 1000:.2g} ms of own CPU each"
            ),
        )

    def webhook_times(self):
        """The API server's time in webhooks for creations: webhook -> (seconds, count)."""
        found = collections.defaultdict(lambda: [0, 0])
        for line in self.cluster.kubectl("get", "--raw", "/metrics").splitlines():
            match = re.match(
                r"apiserver_admission_webhook_admission_duration_seconds_(sum|count)"
                r'\{name="([^"]*)",operation="CREATE",.*\} (\S+)$',
                line,
            )
            if match:
                found[match[2]][match[1] == "count"] += float(match[3])
        return found

    def review_load(self):
        job = {**train_job("asked", "agent"), "spec": {"runtimeRef": {"name": "agent"}, "trainer": {"numNodes": 2}}}
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "u",
                "operation": "CREATE",
                "resource": {"group": "trainer.kubeflow.org", "version": "v1alpha1", "resource": "trainjobs"},
                "namespace": "loadgen",
                "name": "asked",
                "object": job,
            },
        }
        paths = {name: os.path.join(self.folder, name) for name in ("review.json", "ca.pem")}
        with open(paths["review.json"], "w") as file:
            json.dump(review, file)
        [configuration] = self.cluster.get("mutatingwebhookconfigurations")["items"]
        with open(paths["ca.pem"], "wb") as file:
            file.write(base64.b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"]))
        words = [
            word
            for what in ("mutate", "validate")
            for word in (f"https://{self.webhooks}/{what}-trainer-kubeflow-org-v1alpha1-trainjob", paths["review.json"])
        ]
        done = subprocess.run(
            [os.path.join(os.path.dirname(CONTROLLER), "review_load"), "--ca", paths["ca.pem"], *words],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise Broken(done.stderr.strip())
        return json.loads(done.stdout)

    def burst(self):
        """From before the first creation to the last Job's arrival. The loop creates the objects that
        `muster-controller plan` prints, instead of TrainJobs, while no controller runs. They run in turns."""
        objects = os.path.join(self.folder, "objects.json")
        with open(objects, "w") as file:
            file.write(self.plan())
        for number in (100, 500):
            ours, bare, processor, memory, peak = [], [], [], [], []
            for _ in range(self.options.repeat):
                bare.append(self.load("burst", number, objects=objects)["first_create_to_last_job_s"])
                with self.controller():
                    said = self.load("burst", number)
                ours.append(said["first_create_to_last_job_s"])
                spent = said["proc_controller"]  # 3 s after the last pod runs
                processor.append(spent["cpu_s_settled"])
                memory.append(spent["rss_mib_end"] * 1.048576)
                peak.append(spent["rss_mib_peak"] * 1.048576)
            ratio = statistics.median(ours) / statistics.median(bare)
            goal = {100: 3.8, 500: 20}[number]
            yield (
                (
                    f"{number} TrainJobs of 2 nodes at once: last Job exists; "
                    f"beside a loop that only creates the same objects"
                ),
                f"<= {goal} s (half of Trainer 2.3's), <= 1.3 times",
                f"{spread(ours)} s; loop {spread(bare)} s: {ratio:.3g} times",
            )
        yield "own CPU for 500 jobs, until all pods run", "<= 3 s", f"{spread(processor)} s"
        yield "RSS with 500 jobs and 1,000 pods", "<= 64 MB", f"{spread(memory)} MB, at most {max(peak):.3g}"

    def plan(self):
        files = []
        for made in (
            {**train_job(PLACEHOLDER, "agent"), "spec": {"runtimeRef": {"name": "agent"}}},
            runtimes()["agent"],
        ):
            files.append(os.path.join(self.folder, f"{made['kind']}.json"))
            with open(files[-1], "w") as file:
                json.dump(made, file)
        return subprocess.check_output([CONTROLLER, "plan", "-f", files[0], "-f", files[1], "-o", "json"], text=True)

    def restart(self):
        """From the arrival of a pod's phase Failed to the arrival of the last of the two new pods."""
        with self.controller():
            said = self.load("restart", 10, runtime="restarts")
        yield (
            "pod of a job without the agent failed -> the step's new pods exist",
            "<= 500 ms",
            (
                f"{milliseconds(said['pod_failed_to_last_new_pod_s'])}; "
                f"its new Job {milliseconds(said['pod_failed_to_new_job_s'])}"
            ),
        )

    def failure(self):
        """From the arrival of a pod's phase Failed to that of the TrainJob's condition, whose message has the cause."""
        with self.controller():
            for what, name, code in (("without the agent", "fails", 1), ("with it, a fatal code", "agent", 3)):
                said = self.load("fail", 10, runtime=name, exit_code=code)
                if f"exit code {code}" not in said["message"]:
                    raise Broken(f"the cause is not in the condition's message: {said['message']}")
                yield (
                    f"pod failed for good, {what} -> condition Failed with the cause",
                    "<= 150 ms",
                    milliseconds(said["pod_failed_to_trainjob_failed_s"]),
                )

    def writes(self):
        """Writes in the API server's audit log, from one job's creation until 3 s after its pods run."""
        self.start_audit()
        counted = []
        with self.controller():
            for turn in range(self.options.repeat):
                since, prefix = now(), f"write{turn}"
                self.load("burst", 1, prefix=prefix)
                writes = (
                    call
                    for call in self.calls(since)
                    if call["verb"] not in ("get", "list", "watch")
                    and call["objectRef"].get("name", prefix).startswith(prefix)
                )
                counted.append(collections.Counter(map(self.kind, writes)))
        usual = sorted(counted, key=lambda kinds: kinds.total())[len(counted) // 2]
        yield (
            "own writes for one job, creation -> Running",
            "<= 6",
            f"{spread([kinds.total() for kinds in counted])}: "
            + ", ".join(f"{count} {kind}" for kind, count in sorted(usual.items())),
        )

    @staticmethod
    def kind(call):
        refused = "" if call["responseStatus"]["code"] < 300 else f" (answered {call['responseStatus']['code']})"
        return (
            f"{call['verb']} "
            f"{'/'.join(filter(None, (call['objectRef']['resource'], call['objectRef'].get('subresource'))))}{refused}"
        )

    def finished(self):
        """Calls in the audit log from a controller's start until 60 s after its lists, without watches and first
        lists."""
        if not self.options.big:
            return
        self.start_audit()
        status = os.path.join(self.folder, "status.json")
        with self.controller():
            with open(status, "w") as file:
                json.dump(self.one_that_completes(), file)
        self.load("finished", 5000, namespace="finished", status=status)
        for what in ("after its start", "after the next start"):
            since = now()
            with self.controller(warm=False) as process:
                ready = now()
                time.sleep(60)
                made = self.calls(since)
                memory = resident(process)
            counted = collections.Counter(
                self.kind(call)
                for call in made
                if call["verb"] != "watch" and (call["verb"] != "list" or call["requestReceivedTimestamp"] > ready)
            )
            ended = sum(call["verb"] == "watch" for call in made)  # the audit log has a watch when it has ended
            yield (
                f"5,000 finished jobs: calls other than watches {what}",
                "0",
                (
                    f"{counted.total()}{''.join(f', {count} {kind}' for kind, count in counted.items())}; "
                    f"watches that ended: {ended}; RSS {memory:.3g} MB"
                ),
            )

    def one_that_completes(self):
        """Runs a TrainJob until it completes, and returns its status."""
        job = {**train_job("completes", "agent"), "spec": {"runtimeRef": {"name": "agent"}}}
        self.cluster.kubectl("create", "-f", "-", content=json.dumps(job))
        self.cluster.await_object("trainjob/completes", lambda job: job.get("status", {}).get("state") == "Running")
        self.cluster.kubectl(
            "annotate", "pods", "-l", "jobset.sigs.k8s.io/jobset-name=completes", "e2e.muster.dev/finish=succeeded"
        )
        return self.cluster.await_object("trainjob/completes", lambda job: job["status"]["state"] == "Complete")[
            "status"
        ]

    def pods(self):
        """The cost of 100 jobs of 200 nodes, until 3 s after the last pod runs."""
        if not self.options.big:
            return
        try:
            with self.controller():
                spent = self.load("burst", 100, nodes=200, limit="10m")["proc_controller"]
            measured = (
                f"{spent['rss_mib_end'] * 1.048576:.3g} MB, at most {spent['rss_mib_peak'] * 1.048576:.3g}; "
                f"CPU {spent['cpu_s_settled']:.3g} s"
            )
        except Broken as error:
            measured = f"not within 10 minutes on this machine: {' '.join(str(error).split())}"
        yield "RSS with 100 jobs and 20,000 pods", "<= 200 MB", measured

    def nodes(self):
        """The cost of one job of 10,000 nodes, until 3 s after the last pod runs."""
        if not self.options.big:
            return
        with self.controller():
            spent = self.load("burst", 1, nodes=10000, limit="10m")["proc_controller"]
        yield (
            "a TrainJob of 10,000 nodes until all pods run: own CPU; RSS",
            "<= 2 s; <= 300 MB",
            f"{spent['cpu_s_settled']:.3g} s; {spent['rss_mib_peak'] * 1.048576:.3g} MB",
        )

    def kept(self):
        yield (
            "worker killed in a pod -> all workers of the next attempt run, pods kept",
            "<= 200 ms",
            "takes a real kubelet: make e2e",
        )


ROWS = ("latency", "admission", "burst", "restart", "failure", "writes", "finished", "pods", "nodes", "kept")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help=", ".join(ROWS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--big", action="store_true")
    parser.add_argument("--no-webhooks", dest="webhooks", action="store_false", help="to see what they cost")
    parser.add_argument("--verbose", action="store_true", help="loadgen's own figures to stderr")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends what has been started
    print("| what | goal | measured |\n|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        bench = Bench(folder, options)
        try:
            bench.start()
            for row in ROWS:
                if re.search(options.only, row):
                    for what, goal, measured in getattr(bench, row)():
                        print(f"| {what} | {goal} | {measured} |", flush=True)
        except Broken as error:
            sys.exit(f"controller_bench: {error}")
        finally:
            bench.cluster.stop()
            if bench.others:
                print(f"others had up to {max(bench.others):.0%} of the machine", file=sys.stderr)


if __name__ == "__main__":
    main()
