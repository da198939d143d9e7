#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares muster-initializer with the best clients, in turns, against the same nginx. Prints a markdown table.

    tests/bench/initializer_peers.py [--repeat N] [--only REGEX] [--who NAME,..] [--disk DIR] [--small FILES] [--gib N]

nginx serves a folder as a path-style S3 bucket over http and https. Muster verifies every byte (by the CRC-32C of each
object, from HEAD or the answer; by SHA-256 for a hub's files). The peers run with their defaults, which verify nothing.
Figures are medians (lowest-highest). Needs nginx, the peers (build-support/setup-venv initializer-peers; for hf_xet
also setup-venv hub-xet and setup-xet-server), and eight times the object's size in /dev/shm.
"""

import argparse
import base64
import json
import os
import pwd
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from hub_peers import BINARY, COMMIT, PEERS, Hub, free_port
from peer_programs import CRT, NGINX, OBSTORE, OPENDAL

PYTHON = os.path.join(PEERS, "python")
MIB = 1 << 20
LONGEST = 120  # seconds of one client's run


class Bench:
    def __init__(self, options):
        self.options = options
        self.dir = tempfile.mkdtemp(prefix="muster-bench-", dir="/dev/shm")
        self.data = os.path.join(self.dir, "data")
        self.target = os.path.join(self.dir, "target")
        os.makedirs(os.path.join(self.data, "pages"))
        os.makedirs(os.path.join(self.dir, "tmp"))
        self.crcs = {}
        self.hub = Hub(self.dir, self.data, self.url)

    def close(self):
        if hasattr(self, "nginx"):
            self.nginx.terminate()  # its worker processes end with it
            self.nginx.wait()
        self.hub.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def lay(self, key, size, hashed=True):
        path = os.path.join(self.data, "bench", key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            # No two equal blocks: hf_xet would fetch them once.
            file.writelines(os.urandom(min(16 * MIB, size - at)) for at in range(0, size, 16 * MIB))
        if hashed:
            self.crcs[key] = path

    def list(self, folder, keys):
        pages = [keys[at : at + 1000] for at in range(0, len(keys), 1000)]
        for number, page in enumerate(pages):
            more = number + 1 < len(pages)
            name = f"{folder}-{'0' if number == 0 else f'p{number}'}.xml"
            with open(os.path.join(self.data, "pages", name), "w") as file:
                file.write(
                    '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                    f"<Name>bench</Name><Prefix>{folder}/</Prefix><KeyCount>{len(page)}</KeyCount><MaxKeys>1000</MaxKeys>"
                    f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
                )
                if more:
                    file.write(f"<NextContinuationToken>p{number + 1}</NextContinuationToken>")
                for key in page:
                    facts = os.stat(os.path.join(self.data, "bench", key))
                    file.write(
                        f"<Contents><Key>{key}</Key><LastModified>2026-11-22T00:00:00.000Z</LastModified>"
                        f'<ETag>"{int(facts.st_mtime):x}-{facts.st_size:x}"</ETag><Size>{facts.st_size}</Size>'
                        "<StorageClass>STANDARD</StorageClass></Contents>"
                    )
                file.write("</ListBucketResult>")

    def crc32c(self, path):
        """The CRC-32C of a file, as muster-initializer writes it into its manifest."""
        target = os.path.join(self.dir, "hashed")
        subprocess.run(
            [BINARY, "dataset", f"file://{path}", "--to", target, "--hard-link"], check=True, capture_output=True
        )
        with open(os.path.join(target, ".muster", "manifest.json")) as file:
            kind, value = json.load(file)["files"][0]["hash"].split(":")
        assert kind == "crc32c"
        shutil.rmtree(target)
        return base64.b64encode(bytes.fromhex(value)).decode()

    def prepare(self):
        size = int(self.options.gib * 1024) * MIB
        self.lay("one.bin", size)
        shards = [f"shards/{n}.bin" for n in range(4)]
        for key in shards:
            self.lay(key, size // 2)
        self.lay("kib.bin", 1024)
        small = [f"small/{n:05}.bin" for n in range(self.options.small)]
        for key in small:
            self.lay(key, 8192, False)
        self.list("shards", shards)
        self.list("small", small)
        self.hub_clients = ["muster_hub", "hf_transfer"]
        if any(self.wanted(title, "hf_xet") for title, _, _ in self.hub_rows()) and self.hub.fill_xet(
            ["one.bin", *shards]
        ):
            self.hub_clients.append("hf_xet")
        self.hub.lay_repository("one", ["one.bin"])
        self.hub.lay_repository("shards", shards)
        self.hub.lay_repository("small", small, large=False)
        self.start()

    def start(self):
        self.certify()
        self.http, self.https, self.counted = (free_port() for _ in range(3))
        crcs = "\n".join(f'    /bench/{key} "{self.crc32c(path)}";' for key, path in self.crcs.items())
        config = os.path.join(self.dir, "nginx.conf")
        with open(config, "w") as file:
            file.write(
                NGINX.format(
                    user=pwd.getpwuid(os.geteuid()).pw_name,
                    dir=self.dir,
                    data=self.data,
                    http=self.http,
                    https=self.https,
                    counted=self.counted,
                    crcs=crcs,
                    **self.hub.config(),
                )
            )
        self.nginx = subprocess.Popen(["nginx", "-e", f"{self.dir}/error.log", "-c", config])
        asked = subprocess.run(
            [
                "curl",
                "-sf",
                "--retry",
                "50",
                "--retry-connrefused",
                "--retry-delay",
                "1",
                "-o",
                "/dev/null",
                f"http://127.0.0.1:{self.http}/bench/kib.bin",
            ]
        )
        if asked.returncode != 0:
            sys.exit("nginx does not serve its files")

    def certify(self):
        """Makes an authority, and a certificate signed by it: rustls takes no authority's certificate from a server."""
        made = [
            "openssl",
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-x509",
            "-days",
            "2",
        ]
        authority = ["-keyout", f"{self.dir}/authority.key", "-out", f"{self.dir}/authority.crt"]
        subprocess.run([*made, "-subj", "/CN=bench authority", *authority], check=True, capture_output=True)
        subprocess.run(
            [
                *made,
                "-subj",
                "/CN=bench",
                "-addext",
                "subjectAltName=IP:127.0.0.1",
                "-addext",
                "basicConstraints=critical,CA:FALSE",
                "-CA",
                f"{self.dir}/authority.crt",
                "-CAkey",
                f"{self.dir}/authority.key",
                "-keyout",
                f"{self.dir}/private.key",
                "-out",
                f"{self.dir}/public.crt",
            ],
            check=True,
            capture_output=True,
        )

    def url(self, scheme):
        """The URL of http, https, or counted (by http, and nginx logs each request)."""
        return f"{'http' if scheme == 'counted' else scheme}://127.0.0.1:{getattr(self, scheme)}"

    # --- contenders: key or "folder/" -> argv and environment

    def muster(self, scheme, keys, target, *flags):
        return (
            [BINARY, "dataset", f"s3://bench/{keys}", "--to", target, *flags],
            {
                "AWS_ENDPOINT_URL": self.url(scheme),
                "AWS_ACCESS_KEY_ID": "K",
                "AWS_SECRET_ACCESS_KEY": "S",
                "AWS_REGION": "us-east-1",
                "AWS_CA_BUNDLE": f"{self.dir}/authority.crt",
            },
        )

    def rclone(self, scheme, keys, target):
        settings = "provider=Other,access_key_id=K,secret_access_key=S,region=us-east-1,list_version=2"
        remote = f":s3,{settings},endpoint='{self.url(scheme)}':bench/"
        many = ["--transfers", "64" if keys.startswith("small") else "4", "--checkers", "16"]
        return (
            [
                os.path.join(PEERS, "rclone"),
                "copy",
                remote + keys.rstrip("/"),
                target,
                "--config",
                "/dev/null",
                "--no-check-certificate",
                "--s3-no-check-bucket",
                *many,
            ],
            {},
        )

    def s5cmd(self, scheme, keys, target):
        return (
            [
                os.path.join(PEERS, "s5cmd"),
                "--endpoint-url",
                self.url(scheme),
                "--no-verify-ssl",
                "--log",
                "error",
                "cp",
                f"s3://bench/{keys}{'*' if keys.endswith('/') else ''}",
                target + "/",
            ],
            {"AWS_ACCESS_KEY_ID": "K", "AWS_SECRET_ACCESS_KEY": "S", "AWS_REGION": "us-east-1"},
        )

    def obstore(self, scheme, keys, target):
        return [PYTHON, "-c", OBSTORE, self.url(scheme), keys, target], {}

    def opendal(self, scheme, keys, target):
        return [PYTHON, "-c", OPENDAL, self.url(scheme), keys, target], {"SSL_CERT_FILE": f"{self.dir}/authority.crt"}

    def crt(self, scheme, keys, target):
        return [PYTHON, "-c", CRT, self.url(scheme), keys, target, f"{self.dir}/authority.crt"], {}

    def curl(self, scheme, keys, target):
        return ["curl", "-sfk", "-o", f"{target}/curl.bin", f"{self.url(scheme)}/bench/{keys}"], {}

    # --- one run

    def run(self, command, env, files, size, folder, synced=False, check=None):
        """Seconds, CPU seconds and MiB of the client, or why it failed. `check` returns what is wrong with the
        result."""
        environment = {"PATH": os.environ["PATH"], "HOME": self.dir, **env}
        # A direct child's highest memory would include the memory of this process, from before its exec.
        highest = os.path.join(self.dir, "rss.txt")
        command = ["/usr/bin/time", "-q", "-f", "%M", "-o", highest, *command]
        began = time.monotonic()
        pid = os.posix_spawnp(
            command[0],
            command,
            environment,
            file_actions=[
                (
                    os.POSIX_SPAWN_OPEN,
                    1,
                    os.path.join(self.dir, "out.txt"),
                    os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
                    0o644,
                ),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setpgroup=0,
        )
        limit = threading.Timer(LONGEST, os.killpg, (pid, signal.SIGKILL))
        limit.start()
        _, status, used = os.wait4(pid, 0)
        limit.cancel()
        if synced:
            subprocess.run(["sync", "-f", folder], check=True)
        seconds = time.monotonic() - began
        there = [
            os.path.join(root, name)
            for root, _, names in os.walk(folder)
            for name in names
            if not os.path.relpath(root, folder).startswith((".muster", ".cache"))
        ]
        if status != 0 or len(there) != files or sum(map(os.path.getsize, there)) != size:
            with open(os.path.join(self.dir, "out.txt")) as file:
                return f"failed ({len(there)} files; {file.read()[-300:]})"
        wrong = check() if check else ""
        if wrong:
            return f"failed ({wrong})"
        with open(highest) as file:
            return seconds, used.ru_utime + used.ru_stime, int(file.read()) / 1024

    def check(self, name, keys, folder, size):
        if name == "hf_xet":
            return self.hub.not_by_xet(size)
        if not name.startswith("muster") or keys.startswith("small"):
            return ""
        with open(os.path.join(folder, ".muster", "manifest.json")) as file:
            return "" if all(entry["verified"] for entry in json.load(file)["files"]) else "some files are not verified"

    @staticmethod
    def warm(size):
        """Takes free memory back from the host of a virtual machine, so that the client's time does not contain
        this."""
        touch = (
            f"import mmap; mmap.mmap(-1, {size + min(size, 1024 * MIB)}, flags=mmap.MAP_PRIVATE | "
            f"mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)"
        )
        subprocess.run([sys.executable, "-c", touch], check=True)

    def wanted(self, title, name):
        return (not self.options.only or re.search(self.options.only, title)) and (
            not self.options.who or name in self.options.who.split(",")
        )

    def hub_rows(self):
        for scheme in ("http", "https"):
            for keys, what in (("one.bin", f"one file of {self.options.gib:g} GiB"), ("shards/", "4 shards")):
                yield f"{what} from a hub, {scheme}, to memory", scheme, keys

    def row(self, title, scheme, keys, contenders, folder=None, synced=False):
        contenders = [name for name in contenders if self.wanted(title, name)]
        if not contenders:
            return
        folder = folder or self.target
        below = os.path.join(self.data, "bench", keys)
        paths = [os.path.join(below, name) for name in os.listdir(below)] if keys.endswith("/") else [below]
        size = sum(map(os.path.getsize, paths))
        runs = {name: [] for name in contenders}
        for number in range(-1, self.options.repeat):  # the first round only warms up
            first = number % len(contenders)
            for name in contenders[first:] + contenders[:first]:  # each round starts with another one
                shutil.rmtree(folder, ignore_errors=True)
                os.makedirs(folder)
                self.warm(size)
                command, env = getattr(self.hub if hasattr(self.hub, name) else self, name)(scheme, keys, folder)
                result = self.run(
                    command, env, len(paths), size, folder, synced, lambda: self.check(name, keys, folder, size)
                )
                if number >= 0:
                    runs[name].append(result)
        shutil.rmtree(folder, ignore_errors=True)
        best = ours = None
        for name, results in runs.items():
            good = [result for result in results if not isinstance(result, str)]
            if not good:
                print(f"| {title} | {name} | {results[0]} | | | |", flush=True)
                continue
            wall = statistics.median(result[0] for result in good)
            rate = (
                f"{size / wall / 1e6:,.0f} MB/s"
                if size > 64 * MIB and len(paths) < 100
                else f"{len(paths) / wall:,.0f} files/s"
            )
            if name.startswith("muster"):
                ours = wall
            elif name != "curl":
                best = min(best, (wall, name)) if best else (wall, name)
            print(
                f"| {title} | {name} | {wall:.3f} s "
                f"({min(g[0] for g in good):.3f}-{max(g[0] for g in good):.3f}) | {rate} | "
                f"{statistics.median(g[1] for g in good):.2f} s | {max(g[2] for g in good):.0f} MiB |",
                flush=True,
            )
        if best and ours:
            print(f"| {title} | **muster over {best[1]}** | **{best[0] / ours:.2f}x** | | | |", flush=True)

    def again(self):
        """A second run after a complete one, and a run after a kill at half of the bytes."""
        if self.options.only and not re.search(self.options.only, "again"):
            return
        self.second("of a bucket", *self.muster("counted", "small/", self.target))
        self.second("of a hub's commit", *self.hub.muster_hub("counted", "small/", self.target, COMMIT))
        command, env = self.muster("http", "one.bin", self.target, "--json")
        size = os.path.getsize(os.path.join(self.data, "bench", "one.bin"))
        process = subprocess.Popen(command, env={"PATH": os.environ["PATH"], **env}, stdout=subprocess.DEVNULL)
        staging = os.path.join(self.target, ".muster", "staging")
        noted = 0
        while process.poll() is None and noted < size // 2:
            try:
                noted = sum(
                    sum(int(line.split()[1]) for line in open(os.path.join(staging, name)) if line.endswith("\n"))
                    for name in os.listdir(staging)
                    if name.endswith(".ranges")
                )
            except (OSError, IndexError, ValueError):
                pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = subprocess.run(
            command, env={"PATH": os.environ["PATH"], **env}, capture_output=True, text=True, check=True
        )
        end = json.loads(done.stdout.splitlines()[-1])
        print(
            f"| killed at {100 * noted / size:.0f} % of one object, started again | muster | {end['seconds']:.3f} s | "
            f"{100 * end['received'] / size:.1f} % moved again | | |",
            flush=True,
        )
        shutil.rmtree(self.target)

    def second(self, what, command, env):
        """Measures a second run. Its requests are counted in nginx's log."""
        shutil.rmtree(self.target, ignore_errors=True)
        title, who = f"second run {what}, {self.options.small} files", "muster"
        log = os.path.join(self.dir, "asked.log")
        runs = []
        for number in range(1 + self.options.repeat):
            asked_before = os.path.getsize(log)
            result = self.run(command, env, self.options.small, self.options.small * 8192, self.target)
            if isinstance(result, str):
                return print(f"| {title} | {who} | {result} | | | |", flush=True)
            with open(log) as file:
                file.seek(asked_before)
                asked = file.read().splitlines()
            objects = [line for line in asked if "/bench/small/" in line or "/resolve/" in line]
            if number == 0:
                assert len(objects) == self.options.small, "the first run reads all"
            else:
                runs.append((*result, len(asked), len(objects)))
        shutil.rmtree(self.target)
        wall = [run[0] for run in runs]
        requests, objects = max(run[3] for run in runs), max(run[4] for run in runs)
        print(
            f"| {title} | {who} | {statistics.median(wall):.3f} s ({min(wall):.3f}-{max(wall):.3f}) | "
            f"{requests} requests, {objects} of objects{'' if objects == 0 else ': WRONG'} | "
            f"{statistics.median(run[1] for run in runs):.2f} s | "
            f"{max(run[2] for run in runs):.0f} MiB |",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", help="rows by their titles, a pattern")
    parser.add_argument("--who", help="these clients alone, with commas between")
    parser.add_argument("--disk", default=os.path.expanduser("~"), help="a folder of a real disk")
    parser.add_argument("--small", type=int, default=20000)
    parser.add_argument("--gib", type=float, default=2)
    bench = Bench(parser.parse_args())
    try:
        bench.prepare()
        print("| what | who | wall | rate | CPU of the client | RSS |\n|---|---|---|---|---|---|")
        everyone = ["muster", "rclone", "s5cmd", "obstore", "opendal", "crt"]
        gib = f"{bench.options.gib:g}"
        for scheme in ("http", "https"):
            bench.row(f"one object of {gib} GiB, {scheme}, to memory", scheme, "one.bin", [*everyone, "curl"])
            bench.row(f"4 shards, {scheme}, to memory", scheme, "shards/", everyone)
        for title, scheme, keys in bench.hub_rows():
            bench.row(title, scheme, keys, bench.hub_clients)
        bench.row(
            f"{bench.options.small} x 8 KiB, http",
            "http",
            "small/",
            ["muster", "rclone", "s5cmd", "obstore", "opendal"],
        )
        bench.row("one file of 1 KiB", "http", "kib.bin", everyone)
        disk = tempfile.mkdtemp(prefix="muster-bench-", dir=bench.options.disk)
        try:
            bench.row(
                f"one object of {gib} GiB, http, to disk, synced",
                "http",
                "one.bin",
                everyone,
                os.path.join(disk, "t"),
                synced=True,
            )
        finally:
            shutil.rmtree(disk)
        bench.again()
    finally:
        bench.close()


if __name__ == "__main__":
    main()
