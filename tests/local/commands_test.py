# SPDX-License-Identifier: Apache-2.0
"""`muster ps`, `muster logs` and `muster stop`, a run in the background and one on a terminal."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import BIN, DEADLINE, HANGS, CommandCase, Job, clean, plain_job, runtime, train_job

import class_runner  # local_case.py says where it is


class Ps(CommandCase):
    def test_nothing_yet(self):
        self.assertEqual(self.muster("ps").splitlines()[1:], [])
        self.assertEqual(json.loads(self.muster("ps", "--json")), [])

    def test_what_becomes_of_jobs(self):
        self.run_job(plain_job("fine", "true", nodes=2))
        self.run_job(plain_job("bad", "exit 3"), code=3)
        self.hanging("runs")
        self.assertEqual(
            self.row("fine")[1:3] + self.row("fine")[4:], ["TrainJob", "Complete", "2", "-", "-", "0", "0"]
        )
        self.assertEqual(self.row("bad")[1:3] + self.row("bad")[4:], ["TrainJob", "Failed", "1", "-", "-", "0", "3"])
        kind, nodes, *others = self.row("runs")[1:2] + self.row("runs")[4:]
        self.assertEqual([kind, *others], ["TrainJob", "-", "-", "0", "-"])
        self.assertRegex(nodes, "^[01]/1$")  # a pod is ready once its probe has succeeded
        jobs = {job["name"]: job for job in json.loads(self.muster("ps", "--json"))}
        self.assertEqual([jobs[name]["runs"] for name in ("fine", "bad", "runs")], [False, False, True])
        self.assertEqual([pod["host"] for pod in jobs["fine"]["pods"]], ["fine-node-0-0", "fine-node-0-1"])
        self.assertEqual(jobs["fine"]["files"], [os.path.join(self.folder, "1-0.yaml")])

    def test_the_progress_of_jobs_that_run(self):
        script = self.file(
            "steps.py",
            """import os, signal
if os.environ["RANK"] == "1":
    print("step 3/9 loss 0.5", flush=True)
print("here", os.environ["RANK"], flush=True)
signal.pause()
""",
        )

        def number(process):
            with open(f"/proc/self/fdinfo/{process}") as file:
                return re.search(r"(?m)^Pid:\t(\d+)", file.read())[1]

        def start(name):
            job = self.start(train_job(name, f"[torchrun, {script}]"))
            for rank in range(2):
                job.await_(f"here {rank}")

        start("first")
        firsts = [number(process) for process in self.processes()]
        start("second")
        end = time.monotonic() + DEADLINE
        for name in ("first", "second"):  # the agents hear the output soon after us
            while self.row(name)[5:7] != ["33%", "-"]:
                self.assertLess(time.monotonic(), end, self.muster("ps"))
        jobs = json.loads(self.muster("ps", "--json"))
        told = {"rank": 1, "unit": "steps", "position": 3, "end": 9, "loss": 0.5}
        self.assertEqual([job["training"] for job in jobs], [told] * 2)
        # Agents that do not answer keep the other jobs from nothing.
        frozen = [process for process in self.processes() if number(process) not in firsts]
        for process in frozen:
            signal.pidfd_send_signal(process, signal.SIGSTOP)
        self.assertEqual([self.row(name)[5] for name in ("first", "second")], ["33%", "-"])
        for process in frozen:
            signal.pidfd_send_signal(process, signal.SIGCONT)

    def test_a_killed_one_is_lost_until_its_next_start(self):
        job, processes = self.hanging("gone")
        job.process.kill()
        job.wait()
        self.assert_gone(processes)
        self.assertEqual(self.row("gone")[2], "Lost")
        self.assertIn("gone: `muster local` was killed", self.muster("ps"))
        self.assertIn("gone does not run", self.muster("stop", "gone"))
        said = self.run_job(plain_job("gone", "echo again"))
        self.assertIn("the previous run was killed", said)
        self.assertEqual(self.row("gone")[2], "Complete")
        logs = [
            os.path.join(folder, name) for folder, _, names in os.walk(self.path("gone", "previous")) for name in names
        ]
        self.assertIn("node.log", [os.path.basename(log) for log in logs])  # its last lines may be lost with its writer

    def test_a_broken_record(self):
        self.run_job(plain_job("broken", "true"))
        for text, message in [
            ("{", "not JSON"),
            ("[]", "not an object"),
            ('{"kind": 1}', "'name' is not there"),
            ("", "JSON"),
            ("[" * 100_000, "not JSON"),
        ]:
            with self.subTest(text[:20]):
                with open(self.path("broken", "run.json"), "w") as file:
                    file.write(text)
                said = self.muster("ps")
                self.assertIn(self.path("broken", "run.json"), said)
                self.assertIn(message, said)
        self.run_job(plain_job("broken", "true"))
        self.assertEqual(self.row("broken")[2], "Complete")


class Top(CommandCase):
    def test_a_job_that_runs_and_one_that_has_ended(self):
        script = self.file(
            "wait.py",
            """import os, signal
print("step", 3, "of", 9, flush=True)
print("here", os.environ["RANK"], flush=True)
signal.pause()
""",
        )
        job = self.start(train_job("two", f"[torchrun, {script}]", processes=2))
        for rank in range(4):
            job.await_(f"here {rank}")
        page = job.await_(r"muster local: (http://\S+/) shows the job, and so does `muster top two`")
        with urllib.request.urlopen(page[1], timeout=DEADLINE) as answer:
            text = answer.read().decode()
        self.assertTrue("here 3" in text, "the page lacks rank 3")
        self.assertRegex(text, "<title>[^<]* - two</title>")
        text = self.muster("top", "two", "--once", "--timeout", "60")
        self.assertRegex(text, r"(?m)^ *3 +\S+ +running ")
        self.assertRegex(text, "step 3 of 9|here 3")
        self.assertRegex(text, "^muster top  two  run ")
        view = json.loads(self.muster("top", "two", "--json", "--once", "--timeout", "60"))
        self.assertEqual(view["phase"], "running")
        self.assertEqual(len(view["nodes"]), 2)
        self.muster("stop", "two")
        job.wait()
        self.assertIn("muster top: TrainJob two has ended: ", self.muster("top", "two", "--once"))


class Logs(CommandCase):
    def test_of_a_job_that_has_ended(self):
        script = self.file(
            "say.py",
            """import os
os.write(1, f"I am {os.environ['RANK']}\\n".encode())
os.write(2, f"no end of {os.environ['RANK']}".encode())
""",
        )
        said = self.run_job(train_job("both", f"[torchrun, {script}]", processes=2))
        self.assertIn("[both-node-0-1] [rank3]:I am 3\n", said)
        logs = self.muster("logs", "both")
        for rank in range(4):
            self.assertIn(f"[both-node-0-{rank // 2}] [rank{rank}]:I am {rank}\n", logs)
        self.assertLess(logs.index("I am 0"), logs.index("I am 2"))
        self.assertEqual(
            sorted(self.muster("logs", "both", "--rank", "2").splitlines()),
            ["[both-node-0-1] I am 2", "[both-node-0-1] no end of 2"],
        )
        of_node = self.muster("logs", "both", "--node", "1")
        self.assertIn("I am 3", of_node)
        self.assertNotIn("[both-node-0-0]", of_node)
        self.assertIn("both: no line of rank 4", self.muster("logs", "both", "--rank", "4", code=78))
        self.assertIn("no job 'bth'", self.muster("logs", "bth", code=78))
        self.assertIn("both has no earlier run", self.muster("logs", "both", "--previous", code=78))
        self.run_job(plain_job("both", "echo the second; printf end", nodes=2))
        logs = self.muster("logs", "both", "--rank", "1")  # lines of the agent may come between, or behind `end`
        self.assertIn("[both-node-0-1] the second\n", logs)
        self.assertIn("[both-node-0-1] end", logs)
        self.assertIn("I am 3", self.muster("logs", "both", "--previous"))

    def follow(self, name):
        follower = Job(
            [os.path.join(BIN, "muster"), "logs", "-f", name],
            cwd=self.folder,
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
        )
        self.addCleanup(follower.end)
        return follower

    def test_followed_until_the_end(self):
        job = self.start(
            plain_job(
                "long", f"echo begins; while [ ! -e {self.folder}/go ]; do sleep 0.05; done; echo goes on; printf over"
            )
        )
        job.await_("begins")
        follower = self.follow("long")
        follower.await_("begins")
        self.file("go", "")
        self.assertEqual(job.wait(), 0, job.said)
        self.assertEqual(follower.wait(), 0, follower.said)
        self.assertIn("[long-node-0-0] goes on\n[long-node-0-0] over\n", follower.said)
        self.assertIn("over", self.muster("logs", "-f", "long"))

    def test_followed_over_a_restart_and_a_kill(self):
        script = (
            f"if [ -e {self.folder}/back ]; then echo again; sleep 1000; fi; touch {self.folder}/back; "
            f"echo first; kill -9 $PPID"
        )
        job = self.start(plain_job("back", script))
        job.await_("first")
        follower = self.follow("back")
        follower.await_(r"(?s)first.*again")
        job.process.kill()
        self.assertEqual(follower.wait(), 0, follower.said)

    def test_nobody_reads(self):
        self.run_job(plain_job("much", "seq 200000"))
        done = subprocess.run(
            f"{BIN}/muster logs much | head -1",
            shell=True,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
        )
        self.assertEqual((len(done.stdout.splitlines()), done.stderr), (1, ""))


class Stop(CommandCase):
    def test_with_grace_and_at_once(self):
        job, processes = self.hanging("soft")
        self.assertIn("soft: Stopped, exit code 143", self.muster("stop", "soft"))
        self.assertEqual(job.wait(), 143)
        self.assertIn("bye", job.said)
        self.assert_gone(processes)
        self.assertIn("soft has ended: Stopped", self.muster("stop", "soft"))
        job = self.start(plain_job("hard", "trap '' TERM; echo here; while :; do sleep 0.05; done"))
        job.await_("] here")
        processes = self.processes()
        self.assertIn(
            "hard has been told to stop and still runs after 1 s; `muster stop --now hard` does not wait",
            self.muster("stop", "--timeout", "1", "hard", code=78),
        )
        self.assertIn("hard: Stopped, exit code 143", self.muster("stop", "--now", "hard"))
        self.assertEqual(job.wait(), 143)
        self.assert_gone(processes)

    def test_all_jobs_are_stopped_at_once(self):
        jobs = [self.hanging(name)[0] for name in ("one", "two")]
        said = self.muster("stop", "--all")
        self.assertIn("one: Stopped", said)
        self.assertIn("two: Stopped", said)
        self.assertEqual([job.wait() for job in jobs], [143, 143])
        self.assertIn("no job runs", self.muster("stop", "--all"))

    def test_wrong_words(self):
        self.run_job(plain_job("known", "true"))
        self.assertIn("no job 'knwon' has run here; the nearest names are known", self.muster("stop", "knwon", code=78))
        self.assertIn("no job '../known'", self.muster("stop", "../known", code=78))
        self.assertIn("JOB, or --all, is required", self.muster("stop", code=64))

    def test_another_process_with_its_number(self):
        """A copied or hostile record: no other process gets a signal."""
        job, _ = self.hanging("copied")
        job.process.send_signal(signal.SIGSTOP)  # it rewrites its record at each change
        os.waitpid(job.process.pid, os.WUNTRACED)
        with open(self.path("copied", "run.json")) as file:
            record = json.load(file)
        for change in ({"pid": os.getpid()}, {"pid_started": record["pid_started"] + 1}, {"pid": 2**31 - 1}):
            with self.subTest(change):
                with open(self.path("copied", "run.json"), "w") as file:
                    json.dump(record | change, file)
                self.assertIn("is gone", self.muster("stop", "copied", code=78))
        for number in (signal.SIGTERM, signal.SIGCONT):
            job.process.send_signal(number)
        job.wait()


class Detach(CommandCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.muster, "stop", "--all", "--now")

    def detach(self, name, script, *words, code=0):
        return self.muster(
            "local", "--detach", "-f", self.file(f"{name}.yaml", plain_job(name, script)), *words, code=code
        )

    def test_from_its_start_to_its_end(self):
        script = f"echo begins; while [ ! -e {self.folder}/go ]; do sleep 0.05; done; exit 4"
        said = self.detach("night", script)
        self.assertIn("muster logs -f night", said)
        self.assertIn(self.row("night")[2], ("Starting", "Running", "Created"))
        follower = Job(
            [os.path.join(BIN, "muster"), "logs", "-f", "night"],
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
        )
        self.addCleanup(follower.end)
        follower.await_("begins")
        self.assertIn("a job 'night' runs here already", self.detach("night", script, code=78))
        self.file("go", "")
        self.assertEqual(follower.wait(), 0, follower.said)
        self.assertIn("[night-node-0-0] begins", follower.said)
        self.assertIn("TrainJob night: Failed", follower.said)
        self.assertEqual((self.row("night")[2], self.row("night")[-1]), ("Failed", "4"))
        self.assertIn("begins", self.muster("logs", "--node", "0", "night"))

    def test_a_detached_job_can_be_stopped(self):
        self.detach("night", HANGS)
        self.assertIn("night: Stopped, exit code 143", self.muster("stop", "night"))
        self.assertEqual(self.row("night")[2], "Stopped")

    def test_what_cannot_start_is_said_at_once(self):
        self.assertIn(
            "spec.trainer.numNodes",
            self.muster(
                "local",
                "--detach",
                "-f",
                self.file("job.yaml", plain_job("bad", "true").replace("numNodes: 1", "numNodes: one")),
                code=78,
            ),
        )
        self.assertIn("--kill 'node:1'", self.detach("bad", "true", "--kill", "node:1", code=78))
        os.makedirs(self.path("bad", "output.log"))
        self.assertIn("output.log: Is a directory", self.detach("bad", "true", code=78))


class StatusLine(CommandCase):
    def on_terminal(self, text, columns=100, stdout=None, until=b"", **environment):
        """Runs the job on a terminal. After `until` the job may end. Returns all output, and the lines shown at the
        end."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [os.path.join(BIN, "muster-local"), "-f", self.file("job.yaml", text)],
            stdin=subprocess.DEVNULL,
            stdout=stdout or slave,
            stderr=slave,
            cwd=self.folder,
            start_new_session=True,
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state"), **{"TERM": "xterm", **environment}),
        )
        os.close(slave)
        self.addCleanup(process.kill)
        got = b""
        while select.select([master], [], [], DEADLINE)[0]:
            try:
                got += os.read(master, 65536)
            except OSError:  # all processes have closed it
                break
            if re.search(until, got):
                self.file("go", "")
        self.assertEqual(process.wait(DEADLINE), 0, got)
        raw = got.decode()
        shown = [re.split("\r\x1b\\[K", line)[-1] for line in raw.replace("\r\n", "\n").split("\n")]
        return raw, shown

    SCRIPT = """import os
for i in range(300):
    os.write(1 + i % 2, f"rank {os.environ['RANK']} line {i}\\n".encode())
while not os.path.exists(GO):
    os.popen("sleep 0.05").read()
"""

    def job(self, nodes=2):
        return train_job(
            "live",
            f"[torchrun, {self.file('say.py', self.SCRIPT.replace('GO', repr(self.folder + '/go')))}]",
            nodes=nodes,
            processes=2,
        )

    def test_never_mixes_with_output(self):
        _, shown = self.on_terminal(self.job(), until=rb"live: \w+ \| round 0 \| \d of 4 ranks ready")
        for rank in range(4):
            for i in range(300):
                self.assertIn(f"[live-node-0-{rank // 2}] [rank{rank}]:rank {rank} line {i}", shown)
        self.assertFalse(
            [line for line in shown if " ranks ready" in line and line.startswith("live:")], "it is gone at the end"
        )
        for line in shown:
            self.assertNotRegex(line, r"\x1b|\r")

    def test_a_narrow_terminal(self):
        raw, _ = self.on_terminal(self.job(nodes=1), columns=20)
        drawn = [line for line in re.split("\r\x1b\\[K|\n", raw) if line.startswith("live: ")]
        self.assertTrue(drawn)
        self.assertLessEqual(max(map(len, drawn)), 19, drawn)

    def test_where_there_is_none(self):
        for environment in ({"TERM": "dumb"}, {"TERM": ""}):
            with self.subTest(environment):
                self.assertNotIn("\x1b", self.on_terminal(plain_job("plain", "true"), **environment)[0])
        self.assertNotIn("\x1b", self.run_job(plain_job("plain", "true"), env={"TERM": "xterm"}))

    def test_output_that_goes_elsewhere_stays_clean(self):
        with open(os.path.join(self.folder, "out"), "w+") as out:
            raw, _ = self.on_terminal(plain_job("apart", "echo said", nodes=2), stdout=out)
            out.seek(0)
            self.assertEqual(
                sorted(line for line in out.read().splitlines() if "said" in line),
                ["[apart-node-0-0] said", "[apart-node-0-1] said"],
            )
        self.assertIn(" of 2 nodes ready", raw)


class Remove(CommandCase):
    def test_what_has_ended_goes_and_what_runs_stays(self):
        self.run_job(plain_job("one", "true"))
        self.run_job(plain_job("two", "true"))
        self.hanging("runs")
        self.assertIn("one: its logs, records and volumes are removed", self.muster("rm", "one"))
        self.assertFalse(os.path.exists(self.path("one")))
        self.assertIn("a job 'runs' runs here already; `muster stop runs` ends it", self.muster("rm", "runs", code=78))
        self.assertIn("two: its logs, records and volumes are removed", self.muster("prune"))
        self.assertEqual(os.listdir(self.path()), ["runs"])
        self.assertIn("no job has ended", self.muster("prune"))
        self.assertIn("no job 'one'", self.muster("rm", "one", code=78))


class Keep(CommandCase):
    def test_volumes_go_and_logs_stay(self):
        pod = (
            "containers: [{name: node, image: i, volumeMounts: [{name: v, mountPath: /srv/v}]}], "
            "volumes: [{name: v, emptyDir: {}}]"
        )
        job = plain_job("kept", "echo said; echo left > /srv/v/file", runtime_name="with-volume")
        for arguments, left in [([], []), (["--keep"], ["file"])]:
            with self.subTest(arguments):
                self.run_job(job, runtime("with-volume", pod), arguments=arguments)
                found = [name for _, _, names in os.walk(self.path("kept", "pods")) for name in names]
                self.assertEqual(sorted(set(found) & {"file", "node.log"}), sorted([*left, "node.log"]))
        self.assertFalse(os.path.exists(self.path("kept", "hosts.new")))


if __name__ == "__main__":
    class_runner.main()
