# SPDX-License-Identifier: Apache-2.0
"""Finds a TCP port on which no program listens."""

import random
import socket


def free_port(address=""):
    """A port that is free at `address` ("": at all addresses of this machine). OSError: there is none.

    The port is below the range from which the kernel serves requests for port 0, so no other program gets it before the
    test's server listens. It is also below the default ports of torchrun and Muster (29400 and above)."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        given_away = int(file.read().split()[0])
    highest = min(given_away, 29400)
    for _ in range(1000):
        port = random.randrange(10000, highest) if highest > 12000 else 0
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
                return probe.getsockname()[1]
            except OSError:
                continue
    raise OSError(f"there is no free port at {address or 'any address'}")
