# SPDX-License-Identifier: Apache-2.0
"""Nodes in network namespaces of their own, on one bridge. A test can cut their links without an error at either end.

One user and network namespace holds the bridge; each node is a network namespace inside it. Nothing outlives the test:
each namespace is held by a `cat` that ends with its standard input, so a killed test cleans up too.
"""

import os
import shutil
import subprocess
import sys

# In a node's network: makes the other namespaces that a pod has of its own.
POD = (
    "unshare",
    "--uts",
    "--mount",
    "sh",
    "-ec",
    'hostname "$1"; mount --bind "$2" /etc; mount -t tmpfs tmpfs /dev/shm; shift 2; exec "$@"',
    "sh",
)

# Runs inside a node: prints "ready", then ends once the interface has sent so many packets.
COUNT_PACKETS = """
import socket, sys
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
tap.bind(("eth0", 3))
print("ready", flush=True)
left = int(sys.argv[1])
while left > 0:
    _, (_, _, kind, _, _) = tap.recvfrom(65536)
    left -= kind == socket.PACKET_OUTGOING
"""


class Unavailable(Exception):
    """This machine lacks namespaces or a tool for them; the message says which."""


class Network:
    def __init__(self, count, routed=True, every_user=False):
        """`routed`: as behind a router, a lost host never answers. Else "no route to host" comes after a while.
        `every_user`: all users exist inside, not only root, as an sshd needs; needs root on this machine."""
        for tool in ("unshare", "nsenter", "ip", "bridge"):
            if shutil.which(tool) is None:
                raise Unavailable(f"`{tool}` is not installed")
        self._holders = []
        try:
            self._enter = ("--net",) if every_user else ("--user", "--net", "--preserve-credentials")
            users = () if every_user else ("--user", "--map-root-user")
            self._middle = self._hold("unshare", *users, "--net", "cat")
            self._run(self._middle, "ip", "link", "add", "name", "br0", "type", "bridge")
            self._run(self._middle, "ip", "link", "set", "br0", "up")
            self._nodes = [self._add(number, routed) for number in range(count)]
        except BaseException:
            self.close()
            raise

    def address(self, node):
        return f"10.77.0.{node + 1}"

    def enter(self, node):
        """The prefix of a command that runs it as `node`. The process keeps its id."""
        return ["nsenter", "--target", str(self._nodes[node].pid), *self._enter]

    def enter_pod(self, node, etc):
        """As enter(), with a host name (`pod-0` ...), a /dev/shm and the folder `etc` as /etc."""
        return [*self.enter(node), *POD, f"pod-{node}", etc]

    def cut(self, node):
        """Drops everything from and to `node`, silently: its interface stays up, neighbours stay known."""
        self._port(node, "0")

    def heal(self, node):
        self._port(node, "3")

    def packets_from(self, node, count):
        """A process that ends once `node` has tried to send so many packets, counted from now on."""
        counter = subprocess.Popen(
            [*self.enter(node), sys.executable, "-c", COUNT_PACKETS, str(count)], stdout=subprocess.PIPE, text=True
        )
        counter.stdout.readline()
        return counter

    def close(self):
        for holder in reversed(self._holders):
            holder.stdin.close()
            holder.stdout.close()
            holder.wait()
        self._holders = []

    def _hold(self, *command):
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._holders.append(holder)
        with holder.stderr:
            try:
                holder.stdin.write(b"there?\n")
                holder.stdin.flush()
            except BrokenPipeError:
                pass
            if not holder.stdout.readline():
                raise Unavailable(f"{' '.join(command)}: {holder.stderr.read().decode().strip()}")
        return holder

    def _run(self, place, *command):
        done = subprocess.run(
            ["nsenter", "--target", str(place.pid), *self._enter, *command], capture_output=True, text=True
        )
        if done.returncode:
            raise Unavailable(f"{' '.join(command)}: {done.stderr.strip()}")

    def _add(self, number, routed):
        node = self._hold("nsenter", "--target", str(self._middle.pid), *self._enter, "unshare", "--net", "cat")
        self._run(
            self._middle,
            "ip",
            "link",
            "add",
            f"v{number}",
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "address",
            self._mac(number),
            "netns",
            str(node.pid),
        )
        self._run(self._middle, "ip", "link", "set", f"v{number}", "master", "br0", "up")
        self._run(node, "ip", "link", "set", "lo", "up")
        self._run(node, "ip", "address", "add", f"{self.address(number)}/24", "dev", "eth0")
        self._run(node, "ip", "link", "set", "eth0", "up")
        for other in range(16):
            if routed and other != number:
                self._run(
                    node,
                    "ip",
                    "neighbour",
                    "replace",
                    self.address(other),
                    "lladdr",
                    self._mac(other),
                    "dev",
                    "eth0",
                    "nud",
                    "permanent",
                )
        return node

    def _port(self, node, state):
        self._run(self._middle, "bridge", "link", "set", "dev", f"v{node}", "state", state)

    @staticmethod
    def _mac(node):
        return f"02:00:00:00:77:{node + 1:02x}"


def lay_etc(folder):
    """Makes a copy of this machine's /etc in which the pods have names; returns its path."""
    etc = os.path.join(folder, "etc")
    subprocess.run(["cp", "-a", "/etc", etc], check=True)
    with open(os.path.join(etc, "hosts"), "w") as hosts:
        hosts.write("127.0.0.1 localhost\n")
        hosts.writelines(f"10.77.0.{pod + 1} pod-{pod} pod-{pod}.job.default.svc\n" for pod in range(8))
    shutil.rmtree(os.path.join(etc, "mpi"), ignore_errors=True)
    return etc


def permitted():
    """None, or the reason why there can be no such network here."""
    try:
        Network(1).close()
        return None
    except (Unavailable, OSError) as why:
        return str(why)
