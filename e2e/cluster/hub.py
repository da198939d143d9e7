# SPDX-License-Identifier: Apache-2.0
"""A fake Hugging Face hub, that of the initializers' tests, in a cluster's network namespace, where pods reach it.

    hub = Hub(cluster, "org/name", folder, hold_from=8 << 20)
    hub.ranges()
    hub.release()
    hub.stop()

Ready when it is constructed. A cluster has one at a time. As a program, hub.py ADDRESS PORT NAME FOLDER HOLD_FROM
serves the files of a folder until it is killed, and prints a JSON line for each range of bytes that a client asks for.
"""

import json
import os
import signal
import sys
import threading

from cluster import HERE
from network import ADDRESS

NAME = "hub"
PORT = 9001


class Hub:
    """Serves the files of `folder` as the model `name`. Requests for bytes from `hold_from` on wait for release()."""

    def __init__(self, cluster, name, folder, hold_from):
        self.cluster = cluster
        self.url = f"http://{ADDRESS}:{PORT}"
        cluster.start_program(
            NAME, [sys.executable, os.path.abspath(__file__), ADDRESS, str(PORT), name, folder, str(hold_from)]
        )
        cluster.processes.await_url(NAME, f"{self.url}/api/models/{name}/revision/main")

    def ranges(self):
        """The ranges that clients have asked for until now, as [(first byte, last byte)]."""
        with open(self.cluster.processes.log(NAME)) as log:
            return [tuple(json.loads(line)["range"]) for line in log if line.startswith("{")]

    def release(self):
        self.cluster.processes.signal(NAME, signal.SIGUSR1)

    def stop(self):
        self.cluster.processes.stop(NAME, seconds=2)


def main():
    sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "initializers"))
    from hub_server import HubServer

    address, port, name, folder, hold_from = sys.argv[1:]
    released = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: released.set())
    files = {}
    for each in os.listdir(folder):
        with open(os.path.join(folder, each), "rb") as file:
            files[each] = file.read()
    hub = HubServer(address, int(port))
    hub.add(name, files)

    def hold(request):
        """False: the hub goes on with the request."""
        first, last = request.headers.get("Range", "bytes=0-0").removeprefix("bytes=").split("-")
        print(json.dumps({"range": [int(first), int(last)]}), flush=True)
        if int(first) >= int(hold_from):
            released.wait()
        return False

    hub.faulty = lambda request: request.is_cdn
    hub.always(hold)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
