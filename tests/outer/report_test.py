# SPDX-License-Identifier: Apache-2.0
"""`muster report`: the real binary on a real run and on folders made by hand, and the page in a real browser."""

import base64
import json
import os
import re
import signal
import stat
import subprocess
import tempfile
import time
import unittest

from muster_case import DEADLINE, MUSTER, MusterCase, main

from browser import CHROMIUM, MISSING, QUIET


def report(*arguments, **more):
    return subprocess.run([MUSTER, "report", *arguments], capture_output=True, text=True, timeout=DEADLINE, **more)


def record(place=0, attempt=0, nodes=2, workers=2, ended=True, **more):
    """attempt.json as an agent writes it; rank 0 is killed in every attempt."""
    started = 1_700_000_000_000 + attempt * 60_000
    facts = {
        "run_id": "by-hand",
        "attempt": attempt,
        "muster": "1.2.3",
        "node": f"node-{place}",
        "host": f"host-{place}",
        "round": attempt,
        "term": 1,
        "node_rank": place,
        "node_count": nodes,
        "world_size": nodes * workers,
        "first_rank": place * workers,
        "restart_count": attempt,
        "max_restarts": 99,
        "master": "10.0.0.1:4000",
        "start_reason": f"all {nodes} nodes are ready",
        "started_unix_ms": started,
        "workers_started_unix_ms": started + 100,
        "first_output_seconds": 245.0,  # 4 min 05 s
        "stopping_unix_ms": None,
        "ended_unix_ms": None,
        "reason": None,
        "workers": [{"local_rank": rank, "rank": place * workers + rank, "pid": 100 + rank} for rank in range(workers)],
    }
    if ended:
        facts.update(
            stopping_unix_ms=started + 50_000,
            ended_unix_ms=started + 50_500,
            reason="node node-0 (host host-0): worker rank 0 was killed by SIGKILL",
        )
        for worker in facts["workers"]:
            killed = worker["rank"] == 0
            worker.update(
                exit_code=137 if killed else 143,
                signal="SIGKILL" if killed else "SIGTERM",
                core_dumped=False,
                oom_killed=killed,
                after_stop=not killed,
                max_rss_bytes=1 << 30,
                cpu_seconds=1.5,
                lived_seconds=49.9,
                ended_unix_ms=started + 50_000,
            )
            if killed:
                worker["stderr_tail"] = [
                    "<script>alert('tail')</script>",
                    "RuntimeError: " + "unbroken" * 100,
                    "\x1b[31mred\x1b[0m \u202eturned",
                ]
                worker["stderr_reason"] = "RuntimeError: " + "unbroken" * 60
    facts.update(more)
    return facts


class Case(MusterCase):
    def put(self, path, content):
        path = os.path.join(self.dir, "logs", path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))

    def put_run(self, nodes=2, workers=2, attempts=3):
        for node in range(nodes):
            for attempt in range(attempts):
                self.put(f"node-{node}/by-hand/attempt_{attempt}/attempt.json", record(node, attempt, nodes, workers))
        return os.path.join(self.dir, "logs")


class Reports(Case):
    def test_a_run_that_restarted_once(self):
        logs = os.path.join(self.dir, "logs")
        agent = self.start(
            "--nodes-on-this-machine",
            "2",
            "--nproc-per-node",
            "2",
            "--max-restarts",
            "1",
            "--log-dir",
            logs,
            "--tee",
            "3",
            "--rdzv-id",
            "the-run",
        )
        failing = self.workers(4)[3]
        failing.ask("error ValueError: <b>loss</b> is NaN")
        failing.tell("exit 3")
        again = self.workers(4)
        for worker in again:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0)
        done = report(logs)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.strip(), os.path.join(logs, "report.html"))
        with open(os.path.join(logs, "report.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("Succeeded after 1 restart", page)
        self.assertIn("ValueError: &lt;b&gt;loss&lt;/b&gt; is NaN", page)
        self.assertRegex(page, r"rank 3 on node-\d: exit code 3")
        self.assertNotRegex(page, r"<script|https?://|<link|<img|@import|url\(")
        facts = json.loads(report(logs, "--json").stdout)
        (run,) = facts["runs"]
        self.assertEqual((run["exit_code"], run["restarts"], len(run["attempts"])), (0, 1, 2))
        self.assertEqual([sorted(attempt["nodes"]) for attempt in run["attempts"]], [["node-0", "node-1"]] * 2)
        self.assertEqual(run["attempts"][0]["failures"][0]["rank"], 3)
        self.assertGreater(run["lost_ms"], 0)

    def test_what_the_start_of_each_attempt_cost(self):
        logs = os.path.join(self.dir, "logs")
        agent = self.start(
            "--nproc-per-node",
            "2",
            "--max-restarts",
            "2",
            "--log-dir",
            logs,
            "--redirects",
            "3",
        )

        def recorded(attempt):
            (facts,) = [facts for path, facts in self.attempts(logs).items() if path.endswith(f"attempt_{attempt}")]
            return facts["first_output_seconds"]

        dying, staying = self.workers(2)
        staying.ask("ignore SIGTERM")
        dying.tell("exit 3")
        staying.ask("asked SIGTERM")
        staying.ask("print because of the stop")
        staying.tell("exit 0")
        for attempt, command, stream in ((1, "print first", "stdout"), (2, "error first", "stderr")):
            first, second = self.workers(2)
            came = time.monotonic()
            self.assertIsNone(recorded(attempt))
            waited = time.monotonic() - came
            second.ask(command)
            self.wait_for_output(agent, rf"first output of the workers \d.* m?s after their start, on {stream}\n")
            self.assertGreaterEqual(recorded(attempt), waited)
            first.ask("error later")
            first.tell("exit 3" if attempt == 1 else "exit 0")
        second.tell("exit 0")
        self.assertEqual(agent.wait(), 0)
        (run,) = json.loads(report(logs, "--json").stdout)["runs"]
        told = [attempt["first_output_seconds"] for attempt in run["attempts"]]
        self.assertEqual(told, [recorded(attempt) for attempt in range(3)])
        self.assertIsNone(told[0])
        self.assertEqual(agent.output().count("first output"), 2)
        self.assertEqual(report(logs, "-o", "-").stdout.count("first output after"), 2)

    def test_a_run_that_failed(self):
        logs = os.path.join(self.dir, "logs")
        agent = self.start("--nproc-per-node", "2", "--log-dir", logs)
        self.workers(2)[1].tell("exit 7")
        self.assertEqual(agent.wait(), 7)
        (run_id,) = os.listdir(logs)
        for folder in (logs, os.path.join(logs, run_id), os.path.join(logs, run_id, "attempt_0")):
            done = report(folder, "-o", "-")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Failed: exit code 7", done.stdout)
            self.assertIn("exit code 7, fatal", done.stdout)
        self.assertFalse(os.path.exists(os.path.join(logs, "report.html")))

    def test_a_node_that_was_killed(self):
        logs = os.path.join(self.dir, "logs")
        endpoint = f"127.0.0.1:{self.free_port()}"
        agents = [
            self.start(
                "--nnodes",
                "1:2",
                "--nproc-per-node",
                "1",
                "--rdzv-backend",
                "c10d",
                "--rdzv-endpoint",
                endpoint,
                "--rdzv-id",
                "job",
                "--rdzv-conf",
                "last_call_timeout=600",
                "--log-dir",
                os.path.join(logs, f"pod-{at}"),
            )
            for at in range(2)
        ]
        workers = self.workers(2)
        victim = next(agent for agent in agents if agent.pid == workers[1].hello["ppid"])
        victim.send(signal.SIGKILL)
        (alone,) = self.round_of(1, at_least=1)
        alone.tell("exit 0")
        self.assertEqual(next(agent for agent in agents if agent is not victim).wait(), 0)
        done = report(logs, "-o", "-")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("Succeeded after 1 restart", done.stdout)
        self.assertIn("no end recorded on 1 node", done.stdout)
        (run,) = json.loads(report(logs, "--json").stdout)["runs"]
        self.assertEqual([len(attempt["nodes"]) for attempt in run["attempts"]], [2, 1])
        self.assertEqual(run["restarts"], 0)  # a lost node does not use the budget up
        self.assertIsNone(run["attempts"][0]["ended_unix_ms"])

    def test_broken_records_are_said_and_harm_nothing(self):
        logs = self.put_run(attempts=1)
        self.put("node-2/by-hand/attempt_0/attempt.json", '{"run_id": "by-ha')
        self.put("node-3/by-hand/attempt_0/0/stdout.log", "")
        self.put("node-4/by-hand/attempt_0/attempt.json", " " * (5 << 20))
        os.symlink("..", os.path.join(logs, "node-0", "loop"))
        done = report(logs)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"node-2/by-hand/attempt_0/attempt\.json: .*cut off")
        self.assertRegex(done.stderr, r"node-3/by-hand/attempt_0: .*no attempt\.json")
        self.assertRegex(done.stderr, r"node-4/by-hand/attempt_0/attempt\.json: .*longer than")
        with open(os.path.join(logs, "report.html")) as file:
            self.assertIn("3 records could not be used", file.read())

    def test_only_broken_records(self):
        self.put("by-hand/attempt_0/attempt.json", "")
        done = report(os.path.join(self.dir, "logs"), "-o", "-")
        self.assertEqual(done.returncode, 0)
        self.assertIn("No attempt could be read", done.stdout)

    def test_a_killed_agent(self):
        logs = self.put_run(attempts=1)
        self.put("node-1/by-hand/attempt_0/attempt.json", record(1, ended=False))
        self.put("node-0/by-hand/attempt_0/attempt.json", record(0, ended=False))
        done = report(logs, "-o", "-")
        self.assertEqual(done.returncode, 0)
        self.assertIn("No end recorded", done.stdout)

    def test_nothing_there_ends_with_78(self):
        empty = os.path.join(self.dir, "empty")
        os.mkdir(empty)
        for folder, said in (
            (empty, "attempt_N/attempt.json"),
            (os.path.join(self.dir, "nowhere"), "give the --log-dir"),
        ):
            done = report(folder)
            self.assertEqual(done.returncode, 78)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertEqual(os.listdir(empty), [])

    def test_wrong_usage_ends_with_64(self):
        for arguments in ((), ("a", "b"), ("a", "--colour"), ("a", "-o"), ("a", "--json", "-o", "x")):
            self.assertEqual(report(*arguments).returncode, 64, arguments)

    def test_a_page_that_cannot_be_written_leaves_nothing(self):
        logs = self.put_run(attempts=1)
        before = sorted(os.listdir(logs))
        for output in (os.path.join(self.dir, "nowhere", "x.html"), logs):
            done = report(logs, "-o", output)
            self.assertEqual(done.returncode, 78)
            self.assertIn(output, done.stderr)
        self.assertEqual(sorted(os.listdir(logs)), before)
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [MUSTER, "report", logs, "-o", "-"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=DEADLINE
            )
        self.assertEqual(done.returncode, 78)
        self.assertIn("stdout", done.stderr)

    def test_the_page_is_replaced_as_a_whole_and_a_pipe_is_not_replaced(self):
        logs = self.put_run(attempts=1)
        page = os.path.join(self.dir, "run.html")
        with open(page, "w") as file:
            file.write("old")
        with open(page) as old:
            self.assertEqual(report(logs, "-o", page).returncode, 0)
            self.assertEqual(old.read(), "old")  # a reader of the old page can read it to its end
        self.assertEqual([name for name in os.listdir(self.dir) if name.startswith("run.html")], ["run.html"])
        pipe = os.path.join(self.dir, "pipe")
        os.mkfifo(pipe)
        with subprocess.Popen([MUSTER, "report", logs, "-o", pipe], stdout=subprocess.DEVNULL) as process:
            with open(pipe) as reader:
                self.assertTrue(reader.read().startswith("<!DOCTYPE html>"))
        self.assertEqual(process.returncode, 0)
        self.assertTrue(stat.S_ISFIFO(os.stat(pipe).st_mode))

    def test_many_nodes_and_attempts(self):
        logs = self.put_run(nodes=128, workers=8, attempts=50)
        done = report(logs)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertLess(os.path.getsize(os.path.join(logs, "report.html")), 3 << 20)


# Shows the page in a frame as wide as a phone, and writes what it measures into the document that --dump-dom prints.
FRAME = """<!DOCTYPE html><body style="margin:0">
<iframe id=f style="width:{width}px;height:740px;border:0" src="{page}"></iframe><script>
f.onload = () => {{
  const d = f.contentDocument, r = d.documentElement;
  d.querySelectorAll("details").forEach(x => x.open = true);
  const w = f.contentWindow;
  const isWide = x => !x.closest(".scroll") && x.getBoundingClientRect().right > w.innerWidth + 0.5;
  const wide = [...d.querySelectorAll("body *:not(svg *)")].filter(isWide);
  const facts = {{scroll: r.scrollWidth, inner: w.innerWidth,
    wide: wide.slice(0, 5).map(x => x.outerHTML.slice(0, 80)),
    bars: d.querySelectorAll("svg.bars rect").length, h1: d.querySelector("h1").textContent, scripts: d.scripts.length,
    height: d.querySelector(".scroll").getBoundingClientRect().height,
    background: w.getComputedStyle(d.body).backgroundColor}};
  document.body.dataset.facts = btoa(unescape(encodeURIComponent(JSON.stringify(facts))));
}}
</script>"""


@unittest.skipUnless(CHROMIUM, MISSING)
class Browser(Case):
    def measure(self, page, width):
        wrapper = os.path.join(self.dir, f"frame-{width}.html")
        with open(wrapper, "w") as file:
            file.write(FRAME.format(width=width, page="file://" + page))
        profile = tempfile.mkdtemp(dir=self.dir)
        dom = subprocess.run(
            [
                CHROMIUM,
                *QUIET,
                f"--user-data-dir={profile}",
                "--window-size=1300,900",
                "--virtual-time-budget=20000",
                "--dump-dom",
                "file://" + wrapper,
            ],
            capture_output=True,
            text=True,
            timeout=200,
        ).stdout
        found = re.search(r'data-facts="([^"]+)"', dom)
        self.assertTrue(found, dom[:2000])
        return json.loads(base64.b64decode(found[1]))

    def check(self, logs, bars):
        page = os.path.join(self.dir, "page.html")
        self.assertEqual(report(logs, "-o", page).returncode, 0)
        for width in (360, 1280):
            facts = self.measure(page, width)
            self.assertEqual(facts["inner"], width)
            self.assertLessEqual(facts["scroll"], width, facts)
            self.assertEqual(facts["wide"], [], facts)
            self.assertEqual((facts["bars"], facts["scripts"]), (bars, 0))
            self.assertLessEqual(facts["height"], 740)
        return facts

    def test_a_small_run_fits(self):
        logs = self.put_run(attempts=3)
        facts = self.check(logs, bars=12 + 5)  # a bar for each worker; the job runs thrice and loses time twice
        self.assertIn("Failed after 2 restarts", facts["h1"])

    def test_long_words_fit(self):
        for attempt in range(2):
            self.put(
                f"n/by-hand/attempt_{attempt}/attempt.json",
                record(
                    nodes=1,
                    attempt=attempt,
                    run_id="r" * 300,
                    node="n" * 300,
                    host="h" * 300,
                    muster="v" * 200,
                    reason="w" * 900,
                    start_reason="s" * 900,
                ),
            )
        self.check(os.path.join(self.dir, "logs"), bars=4 + 3)

    def test_many_nodes_fit(self):
        self.check(self.put_run(nodes=100, workers=8, attempts=20), bars=2000 + 39)


if __name__ == "__main__":
    main()
