# SPDX-License-Identifier: Apache-2.0
"""A worker pod of an MPI job besides its remote shell: preemption notices, the node check, the termination message."""

import json
import os
import signal

from muster_case import MUSTER, clean, main, wait_gone

from remote_shells import RshCase

UNHEALTHY = 204


class Case(RshCase):
    def setUp(self):
        super().setUp()
        self.notice = os.path.join(self.dir, "notice")
        self.log = os.path.join(self.dir, "termination-log")
        open(self.log, "w").close()
        self.gate = os.path.join(self.dir, "gate")
        os.mkfifo(self.gate)

    def left(self):
        with open(self.log) as file:
            message = json.load(file)
        return message["exit_code"], message["class"], message["reason"]

    def come(self, *flags, port=0):
        """Starts a pod; it need not come to serve."""
        return self.spawn(
            ["exec", "--serve-rsh", "--rsh-listen", f"127.0.0.1:{port}", "--termination-log", self.log, *flags]
        )

    def appear(self):
        with open(self.notice, "w"):
            pass

    def caller(self, port, *command):
        return self.with_pipes(
            [*self.call(type("Pod", (), {"host": "127.0.0.1", "port": port}), *command)], env=clean()
        )


class Verdicts(Case):
    def test_pods_on_one_machine_hear_how_the_job_ended(self):
        """All hosts name this machine; each has a pod, except the launcher's own."""
        first = self.pod(host="127.0.0.2")
        pods = [first, self.pod(host="127.0.0.3", port=first.port)]
        hosts = ",".join(["localhost", *(pod.host for pod in pods)])
        launcher = self.with_pipes(
            [MUSTER, "exec", "--wire=mpi", "--", "sh", "-c", "read go; exit 7"],
            text=True,
            env=clean(MUSTER_MPI_HOSTS=hosts, MUSTER_RSH_PORT=str(first.port)),
        )
        for pod in pods:
            self.wait_for_output(pod, "the launcher is")
        launcher.stdin.write("go\n")
        launcher.stdin.flush()
        self.assertEqual([self.code(launcher), *(pod.wait() for pod in pods)], [7, 7, 7])
        self.assertNotIn("cannot tell a worker the verdict", launcher.stderr.read())


class Notices(Case):
    def test_the_commands_are_told_and_the_pod_goes(self):
        pod = self.pod("--preempt-file", self.notice, "--node-check", "echo fit", "--termination-log", self.log)
        # The child prints "ready": until a child has executed sleep, the shell's trap would swallow its SIGTERM.
        waits = "trap 'echo got; exit {}' TERM; sh -c 'echo ready; exec sleep 1000' & wait"
        callers = [self.begin(pod, waits.format(code)) for code in (9, 0)]
        for caller in callers:
            self.assertEqual(caller.stdout.readline(), b"ready\n")
        self.appear()
        for caller, code in zip(callers, (9, 0)):
            self.assertEqual((caller.stdout.readline(), self.code(caller)), (b"got\n", code))
            self.assertIn(b"the pod is being stopped", caller.stderr.read())
        self.assertEqual(pod.wait(), 143)
        self.assertEqual(self.left(), (143, "retryable", f"preempted: {self.notice} appeared"))
        self.assertIn("[node check] fit", pod.output())

    def test_the_term_that_follows_changes_nothing_and_the_next_kills(self):
        pod = self.pod("--preempt-file", self.notice, "--shutdown-timeout", "100000", "--termination-log", self.log)
        caller = self.begin(
            pod, "trap 'echo got' TERM; trap 'echo on' USR1; echo ready; while :; do sleep 1000 & wait $!; done"
        )
        self.assertEqual(caller.stdout.readline(), b"ready\n")
        self.appear()
        self.assertEqual(caller.stdout.readline(), b"got\n")
        pod.send(signal.SIGTERM)
        caller.send_signal(signal.SIGUSR1)  # the command's checkpoint goes on
        self.assertEqual(caller.stdout.readline(), b"on\n")
        self.assertIsNone(pod.process.poll())
        pod.send(signal.SIGTERM)
        self.assertEqual((self.code(caller), pod.wait()), (137, 143))
        self.assertEqual(self.left()[2], f"preempted: {self.notice} appeared")

    def test_one_that_is_there_already(self):
        self.appear()
        pod = self.come("--preempt-file", self.notice)
        self.assertEqual(pod.wait(), 143)
        self.assertEqual(self.left(), (143, "retryable", f"preempted: {self.notice} appeared"))

    def test_a_folder_that_is_not_there(self):
        pod = self.come("--preempt-file", os.path.join(self.dir, "no", "notice"))
        self.assertEqual(pod.wait(), 78)
        self.assertIn("must be there at the start", self.left()[2])


class Checks(Case):
    def opened(self):
        """Opens the other end of the pipe that a check waits for, once the check waits."""
        return open(self.gate, "w")

    def test_nobody_is_served_before_it_has_passed(self):
        port = self.free_port()
        pod = self.come("--node-check", f"read line < {self.gate}; echo $line", port=port)
        gate = self.opened()
        caller = self.caller(port, "echo served")
        self.assertIn(f"waiting for 127.0.0.1:{port}".encode(), caller.stderr.readline())
        self.assertNotIn("serving the remote shell", pod.output())
        with gate:
            gate.write("fit\n")
        self.assertEqual((self.code(caller), caller.stdout.read()), (0, b"served\n"))
        self.assertRegex(pod.output(), r"(?s)\[node check\] fit.*node check passed after .*serving the remote shell")

    def test_the_place_of_one_that_fails_goes_to_its_replacement(self):
        port = self.free_port()
        caller = self.caller(port, "echo served; exit 3")
        self.assertIn(f"waiting for 127.0.0.1:{port}".encode(), caller.stderr.readline())
        bad = self.come("--node-check", "echo ECC error >&2; exit 1", port=port)
        self.assertEqual(bad.wait(), UNHEALTHY)
        self.assertNotIn("serving the remote shell", bad.output())
        self.assertEqual(
            self.left(),
            (UNHEALTHY, "retryable", "node check failed: `echo ECC error >&2; exit 1` ended with 1: ECC error"),
        )
        self.come("--node-check", "true", port=port)
        self.assertEqual((self.code(caller), caller.stdout.read()), (3, b"served\n"))

    def test_a_signal_while_it_is_checked(self):
        """Also if a preemption notice is awaited."""
        for flags in ((), ("--preempt-file", self.notice)):
            pod = self.come("--node-check", f"echo $$ > {self.gate}; exec sleep 1000", *flags)
            with open(self.gate) as gate:
                check = int(gate.read())
            pod.send(signal.SIGTERM)
            self.assertEqual(pod.wait(), 143, pod.output())
            self.assertTrue(wait_gone(check))
            self.assertNotIn("serving the remote shell", pod.output())

    def test_a_notice_while_it_is_checked(self):
        pod = self.come("--node-check", f"read line < {self.gate}", "--preempt-file", self.notice)
        with self.opened() as gate:
            self.appear()
            gate.write("fit\n")
        self.assertEqual(pod.wait(), 143)
        self.assertEqual(self.left(), (143, "retryable", f"preempted: {self.notice} appeared"))


if __name__ == "__main__":
    main()
