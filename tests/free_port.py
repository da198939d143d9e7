"""A TCP port that nobody listens on."""
import random
import socket


def free_port(address=""):
    """Free at `address`, all of this machine's where it is "". It is below those that the kernel gives away itself: any
    program that asks for port 0 would take such a one before its server listens. None of torchrun's and Muster's defaults
    (29400 and those above it)."""
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
