# SPDX-License-Identifier: Apache-2.0
"""Isolation of the hosts of `muster local`: a network of their own as root, else addresses of this machine; without
bubblewrap, this machine's files. Nothing of it is left behind."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import (
    BIN,
    DEADLINE,
    LocalCase,
    OpenCase,
    clean,
    plain_job,
    pytorch_job,
    runtime,
    shell,
    train_job,
    wait_gone,
)

import class_runner

RTMGRP_LINK = 1  # linux/rtnetlink.h

# Each host listens at the same port of all its addresses; host 0 accepts a connection from the other host.
SERVE = """
import os, socket, sys
rank = int(os.environ["JOB_COMPLETION_INDEX"])
with socket.create_server(("", 7777)) as server:
    if rank:
        open("listens").close()  # blocks until the other host listens
        with socket.create_connection((sys.argv[1], 7777)) as peer:
            print("from", peer.recv(100).decode(), flush=True)
    else:
        open("listens", "w").close()
        peer, address = server.accept()
        peer.sendall(socket.gethostname().encode())
        print("host 0 heard", address[0], flush=True)
"""


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def link_of(gateway):
    """The name of this machine's link with that address; None: there is none."""
    lines = [line.split() for line in output("ip", "-o", "-4", "addr", "show").splitlines()]
    return next((line[1] for line in lines if line[3].split("/")[0] == gateway), None)


class Private(LocalCase):
    """Each host has its own network."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "job.yaml")
            with open(path, "w") as file:
                file.write(plain_job("asked", "true"))
            tried = subprocess.run(
                [os.path.join(BIN, "muster-local"), "--network", "private", "-f", path],
                capture_output=True,
                text=True,
                env=clean(XDG_STATE_HOME=folder),
                timeout=DEADLINE,
            )
        why = re.search("--network private: .*", tried.stderr)
        if why:
            raise unittest.SkipTest(f"SKIPPED: {why[0]}")

    def start(self, *files, arguments=(), **more):
        return super().start(*files, arguments=["--network", "private", *arguments], **more)

    def test_hosts_share_no_port(self):
        job = plain_job("ports", "exec python3 serve.py ports-node-0-0.ports", nodes=2)
        self.file("serve.py", SERVE)
        os.mkfifo(os.path.join(self.folder, "listens"))
        said = self.run_job(job)
        self.assertIn("each host has its own volumes, /dev/shm, host name and network\n", said)
        self.assertIn("[ports-node-0-1] from ports-node-0-0", said)
        self.assertRegex(said, r"\[ports-node-0-0\] host 0 heard 198\.(18|19)\.")

    def test_forwarding_is_on_for_the_run_alone(self):
        """In a network of the test's own, as this machine's is other tests', too."""
        for name in ("up", "go"):
            os.mkfifo(os.path.join(self.folder, name))
        job = self.file("job.yaml", plain_job("forwards", "echo > up; cat go"))
        script = (
            "ip link set lo up; echo 0 > /proc/sys/net/ipv4/ip_forward; "
            "show() { echo $1 $(cat /proc/sys/net/ipv4/ip_forward); }; show before; "
            f"{BIN}/muster-local --network private -f {job} & cat up; show during; echo > go; wait $!; "
            f"echo ended $?; show after"
        )
        done = subprocess.run(
            ["unshare", "--net", "sh", "-c", script],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
        )
        for line in ("before 0", "during 1", "ended 0", "after 0"):
            self.assertIn(line, done.stdout.splitlines(), done.stdout + done.stderr)

    def test_a_firewall_that_drops_forwarded_packets(self):
        """In networks of the test's own."""
        hook = "nft add chain {} '{{ type filter hook {} priority 0; policy {}; }}'"
        rows = [
            ("inet", [("inet fw ways", "forward", "drop")], "inet fw ways"),
            ("ip", [("ip fw IN", "input", "drop"), ("ip fw FORWARD", "forward", "drop")], "ip fw FORWARD"),
            ("ip", [("ip fw FORWARD", "forward", "accept"), ("ip fw IN", "input", "drop")], None),
            ("ip6", [("ip6 fw FORWARD", "forward", "drop")], None),
        ]
        job = self.file("job.yaml", plain_job("walled", "true"))
        for family, chains, drops in rows:
            words = ["ip link set lo up", f"nft add table {family} fw", *(hook.format(*chain) for chain in chains)]
            done = subprocess.run(
                ["unshare", "--net", "sh", "-ec", "; ".join([*words, f"{BIN}/muster-local -f {job}"])],
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=DEADLINE,
                env=clean(XDG_STATE_HOME=os.path.join(self.folder, "state")),
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            want = f"the firewall drops forwarded packets (nft chain {drops})" if drops else "host name and network\n"
            self.assertIn(want, done.stderr, chains)

    def test_they_reach_this_machine_and_its_network_stays_as_it_was(self):
        job = self.start(plain_job("reach", "ip route; echo up; exec sleep infinity"))
        gateway = job.await_(r"default via (198\.[0-9.]+)")[1]
        job.await_("] up")
        link = link_of(gateway)
        self.assertRegex(link, "^mstr")
        number = output("ip", "-o", "link", "show", link).split(":")[0]
        self.assertIn(f"muster_{link}\n", output("nft", "list", "tables"))
        job.process.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(), 143)
        # Searches by the link's number: another run may have a link of that name by now.
        self.assertNotIn(number, [line.split(":")[0] for line in output("ip", "-o", "link").splitlines()])

    def test_the_link_goes_with_a_killed_run(self):
        job = self.start(plain_job("killed", "ip route; exec sleep infinity"))
        gateway = job.await_(r"default via (198\.[0-9.]+)")[1]
        self.assertRegex(link_of(gateway), "^mstr")
        job.process.kill()
        job.wait()
        # A kernel thread removes the link, some time after the last process and descriptor.
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as changes:
            changes.bind((0, RTMGRP_LINK))
            changes.settimeout(DEADLINE)
            while link_of(gateway):
                changes.recv(65536)

    def test_a_cut_link(self):
        """Packets of a host whose link is cut do not arrive until the link is mended. The link stays up."""
        send = """
import os, socket, sys
rank = int(os.environ["JOB_COMPLETION_INDEX"])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
    here.bind(("", 7777))
    print("bound", flush=True)
    if rank == 0:
        while (heard := here.recv(100)) != b"end":
            print("heard", heard.decode(), flush=True)
    else:
        for line, word in ((1, b"before"), (2, b"lost"), (3, b"end")):
            open(f"go{line}").close()  # blocks until the test opens the FIFO
            here.sendto(word, (sys.argv[1], 7777))
            print("sent", word.decode(), flush=True)
"""
        self.file("send.py", send)
        for line in (1, 2, 3):
            os.mkfifo(os.path.join(self.folder, f"go{line}"))
        job = self.start(
            plain_job("cut", "exec python3 send.py cut-node-0-0.cut", nodes=2),
            arguments=["--kill", "node:1:cut@heard before", "--kill", "node:1:mend@sent lost"],
        )
        job.await_("(?s)bound.*bound")
        self.file("go1", "")
        job.await_("heard before")
        job.await_("drill node:1:cut@heard before: node 1 is cut off")
        self.file("go2", "")
        job.await_("node 1 is reached again")
        self.file("go3", "")
        self.assertEqual(job.wait(), 0, job.said)
        self.assertNotIn("heard lost", job.said)

    def test_of_this_machine(self):
        said = self.run_job(
            plain_job("open", "ls /sys/class/net; readlink /proc/self/ns/net", runtime_name="open"),
            runtime("open", "hostNetwork: true, containers: [{name: node, image: i}]"),
        )
        self.assertIn(os.readlink("/proc/self/ns/net"), said)

    def test_pods_of_a_pytorchjob_find_the_master(self):
        said = self.run_job(pytorch_job("own", shell('getent hosts "$MASTER_ADDR"; hostname -i')))
        self.assertRegex(said, r"\[own-worker-0\] 198\.(18|19)\..*own-master-0")


class Shared(LocalCase):
    """All hosts share this machine's network."""

    def start(self, *files, arguments=(), **more):
        return super().start(*files, arguments=["--network", "shared", *arguments], **more)

    def test_two_jobs_at_one_port(self):
        """Each job serves its rendezvous at port 29500 of an address of its own."""
        jobs = []
        for name in ("one", "two"):
            command = '[torchrun, --no-python, sh, -c, "echo ready; while [ ! -e go ]; do sleep 0.1; done"]'
            jobs.append(self.start(train_job(name, command, port=29500)))
        for name, job in zip(("one", "two"), jobs):
            job.await_(rf"{name}-node-0-1.* ready")
        self.file("go", "")
        for job in jobs:
            self.assertEqual(job.wait(), 0, job.said)
        self.assertIn("all share this machine's network: --network shared\n", jobs[0].said)

    def test_no_link_to_cut(self):
        said = self.run_job(plain_job("cut", "echo now"), arguments=["--kill", "node:0:cut@now"], code=78)
        self.assertIn(
            "--kill 'node:0:cut@now': all hosts share this machine's network, so none has a link to cut: "
            "--network shared",
            said,
        )
        self.assertNotIn("] now", said)

    def test_a_wrong_mode(self):
        job = super().start(plain_job("a", "true"), arguments=["--network", "own"])
        self.assertEqual(job.wait(), 78)
        self.assertIn("--network 'own': want auto, private or shared", job.said)


class WithoutBubblewrap(OpenCase):
    def test_torchrun_on_two_nodes(self):
        script = 'import os; print("rank", os.environ["RANK"], os.environ["MASTER_ADDR"], flush=True)'
        self.file("place.py", script)
        said = self.run_job(train_job("open", "[torchrun, place.py]", processes=2))
        self.assertRegex(
            said, "hosts share this machine's files, /dev/shm, host name and network: bubblewrap is not installed"
        )
        for rank in range(4):
            self.assertRegex(said, rf"rank {rank} 127\.")

    def test_volumes_stand_for_their_paths(self):
        words = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {text: hello}
"""
        pod = """volumes: [{name: v, emptyDir: {}}, {name: m, configMap: {name: words}}],
          containers: [{name: node, image: i, env: [{name: OUT, value: /out}],
            volumeMounts: [{name: v, mountPath: /out}, {name: m, mountPath: /words}]}]"""
        said = self.run_job(
            plain_job("files", 'cp /words/text "$OUT/x" && cat /out/x', runtime_name="files"),
            runtime("files", pod) + words,
        )
        self.assertIn("[files-node-0-0] hello", said)
        self.assertIn("without bubblewrap nothing is mounted", said)

    def test_workers_end_with_a_killed_run(self):
        job = self.start(plain_job("killed", "echo pid $$; exec sleep infinity"))
        pid = int(job.await_(r"\] pid (\d+)")[1])
        job.process.kill()
        job.wait()
        wait_gone(pid)

    def test_a_private_network_needs_it(self):
        job = self.start(plain_job("a", "true"), arguments=["--network", "private"])
        self.assertEqual(job.wait(), 78)
        self.assertIn("--network private: bubblewrap is not installed", job.said)


class TroubledBubblewrap(LocalCase):
    """bubblewrap itself fails, as when a file system is unmounted before bubblewrap mounts it, or is slow."""

    def path_with(self, trouble):
        """A PATH with a bwrap that runs the shell's command `trouble` first; $n is the call's number. Call 1 is a
        check."""
        programs = os.path.join(self.folder, "programs")
        os.mkdir(programs)
        script = self.file(
            "programs/bwrap",
            f"""#!/bin/sh
echo >> {self.folder}/calls
n=$(wc -l < {self.folder}/calls)
{trouble}
exec {shutil.which("bwrap")} "$@"
""",
        )
        os.chmod(script, 0o755)
        return {"PATH": f"{programs}:{os.environ['PATH']}"}

    def run_with(self, fails, **more):
        trouble = (
            f"""if {fails}; then echo "bwrap: Can't bind mount /tmp/x: No such file or directory" >&2; exit 1; fi"""
        )
        return self.run_job(plain_job("troubled", "echo runs"), env=self.path_with(trouble), **more)

    def test_a_stop_before_the_command_has_begun(self):
        """Nothing hears SIGTERM then, so the stop does not last for the grace."""
        pod = "terminationGracePeriodSeconds: 3600, containers: [{name: node, image: i}]"
        job = self.start(
            plain_job("slow", "echo runs", runtime_name="patient"),
            runtime("patient", pod),
            env=self.path_with("if [ $n -gt 1 ]; then echo stands >&2; exec sleep 3600; fi"),
        )
        job.await_("stands")
        job.process.send_signal(signal.SIGINT)
        self.assertEqual(job.wait(), 130, job.said)

    def test_one_failure_of_bubblewrap_is_retried(self):
        said = self.run_with("[ $n = 2 ]")
        self.assertIn("] runs", said)
        self.assertIn("TrainJob troubled: Complete\n", said)

    def test_for_good(self):
        """If bubblewrap always fails, the pod ends with 128, not with a code of the command: another machine may run
        it."""
        said = self.run_with("[ $n -gt 1 ]", code=128, arguments=["--set", "spec.activeDeadlineSeconds=20"])
        self.assertIn("Can't bind mount /tmp/x", said)


if __name__ == "__main__":
    class_runner.main()
