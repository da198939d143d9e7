# SPDX-License-Identifier: Apache-2.0
"""Each point of a standby's life: it is killed, stopped or out of memory there, or its agent is killed or ends."""

import os
import re
import signal
import stat
import unittest

from muster_case import main, sanitized, wait_gone
from standby_case import READY, STANDBY, StandbyCase

import containers

PRINTED = r"(?s)a standby worker printed.*pid (\d+)\."


class PointsCase(StandbyCase):
    POINTS = ("probe", "import", "ready", "more")

    def setUp(self):
        super().setUp()
        self.gate = os.path.join(self.dir, "gate")  # nobody opens its other end
        os.mkfifo(self.gate)

    def bring_to(self, point, *arguments):
        """(an agent, its worker, the pid of a process for a standby that is at this point).

        probe: Python has not begun. import: of the first modules. ready: waits for its start. more: was ready, and
        imports what the worker has told since."""
        self.write(os.path.join(self.dir, "runs"), "")
        blocks = f"import os\nif {STANDBY}:\n    os.write(2, b'pid %d.' % os.getpid())\n    open({self.gate!r}).read()"
        self.install("module_m", blocks if point in ("import", "more") else "")
        self.write_script("import module_m")
        env = {"XDG_STATE_HOME": os.path.join(self.dir, "state", str(len(self.agents)))}
        if point == "probe":
            env["PYTHON_EXEC"] = self.wrapper()
        if point == "more":
            go = os.path.join(self.dir, f"go-{len(self.agents)}")
            os.mkfifo(go)
            first = f"if open({os.path.join(self.dir, 'runs')!r}).read() == 'run\\n': open({go!r}).read()"
            self.write_script(f"import wave, sched\n{first}\nimport module_m, xmlrpc.client")
        agent = self.begin(*arguments, env=env, **({"imports": None} if point == "more" else {}))
        if point == "more":
            self.wait_for_output(agent, READY)
            open(go, "w").close()
        (worker,) = self.workers(1)
        if point == "ready":
            return agent, worker, self.await_ready(agent)[0]
        if point == "probe":
            with open(os.path.join(self.dir, "probe")) as probe:
                return agent, worker, int(probe.read())
        return agent, worker, int(re.search(PRINTED, self.wait_for_output(agent, PRINTED))[1])

    def wrapper(self):
        """A Python whose probe tells its pid to the FIFO `probe`, and goes no further."""
        probe = os.path.join(self.dir, "probe")
        if not os.path.exists(probe):
            os.mkfifo(probe)
        path = os.path.join(self.dir, "python")
        self.write(
            path,
            f"""\
            #!/bin/sh
            case "$*" in *"-c pass"*) echo $$ > {probe}; read -r line < {self.gate} ;; esac
            exec /usr/bin/python3 "$@"
            """,
        )
        os.chmod(path, stat.S_IRWXU)
        return path


class Points(PointsCase):
    def test_a_standby_that_is_killed_or_stopped(self):
        """The next attempt is a cold start, and it is no failure of the job."""
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, signal.SIGTERM):
            for point in self.POINTS:
                with self.subTest(number=number, point=point):
                    agent, worker, pid = self.bring_to(point, "--max-restarts", "1")
                    os.kill(pid, number)
                    worker.tell("exit 1")
                    (worker,) = self.workers(1)
                    self.assertTrue(wait_gone(pid))
                    self.end(agent, [worker])
                    self.assertEqual(self.runs(), 2)
                    self.assertNotIn("began in a standby", agent.output())

    def test_an_agent_that_is_killed(self):
        """Nothing is left over."""
        for point in self.POINTS:
            with self.subTest(point=point):
                agent, worker, pid = self.bring_to(point)
                agent.send(signal.SIGKILL)
                agent.wait()
                self.assertTrue(wait_gone(pid))
                self.assertTrue(wait_gone(worker.pid))
                self.assertEqual(self.runs(), 1)

    def test_an_agent_that_is_killed_when_a_worker_has_begun_in_a_standby(self):
        agent, worker, pid = self.bring_to("ready")
        worker.tell("exit 1")
        (worker,) = self.workers(1)
        self.assertEqual(worker.pid, pid)
        agent.send(signal.SIGKILL)
        agent.wait()
        self.assertTrue(wait_gone(pid))

    def test_a_job_that_ends(self):
        for point in self.POINTS:
            with self.subTest(point=point):
                agent, worker, pid = self.bring_to(point)
                self.end(agent, [worker])
                self.assertTrue(wait_gone(pid))
                self.assertEqual(self.runs(), 1)

    def test_an_agent_that_is_told_to_end(self):
        for point in self.POINTS:
            with self.subTest(point=point):
                agent, _, pid = self.bring_to(point)
                agent.send(signal.SIGTERM)
                self.assertEqual(agent.wait(), 143, agent.output())
                self.assertTrue(wait_gone(pid))


EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")  # cgroup v2, v1


class Memory(StandbyCase):
    """The kernel's OOM killer in a container takes the standby, and no other process."""

    LIMIT = 800 << 20  # bytes; without 0.6 GB that are free, there is no standby
    # At its import, or when it is ready: by a thread that begins when the agent has looked at its memory.
    EATS = {
        "import": "eat()",
        "ready": "import threading; threading.Timer(0.2, eat).start()",
    }

    # On a machine under load the kernel takes a second process, if the first has not given its memory back in time.
    TRIES = 5

    @classmethod
    def setUpClass(cls):
        if sanitized():
            raise unittest.SkipTest("SKIPPED: a sanitizer needs more memory than the container has")
        if reason := containers.why_not():
            raise unittest.SkipTest(reason)

    def run_in_container(self, flags):
        box = containers.Container(
            self.dir,
            "debian",
            ["/muster/muster", "run", *flags, "--log-level", "debug", "--max-restarts", "1", self.script],
            user=0,
            env=[f"PYTHONPATH={self.site}", "PYTHON_EXEC=/usr/bin/python3", "HOME=/tmp"],
            mounts=[
                containers.bind(os.path.dirname(containers.MUSTER), "/muster"),
                containers.bind(self.dir, self.dir, writable=True),
            ],
            memory=self.LIMIT,
        )
        self.addCleanup(box.remove)
        return box.run()

    def test_at_each_point(self):
        for point, eats in self.EATS.items():
            with self.subTest(point=point):
                pid = os.path.join(self.dir, f"pid-{point}")
                self.install(
                    "module_m",
                    f"""
                    import os
                    def eat():
                        with open({pid + ".new"!r}, "w") as file:
                            file.write(str(os.getpid()))
                        os.rename({pid + ".new"!r}, {pid!r})
                        held = []
                        while True:
                            held.append(b"x" * (16 << 20))
                    if {STANDBY}:
                        {eats}
                    """,
                )
                self.write(
                    self.script,
                    f"""
                    import module_m, os, select, sys
                    def killed():
                        with open([path for path in {EVENTS!r} if os.path.exists(path)][0]) as events:
                            return dict(line.split() for line in events)["oom_kill"]
                    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
                    if attempt == "0":
                        while not os.path.exists({pid!r}) or killed() == "0":
                            select.select([], [], [], 0.01)
                    print("attempt", attempt, "killed", killed(), flush=True)
                    sys.exit(attempt == "0")
                    """,
                )
                flags = ("--standby-workers", "auto", "--standby-delay", "0s", "--standby-imports", "module_m")
                for _ in range(self.TRIES):
                    if os.path.exists(pid):
                        os.remove(pid)
                    done = self.run_in_container(flags)
                    if "killed 2" not in done.stdout and done.returncode != 137:  # 137: a worker was taken, too
                        break
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.split("\n")[:2], ["attempt 0 killed 1", "attempt 1 killed 1"], done.stderr)
                self.assertNotIn("began in a standby", done.stderr)


if __name__ == "__main__":
    main()
