#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the store with PyTorch's libuv server and with a bare epoll echo server: store_bench.py BIN_DIR [options]

For each row the same load runs against each server in turn, `--rounds` times, so that all see the same machine. A
figure is the median; a ratio is the median of the rounds' ratios. cpu/echo is this store's CPU time per operation over
the echo server's, cpu/libuv over PyTorch's. On a busy machine run it as `nice -n -20`. Without a torch that has the
libuv server (build-support/setup-newest-torch) its columns stay empty. Nothing is asserted.
"""

import argparse
import os
import statistics
import subprocess
import sys

LIBUV = """
import resource, sys
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
from torch.distributed import TCPStore
store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False, use_libuv=True)
print(f"listening on 127.0.0.1:{store.port}", flush=True)
sys.stdin.read()
"""


# libuv's server looks up the name of each peer. Usually the hosts file answers at once. SOURCE is not in it, and the
# dead name server never answers. Both files are mounted for the servers only, which needs root.
HOSTS = {"/etc/hosts": "127.0.0.1 localhost\n::ffff:127.0.0.1 localhost\n"}
SOURCE, DEAD_NAME_SERVER = "127.1.2.3", {"/etc/resolv.conf": "nameserver 192.0.2.1\n"}


class Server:
    def __init__(self, command, files):
        script = "".join(
            f"printf '{text}' > /mnt/{i} && mount --bind /mnt/{i} {path} && "
            for i, (path, text) in enumerate(files.items())
        )
        if os.geteuid() == 0:
            command = [
                "unshare",
                "--mount",
                "sh",
                "-c",
                f'mount -t tmpfs none /mnt && {script} exec "$@"',
                "sh",
                *command,
            ]
        command = ["setpriv", "--pdeathsig", "KILL", *command]  # an interrupted bench leaves nothing running
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split("listening on ")[1].strip()

    def close(self):
        self.process.terminate()
        self.process.wait()


def rows(bench, server, mode, *options, timeout=600):
    command = [bench, mode, "--address", server.address, "--pid", str(server.process.pid), *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    if result.returncode != 0:
        print(result.stderr, file=sys.stderr)
    for line in result.stdout.splitlines():
        yield dict(part.split("=") for part in line.split() if "=" in part), line


def compare(bench, servers, options, rounds):
    seen = {name: [] for name in servers}
    for _ in range(rounds):
        for name, server in servers.items():
            for row, _ in rows(bench, server, "ops", *options, *(["--floor"] if name == "echo" else [])):
                seen[name].append({key: float(row[key]) for key in ("ops_s", "p99_us", "cpu_us")})

    def median(what):
        return f"{statistics.median(row[what] for row in seen['muster']):.2f}"

    def ratio(name, what):
        if not seen.get(name):
            return " " * 9
        return f"{statistics.median(a[what] / b[what] for a, b in zip(seen['muster'], seen[name])):9.2f}"

    print(
        f"{options[1]:12} {options[5]:>8} {options[3]:>7} | {median('ops_s')[:-3]:>8} {median('p99_us')[:-3]:>8}"
        f" {median('cpu_us'):>7} |{ratio('echo', 'cpu_us')}{ratio('libuv', 'cpu_us')} {ratio('libuv', 'p99_us')}"
        f"{ratio('echo', 'p99_us')} {ratio('libuv', 'ops_s')}{ratio('echo', 'ops_s')}",
        flush=True,
    )


def dead_name_server(bench, commands):
    """Connections from an address without a name, while the name server does not answer."""
    for name, command in commands.items():
        server = Server(command, DEAD_NAME_SERVER)
        try:
            for _, line in rows(bench, server, "crowd", "--source", SOURCE, "--connect-only", timeout=30):
                print(f"{name:7} dead name server: {line}", flush=True)
        except subprocess.TimeoutExpired:
            print(f"{name:7} dead name server: not done after 30 s", flush=True)
        server.process.kill()
        server.process.wait()


def main():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--ops", default="set,get,add,wait,compare_set,multi_get,mix")
    parser.add_argument("--clients", default="1,4,16,64")
    parser.add_argument("--values", default="64")
    parser.add_argument("--seconds", default="1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", action="store_true", help="each client is a thread of its own")
    parser.add_argument("--crowd", action="store_true", help="10,000 connections and gloo's bring-up instead")
    parser.add_argument("--python", default=os.path.join(cache, "muster/torch-newest/bin/python"))
    args = parser.parse_args()
    bench = os.path.join(args.bin_dir, "store_bench")
    muster = os.path.join(args.bin_dir, "muster")  # the released binary; store_main if it is not built
    commands = {
        "muster": [muster, "store", "--host", "127.0.0.1", "--port", "0"]
        if os.path.exists(muster)
        else [os.path.join(args.bin_dir, "store_main")]
    }
    if os.path.exists(args.python):
        commands["libuv"] = [args.python, "-c", LIBUV]
    servers = {name: Server(command, HOSTS) for name, command in commands.items()}
    if args.crowd:
        for _ in range(args.rounds):
            for mode in ("crowd", "gloo"):
                for name, server in servers.items():
                    for _, line in rows(bench, server, mode):
                        print(f"{name:7} {line}", flush=True)
        if os.geteuid() == 0:
            dead_name_server(bench, commands)
    else:
        servers["echo"] = Server([bench, "echo"], HOSTS)
        print(
            f"{'op':12} {'value':>8} {'clients':>7} | {'ops/s':>8} {'p99 us':>8} {'cpu us':>7} |"
            " cpu/echo cpu/libuv p99/libuv p99/echo ops/libuv ops/echo"
        )
        for value in args.values.split(","):
            for op in args.ops.split(","):
                for clients in args.clients.split(","):
                    options = [
                        "--ops",
                        op,
                        "--clients",
                        clients,
                        "--value",
                        value,
                        "--seconds",
                        args.seconds,
                        *(["--threads"] if args.threads else []),
                    ]
                    compare(bench, servers, options, args.rounds)
    for server in servers.values():
        server.close()


if __name__ == "__main__":
    main()
