# SPDX-License-Identifier: Apache-2.0
"""A test case with several nodes of one job, all on this machine."""

import socket
import threading
import time

from muster_case import DEADLINE, MusterCase


class Nodes(MusterCase):
    def endpoint(self):
        return f"127.0.0.1:{self.free_port()}"

    def node(self, endpoint, nnodes, *arguments, nproc=1, **more):
        return self.start(
            "--nnodes",
            nnodes,
            "--nproc-per-node",
            str(nproc),
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            endpoint,
            "--rdzv-id",
            "job",
            *arguments,
            **more,
        )

    def pair(self, *arguments, nnodes="2", nproc=1):
        endpoint = self.endpoint()
        first = self.node(endpoint, nnodes, *arguments, nproc=nproc)
        second = self.node(endpoint, nnodes, *arguments, nproc=nproc)
        return first, second

    def running(self, *arguments, conf=""):
        """A running elastic pair: (endpoint, the agent that owns it, the other agent, owner's worker, other's worker).
        Ranks do not tell the two apart, since ranks are not in the order of arrival."""
        endpoint = self.endpoint()
        host, guest = (
            self.node(endpoint, "1:2", "--rdzv-conf", f"last_call_timeout=600,is_host={owns}{conf}", *arguments)
            for owns in (1, 0)
        )
        worker_of = {worker.hello["ppid"]: worker for worker in self.workers(2)}
        return endpoint, host, guest, worker_of[host.pid], worker_of[guest.pid]

    def wait_for_port(self, endpoint):
        host, port = endpoint.rsplit(":", 1)
        end = time.monotonic() + DEADLINE
        ticker = threading.Event()
        while time.monotonic() < end:
            try:
                socket.create_connection((host, int(port)), DEADLINE).close()
                return
            except ConnectionRefusedError:
                ticker.wait(0.01)
        self.fail(f"nobody listens on {endpoint}")

    def agent_of(self, worker):
        """The agent that runs this worker, found by its parent process."""
        return next(agent for agent in self.agents if agent.pid == worker.hello["ppid"])
