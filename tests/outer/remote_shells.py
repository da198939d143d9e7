# SPDX-License-Identifier: Apache-2.0
"""Worker pods of the remote shell and their callers, for tests: both are the real binary."""

import os
import subprocess

from muster_case import DEADLINE, MUSTER, Agent, MusterCase, clean


class RshCase(MusterCase):
    def spawn(self, arguments, env=None, prefix=(), binary=MUSTER, **popen):
        """Starts the binary with its output in a file of the test's folder; killed at the end of the test."""
        path = os.path.join(self.dir, f"agent-{len(self.agents)}.txt")
        popen.setdefault("stdin", subprocess.DEVNULL)
        with open(path, "w") as output:
            process = subprocess.Popen(
                [*prefix, binary, *arguments],
                env=clean(**(env or {})),
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.dir,
                **popen,
            )
        agent = Agent(process, path)
        self.agents.append(agent)
        return agent

    def pod(self, *flags, host="127.0.0.1", port=0, env=None, prefix=(), binary=MUSTER):
        """A worker pod, once it serves; `port` and `host` say where."""
        words = ["exec", "--serve-rsh", "--rsh-listen", f"{host}:{port}", *flags]
        pod = self.spawn(words, env=env, prefix=prefix, binary=binary)
        said = self.wait_for_output(pod, r"serving the remote shell on .*, port \d+")
        pod.host = host
        pod.port = int(said.split("serving the remote shell on ")[1].split(", port ")[1].split()[0].rstrip('",}'))
        return pod

    @staticmethod
    def call(pod, *command, flags=(), binary=MUSTER):
        """The command line that runs `command` in the pod."""
        return [binary, "rsh", "-p", str(pod.port), *flags, pod.host, *command]

    def rsh(self, pod, *command, flags=(), env=None, binary=MUSTER, **more):
        """Runs `command` in the pod to its end; the output is bytes."""
        if "input" not in more:
            more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(
            self.call(pod, *command, flags=flags, binary=binary),
            capture_output=True,
            env=clean(**(env or {})),
            timeout=DEADLINE,
            **more,
        )

    def begin(self, pod, *command, flags=(), env=None, binary=MUSTER, **more):
        """Starts `command` in the pod with pipes; killed at the end of the test."""
        return self.with_pipes(self.call(pod, *command, flags=flags, binary=binary), env=clean(**(env or {})), **more)
