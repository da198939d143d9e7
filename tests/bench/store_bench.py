#!/usr/bin/env python3
"""The store beside PyTorch's own libuv server and beside a bare epoll echo server: store_bench.py BIN_DIR [options]

For each row the same load runs against each server in turn, so that all see the same machine. Ratios are to the others:
cpu/echo is this store's server CPU per operation over the floor's, cpu/libuv over PyTorch's. Without a torch that has the
libuv server (build-support/setup-newest-torch) its columns stay empty. Nothing is asserted.
"""
import argparse
import os
import subprocess
import sys

LIBUV = """
import sys
from torch.distributed import TCPStore
store = TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False, use_libuv=True)
print(f"listening on 127.0.0.1:{store.port}", flush=True)
sys.stdin.read()
"""


class Server:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split("listening on ")[1].strip()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def rows(bench, server, mode, *options):
    command = [bench, mode, "--address", server.address, "--pid", str(server.process.pid), *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if result.returncode != 0:
        print(result.stderr, file=sys.stderr)
    for line in result.stdout.splitlines():
        yield dict(part.split("=") for part in line.split() if "=" in part), line


def main():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir")
    parser.add_argument("--ops", default="set,get,add,wait,compare_set,multi_get,mix")
    parser.add_argument("--clients", default="1,4,16,64")
    parser.add_argument("--values", default="64")
    parser.add_argument("--seconds", default="1")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--crowd", action="store_true", help="10,000 connections and gloo's bring-up instead")
    parser.add_argument("--python", default=os.path.join(cache, "muster/torch-newest/bin/python"))
    args = parser.parse_args()
    bench = os.path.join(args.bin_dir, "store_bench")
    servers = {"muster": Server([os.path.join(args.bin_dir, "store_main")])}
    if os.path.exists(args.python):
        servers["libuv"] = Server([args.python, "-c", LIBUV])
    if args.crowd:
        for name, server in servers.items():
            for mode in ("crowd", "gloo"):
                for _, line in rows(bench, server, mode):
                    print(f"{name:7} {line}", flush=True)
    else:
        servers["echo"] = Server([bench, "echo"])
        print(f"{'op':12} {'value':>8} {'clients':>7} | {'ops/s':>8} {'p99 us':>8} {'cpu us':>7} | cpu/echo cpu/libuv p99/libuv ops/libuv")
        for value in args.values.split(","):
            for op in args.ops.split(","):
                for clients in args.clients.split(","):
                    best = {}
                    for _ in range(args.rounds):
                        for name, server in servers.items():
                            options = ["--ops", op, "--clients", clients, "--value", value, "--seconds", args.seconds]
                            for row, _ in rows(bench, server, "ops", *options, *(["--floor"] if name == "echo" else [])):
                                if name not in best or float(row["cpu_us"]) < float(best[name]["cpu_us"]):
                                    best[name] = row
                    ours = best["muster"]

                    def ratio(name, what):
                        return f"{float(ours[what]) / float(best[name][what]):9.2f}" if name in best else " " * 9
                    print(f"{op:12} {value:>8} {clients:>7} | {ours['ops_s']:>8} {ours['p99_us']:>8} {ours['cpu_us']:>7} |"
                          f"{ratio('echo', 'cpu_us')}{ratio('libuv', 'cpu_us')} {ratio('libuv', 'p99_us')}"
                          f" {ratio('libuv', 'ops_s')}", flush=True)
    for server in servers.values():
        server.close()


if __name__ == "__main__":
    main()
