#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch clients against a store server: torch_client.py [--server PATH | --address HOST:PORT] [PYTHON ...]

Each PYTHON is an interpreter that can import torch. All of them use the same server at the same time. Default: Debian's
python3, and the newest torch if build-support/setup-newest-torch has been run. Exits 77 if none of them has torch
(ctest: skipped).
"""

import argparse
import datetime
import os
import subprocess
import sys
import threading

SKIP = 77
PREFIX_TIMEOUT = datetime.timedelta(
    seconds=240
)  # several processes import torch, one after the other on a busy machine


def store_of_another(host, port):
    from torch.distributed import TCPStore

    return TCPStore(host, port, None, False, timeout=PREFIX_TIMEOUT)


def barrier(one, other, key):
    """No client passes before the last one arrives. A client whose barrier times out can go on using its connection."""
    try:
        one.barrier(key + "-alone", 2, datetime.timedelta(milliseconds=50))
        raise AssertionError("a barrier of two let one pass")
    except RuntimeError:
        pass
    passed = []
    waiting = threading.Thread(target=lambda: passed.append(one.barrier(key, 2, PREFIX_TIMEOUT)))
    waiting.start()
    while not other.check([key]):  # wait() would not end: an arrival wakes no wait for the key, nor in PyTorch's store
        assert waiting.is_alive(), "who came first did not stay in the barrier"
    assert not passed, "a barrier of two let one pass"
    other.barrier(key, 2, PREFIX_TIMEOUT)
    waiting.join()
    assert passed == [None], "who waited in the barrier did not pass"


def store_operations(host, port, tag):
    import torch
    from torch.distributed import PrefixStore, TCPStore

    tcp = TCPStore(host, port, None, False, timeout=PREFIX_TIMEOUT)
    store = PrefixStore(tag, tcp)
    store.set("a", "one")
    assert store.get("a") == b"one"
    assert store.add("n", 5) == 5 and store.add("n", -2) == 3
    assert store.get("n") == b"3"
    assert store.compare_set("a", "one", "two") == b"two"
    assert store.compare_set("a", "one", "three") == b"two"
    assert store.compare_set("new", "", "made") == b"made"
    store.wait(["a", "n", "new"], datetime.timedelta(seconds=10))
    if hasattr(store, "check"):
        assert store.check(["a", "n"]) and not store.check(["a", "missing"])
    # Some versions of PyTorch refuse delete_key on a PrefixStore, but never on the bare store.
    other = store_of_another(host, port)
    other.set(tag + "bare", "x")
    assert other.delete_key(tag + "bare") is True
    assert other.delete_key(tag + "bare") is False
    assert other.num_keys() >= 3
    other.set(tag + "large", "x" * (1 << 20))
    assert other.get(tag + "large") == b"x" * (1 << 20)
    newer = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 1)
    if newer:
        store.append("a", "!")
        assert store.get("a") == b"two!"
        store.multi_set(["x", "y"], ["1", "2"])
        assert store.multi_get(["y", "x"]) == [b"2", b"1"]
        try:
            store.wait(["never"], datetime.timedelta(milliseconds=50))
            raise AssertionError("a wait for nothing ended")
        except RuntimeError:
            pass
        assert store.get("x") == b"1"  # requests and answers still match
    if hasattr(other, "queue_push"):
        other.queue_push(tag + "q", "v")
        assert other.queue_len(tag + "q") == 1
        assert other.queue_pop(tag + "q") == b"v"
    if hasattr(other, "list_keys"):
        assert tag + "large" in other.list_keys()
    if hasattr(other, "barrier"):
        barrier(other, store_of_another(host, port), tag + "barrier")


def worker(host, port, tag, rank, world):
    import torch
    import torch.distributed as dist

    tcp = dist.TCPStore(host, port, None, False, timeout=PREFIX_TIMEOUT)
    store = dist.PrefixStore(tag, tcp)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=PREFIX_TIMEOUT)
    numbers = torch.full((1000,), float(rank + 1))
    dist.all_reduce(numbers)
    assert numbers.eq(world * (world + 1) / 2).all()
    dist.barrier()
    pair = dist.new_group([0, world - 1])
    if rank in (0, world - 1):
        one = torch.ones(1)
        dist.all_reduce(one, group=pair)
        assert one.item() == 2
    dist.barrier()
    dist.destroy_process_group()


def has_torch(python):
    code = "import torch, torch.distributed as dist; dist.TCPStore; print(torch.__version__)"
    probe = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return probe.stdout.strip() if probe.returncode == 0 else None


def run_all(host, port, pythons, world):
    children = []
    for number, (python, version) in enumerate(pythons):
        tag = f"{version}-{number}"
        base = [python, os.path.abspath(__file__), "--address", f"{host}:{port}", "--tag", tag]
        children.append((f"{version} store", subprocess.Popen([*base, "--role", "store"])))
        for rank in range(world):
            children.append(
                (
                    f"{version} rank {rank}",
                    subprocess.Popen([*base, "--role", "worker", "--rank", str(rank), "--world", str(world)]),
                )
            )
    failed = []
    for name, child in children:
        try:
            code = child.wait(timeout=400)
        except subprocess.TimeoutExpired:
            child.kill()
            code = "no end after 400 s"
        if code != 0:
            failed.append(f"{name}: {code}")
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", help="a program that prints 'listening on H:P' and ends with its standard input")
    parser.add_argument("--address", help="HOST:PORT of a server that runs already")
    parser.add_argument("--world", type=int, default=4)
    parser.add_argument("--role", choices=["store", "worker"])
    parser.add_argument("--tag", default="")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("pythons", nargs="*")
    args = parser.parse_args()
    if args.role:
        host, port = args.address.rsplit(":", 1)
        if args.role == "store":
            store_operations(host, int(port), args.tag)
        else:
            worker(host, int(port), args.tag, args.rank, args.world)
        return 0

    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    newest = os.path.join(cache, "muster/torch-newest/bin/python")
    ready = os.path.exists(os.path.join(cache, "muster/torch-newest/muster-ready"))
    candidates = args.pythons or ["/usr/bin/python3"] + ([newest] if ready else [])
    pythons = [(python, version) for python in candidates if (version := has_torch(python))]
    if not args.pythons and not ready:
        print("SKIPPED: the newest torch is not set up (build-support/setup-newest-torch)")
    for python in candidates:
        if python not in [p for p, _ in pythons]:
            print(f"SKIPPED: {python} has no torch (Debian: apt-get install --no-install-recommends python3-torch)")
    if not pythons:
        return SKIP
    server = None
    if args.server:
        server = subprocess.Popen([args.server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = server.stdout.readline()
        args.address = line.split("listening on ")[1].strip()
    host, port = args.address.rsplit(":", 1)
    failed = run_all(host, int(port), pythons, args.world)
    if server:
        server.stdin.close()
        if server.wait(timeout=60) != 0:
            failed.append("the server ended badly")
    versions = ", ".join(version for _, version in pythons)
    print(f"torch {versions}: " + ("; ".join(failed) if failed else "all good"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
