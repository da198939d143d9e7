# SPDX-License-Identifier: Apache-2.0
"""A test case with a script of the test's own, its installed modules, and standby workers."""

import glob
import json
import os
import re
import shutil
import textwrap
import threading
import time

from muster_case import DEADLINE, HERE, MusterCase

from standby_test import OF_ROUND

READY = r"a standby worker is ready"
# A module's way to tell where it is imported.
STANDBY = "open('/proc/self/oom_score_adj').read().strip() == '1000'"


class StandbyCase(MusterCase):
    def setUp(self):
        super().setUp()
        self.site = os.path.join(self.dir, "lib", "site-packages")  # the modules in it count as installed
        os.makedirs(self.site)
        self.script = os.path.join(self.dir, "script.py")

    def write(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))

    def install(self, module, text):
        self.write(os.path.join(self.site, module + ".py"), text)

    def write_script(self, imports, facts="None"):
        """A script that notes each run, imports, prints the value of `facts` as JSON, and obeys."""
        self.write(
            self.script,
            f"with open({os.path.join(self.dir, 'runs')!r}, 'a') as file: file.write('run\\n')\n"
            f"{imports}\n"
            "import json, os, signal, socket, subprocess, sys\n"
            f"os.write(1, ('\\nfacts ' + json.dumps({facts}) + '\\n').encode())\n"  # at once: stderr has another writer
            f"exec(open({os.path.join(HERE, 'obedient_worker.py')!r}).read())\n",
        )

    def begin(self, *arguments, imports="module_m,json,socket,subprocess", env=None, script_words=None, **more):
        """`imports`: the first standby that is ready has them all. None: they are learned, and come bit by bit."""
        words = ["--standby-workers", "auto", "--standby-delay", "0s", "--log-level", "debug", "--max-restarts", "3"]
        words += ["--standby-imports", imports] if imports else []
        env = {"PYTHONPATH": self.site, "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
        return self.start(*words, *arguments, *(script_words or [self.script]), worker=False, env=env, **more)

    def facts(self, agent):
        return [json.loads(line) for line in re.findall(r"^facts (.*)$", agent.output(), re.MULTILINE)]

    def runs(self):
        with open(os.path.join(self.dir, "runs")) as file:
            return len(file.read().split())

    def end(self, agent, workers):
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual(agent.wait(), 0, agent.output())

    def await_ready(self, agent, count=1):
        """The pids of the first `count` standbys that are ready."""
        output = self.wait_for_output(agent, rf"(?s)({READY}.*){{{count}}}")
        return [int(pid) for pid in re.findall(READY + r".*pid=(\d+)", output)]

    def two_attempts(self, *arguments, **more):
        """Runs the script twice. Returns the agent and the facts of both attempts."""
        agent = self.begin(*arguments, **more)
        (worker,) = self.workers(1)
        self.await_ready(agent)
        worker.tell("exit 1")
        (worker,) = self.workers(1)
        self.end(agent, [worker])
        self.assertEqual(self.runs(), 2)
        facts = self.facts(agent)
        self.assertEqual(len(facts), 2, agent.output())
        return agent, facts

    def forget(self):
        """As if no script had run."""
        shutil.rmtree(os.path.join(self.dir, "state"), ignore_errors=True)  # the kept list
        self.write(os.path.join(self.dir, "runs"), "")

    def check_changes(self, before, module, early, said, **more):
        """A script that does `before` and imports `module`, the text of module_m, sees the same in a standby.

        `early`: whether the standby has imported module_m. `said`: what the log says is left out; "": nothing."""
        self.forget()
        self.install("module_m", module)
        environment = f"dict(os.environ, **dict.fromkeys({sorted(OF_ROUND)!r}))"
        self.write_script(
            f"import os, sys\nearly, first = 'module_m' in sys.modules, {environment}\n{before}\nimport module_m\n"
            "import subprocess\nfor_c = subprocess.run(['printenv', 'X_HOME', 'GIVEN'], stdout=-1).stdout.decode()",
            f"[early, module_m.VALUE, sys.path, first, {environment}, for_c]",
        )
        agent = self.begin(imports=None, env={"GIVEN": "x"}, **more)
        (worker,) = self.workers(1)
        self.wait_for_output(agent, said if "leave out" in said else f"(?s){said}.*{READY}")
        if "neither" not in said:
            self.await_list("=end:" if "leave out" in said else "subprocess")
        worker.tell("exit 1")
        (worker,) = self.workers(1)
        self.wait_for_output(agent, "1 of 1 worker began in a standby")
        self.end(agent, [worker])
        cold, warm = self.facts(agent)
        self.assertEqual(cold[1:], warm[1:])
        self.assertEqual((cold[0], warm[0]), (False, early))
        if not said:
            self.assertNotRegex(agent.output(), "do not import|leave out|import neither")
        return warm

    def await_list(self, last):
        """Waits until a standby has imported what the worker has named, up to `last`. Then the list is kept."""
        end, ticker = time.monotonic() + DEADLINE, threading.Event()
        while time.monotonic() < end:
            for path in glob.glob(os.path.join(self.dir, "state", "muster", "imports", "*[!t]")):  # no .part
                with open(path) as file:
                    if last in file.read():
                        return
            ticker.wait(0.01)
        self.fail(f"no list with {last}")
