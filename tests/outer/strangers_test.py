# SPDX-License-Identifier: Apache-2.0
"""Bytes from strangers on both ports of a running job: slow, incomplete, huge and wrong ones, and many connections."""

import json
import resource
import select
import socket
import struct
import subprocess
import time

from muster_case import DEADLINE, MUSTER, main, sanitized
from nodes_case import Nodes

from class_runner import EMULATED
from http2_frames import CALL, PREFACE, SETTINGS, frame, headers

# Bytes that are sent at once, and bytes that follow one at a time.
ON_THE_CONTROL_PORT = {
    "nothing": (b"", b""),
    "a preface, slowly": (b"", PREFACE),
    "a preface": (PREFACE, b""),
    "settings": (PREFACE + SETTINGS, b""),
    "a frame header that never ends": (PREFACE + SETTINGS, frame(1, 4, 1, b"\0" * 100)),
    "a call without a message": (CALL, b""),
    "a message of 4 GiB": (CALL + frame(0, 0, 1, b"\0\xff\xff\xff\xff" + b"x" * 1000), b"x" * 100),
    "a message of 2 MiB": (CALL + frame(0, 0, 1, struct.pack(">BI", 0, 2 << 20) + b"x" * 16000), b"x" * 100),
    "half a message, slowly": (CALL + frame(0, 0, 1, struct.pack(">BI", 0, 500)), frame(0, 0, 1, b"\x0a") * 100),
    "no message of ours": (CALL + frame(0, 0, 1, struct.pack(">BI", 0, 9) + b"\xff" * 9), b""),
    "a method nobody has": (PREFACE + SETTINGS + headers("/no/such"), b""),
    "a frame of 16 MiB": (PREFACE + SETTINGS + b"\xff\xff\xff\0\0\0\0\0\1", b"x" * 100),
    "another protocol": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b""),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"x" * 100),
    "noise": (bytes(range(256)) * 256, b""),
}

VALIDATE = b"\0" + struct.pack("<I", 0x3C85F7CE)


def text(value):
    return struct.pack("<Q", len(value)) + value


# The store closes these connections. The others may be from a client that is slow: they only cost the bytes they sent.
CLOSED_BY_THE_STORE = {
    "a key of 2^62 bytes": VALIDATE + b"\x01" + struct.pack("<Q", 1 << 62),
    "a value of 2^40 bytes": VALIDATE + b"\x01" + text(b"k") + struct.pack("<Q", 1 << 40),
    "2^31 keys": VALIDATE + b"\x05" + struct.pack("<Q", 1 << 31),
    "an unknown operation": VALIDATE + b"\xee",
    "a wrong number": b"\0" + b"\xff" * 64,
    "noise": b"\xff" * 1000,
    "HTTP/2": CALL,
    "TLS": b"\x16\x03\x01\x02\x00",
}
HELD_BY_THE_STORE = {
    "nothing": b"",
    "half a greeting": VALIDATE[:3],
    "8 MiB announced": VALIDATE + b"\x01" + text(b"k") + struct.pack("<Q", 8 << 20) + b"x",
    "100,000 keys announced": VALIDATE + b"\x06" + struct.pack("<Q", 100_000) + text(b"k"),
    "a wait for ever": VALIDATE + b"\x06" + struct.pack("<Q", 1) + text(b"never"),
}


def memory(pid, what):
    """VmRSS (now) or VmHWM (peak) of a process, in bytes."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(what + ":")) * 1024


class Visited(Nodes):
    """A job, and helpers to disturb it."""

    SOME_MEMORY = 1 << 30 if sanitized() else (64 if EMULATED else 16) << 20  # qemu's own code for the program counts

    def setUp(self):
        super().setUp()
        self.links = []
        self.addCleanup(self.hang_up)

    def hang_up(self):
        for link in self.links:
            link.close()
        self.links = []

    def connect(self, address, sends):
        link = socket.create_connection(address)
        self.links.append(link)
        try:
            link.sendall(sends)
        except OSError:  # the other side has closed
            pass
        link.setblocking(False)
        return link

    def wait_for_ends(self, links):
        """Until each of `links` (link -> (name, bytes to send one at a time)) was closed by the other side."""
        rest = {link.fileno(): [link, name, slowly] for link, (name, slowly) in links.items()}
        poller = select.poll()
        for fd in rest:
            poller.register(fd, select.POLLIN)
        end = time.monotonic() + DEADLINE
        while rest:
            self.assertLess(time.monotonic(), end, f"still open: {sorted({name for _, name, _ in rest.values()})}")
            for fd, _ in poller.poll(200):
                try:
                    over = not rest[fd][0].recv(65536)
                except BlockingIOError:
                    continue
                except OSError:
                    over = True
                if over:
                    poller.unregister(fd)
                    del rest[fd]
            for entry in rest.values():
                try:
                    entry[0].send(entry[2][:1])
                    entry[2] = entry[2][1:]
                except OSError:
                    pass  # the next look shows it

    def job(self, *arguments, **more):
        endpoint = self.endpoint()
        host = self.node(endpoint, "2", *arguments, **more)
        subprocess.run(
            [MUSTER, "wait", endpoint], check=True, capture_output=True, timeout=DEADLINE
        )  # it coordinates the job
        agents = [host, self.node(endpoint, "2", *arguments, **more)]
        workers = self.workers(2)
        address = ("127.0.0.1", int(endpoint.rsplit(":", 1)[1]))
        store = (workers[0].env["MASTER_ADDR"], int(workers[0].env["MASTER_PORT"]))
        return agents, workers, host, address, store

    def undisturbed(self, agents, workers):
        for worker in workers:
            self.assertEqual(worker.ask("print here")["what"], "done")
        self.assertTrue(self.no_worker_waits())
        for worker in workers:
            worker.tell("exit 0")
        self.assertEqual([agent.wait() for agent in agents], [0, 0])
        self.assertTrue(self.no_worker_waits())

    def status(self, address):
        done = subprocess.run(
            [MUSTER, "status", f"{address[0]}:{address[1]}", "--json"], capture_output=True, text=True, timeout=DEADLINE
        )
        return json.loads(done.stdout)


class Strangers(Visited):
    def test_on_the_control_port(self):
        agents, workers, host, control, _ = self.job()
        before = memory(host.pid, "VmRSS")
        links = {
            self.connect(control, at_once): (name, slowly)
            for name, (at_once, slowly) in ON_THE_CONTROL_PORT.items()
            for _ in range(20)
        }
        self.assertEqual(self.status(control)["phase"], "running")  # others are served meanwhile
        self.wait_for_ends(links)
        self.assertLess(memory(host.pid, "VmHWM") - before, self.SOME_MEMORY)
        self.assertEqual(self.status(control)["restart_count"], 0)
        self.undisturbed(agents, workers)

    def test_on_the_store_port(self):
        agents, workers, host, _, store = self.job()
        before = memory(host.pid, "VmRSS")
        held = [self.connect(store, sends) for sends in HELD_BY_THE_STORE.values() for _ in range(40)]
        closed = {
            self.connect(store, sends): (name, b"x" * 100)
            for name, sends in CLOSED_BY_THE_STORE.items()
            for _ in range(40)
        }
        self.wait_for_ends(closed)
        with socket.create_connection(store, timeout=DEADLINE) as client:  # others are served meanwhile
            client.sendall(VALIDATE + b"\x01" + text(b"a") + text(b"b") + b"\x03" + text(b"a"))  # SET, GET
            self.assertEqual(client.recv(9, socket.MSG_WAITALL), text(b"b"))
        self.assertLess(memory(host.pid, "VmHWM") - before, self.SOME_MEMORY)
        self.undisturbed(agents, workers)
        self.wait_for_ends(dict.fromkeys(held, ("held by the store", b"")))

    def test_on_the_one_port_of_a_static_job(self):
        """Store and rendezvous share the port; bytes that look like HTTP/2 or TLS are relayed to the rendezvous."""
        port = str(self.free_port())
        agents = [
            self.start("--nnodes", "2", "--node-rank", str(rank), "--master-addr", "127.0.0.1", "--master-port", port)
            for rank in range(2)
        ]
        workers = self.workers(2)
        address = ("127.0.0.1", int(port))
        before = memory(agents[0].pid, "VmRSS")
        links = {
            self.connect(address, at_once): (name, slowly)
            for _ in range(20)
            for name, (at_once, slowly) in ON_THE_CONTROL_PORT.items()
            if at_once
        }
        links.update(
            {
                self.connect(address, sends): (name, b"x" * 100)
                for _ in range(20)
                for name, sends in CLOSED_BY_THE_STORE.items()
            }
        )
        for sends in HELD_BY_THE_STORE.values():
            self.connect(address, sends)
        self.assertEqual(self.status(address)["phase"], "running")
        self.wait_for_ends(links)
        self.assertLess(memory(agents[0].pid, "VmHWM") - before, self.SOME_MEMORY)
        self.assertEqual(self.status(address)["restart_count"], 0)
        self.undisturbed(agents, workers)


class Crowds(Visited):
    """More connections than the agents have descriptors."""

    def crowd(self, address, count):
        return [self.connect(address, b"") for _ in range(count)]

    def few_descriptors(self):
        return dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))

    def test_a_crowd_on_the_control_port_takes_every_descriptor(self):
        agents, workers, host, control, _ = self.job("--max-restarts", "1", **self.few_descriptors())
        crowd = self.crowd(control, 40)
        self.wait_for_output(host, "no file descriptor is left")
        workers[0].tell("exit 1")  # a restart needs descriptors, too
        again = self.workers(2)
        self.assertEqual({worker.restarts for worker in again}, {1})
        self.wait_for_ends(dict.fromkeys(crowd, ("one of the crowd", b"")))
        self.assertEqual(self.status(control)["phase"], "running")
        self.undisturbed(agents, again)

    LIMIT = dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)))

    def crowd_takes_all_of_the_store(self, host, address, greeting):
        for _ in range(300):
            self.connect(address, greeting)
        self.wait_for_output(host, "no file descriptor is left for a new connection to the store")

    def node_joins_despite(self, greeting):
        """Store and rendezvous share the port of a static job, whose node 0 waits for node 1."""
        port = str(self.free_port())
        node = ("--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", port, "--node-rank")
        host = self.start(*node, "0", **self.LIMIT)
        subprocess.run([MUSTER, "wait", f"127.0.0.1:{port}"], check=True, capture_output=True, timeout=DEADLINE)
        self.crowd_takes_all_of_the_store(host, ("127.0.0.1", int(port)), greeting)
        guest = self.start(*node, "1")
        self.undisturbed([host, guest], self.workers(2))

    def test_a_node_joins_despite_a_crowd_of_the_stores_clients(self):
        self.node_joins_despite(VALIDATE)

    def test_a_node_joins_despite_a_crowd_that_says_nothing(self):
        self.node_joins_despite(b"")

    def test_a_node_joins_a_running_job_despite_a_crowd_on_the_stores_own_port(self):
        endpoint = self.endpoint()
        host = self.node(endpoint, "1:2", "--rdzv-conf", "last_call_timeout=1,is_host=1", **self.LIMIT)
        (worker,) = self.workers(1)
        self.crowd_takes_all_of_the_store(host, (worker.env["MASTER_ADDR"], int(worker.env["MASTER_PORT"])), VALIDATE)
        guest = self.node(endpoint, "1:2", "--rdzv-conf", "last_call_timeout=1,is_host=0")
        self.undisturbed([host, guest], self.workers(2))

    def test_a_crowd_on_the_store_port_takes_every_descriptor(self):
        agents, workers, _host, control, store = self.job("--max-restarts", "1", **self.few_descriptors())
        self.crowd(store, 200)
        for worker in workers:
            self.assertEqual(worker.ask("print here")["what"], "done")
        workers[0].tell("exit 1")  # the next round has a new store: the crowd is gone
        again = self.workers(2)
        self.assertEqual({worker.restarts for worker in again}, {1})
        self.assertEqual(self.status(control)["phase"], "running")
        self.undisturbed(agents, again)


if __name__ == "__main__":
    main()
