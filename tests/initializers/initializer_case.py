# SPDX-License-Identifier: Apache-2.0
"""Shared by tests that run muster-initializer: a folder, the binary in a clean environment, its events."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))

import server_errors
from class_runner import SKIPPED, main  # noqa: F401  # main is for the tests

BINARY = os.environ.get("MUSTER_INITIALIZER", os.path.join(HERE, "..", "..", "build", "bin", "muster-initializer"))
DEADLINE = float(os.environ.get("MUSTER_TEST_DEADLINE", 240))
UNREACHABLE = 205
MIB = 1 << 20

# Prefixes of variables that could bring identities or endpoints of the machine that runs the tests.
FOREIGN = (
    "AWS_",
    "S3_",
    "STORAGE_",
    "HF_",
    "HUGGING",
    "GOOGLE_",
    "GCE_",
    "CLOUDSDK_",
    "MUSTER_",
    "ACCESS_",
    "MODEL_VERSION",
    "XDG_CACHE_HOME",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "SSL_CERT_",
    "CA_BUNDLE_",
)


def some_bytes(count, seed=1):
    return random.Random(seed).randbytes(count)


def clean_environment(**more):
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(FOREIGN) and not name.lower().endswith("_proxy")
    }
    return {**kept, **more}


def with_clock_offset(offset):
    """Environment of a process whose clock is shifted by `offset` seconds."""
    library = os.environ.get("MUSTER_OTHER_CLOCK", os.path.join(os.path.dirname(BINARY), "other_clock.so"))
    return {"LD_PRELOAD": library, "MUSTER_TEST_CLOCK_OFFSET": str(offset), "ASAN_OPTIONS": "verify_asan_link_order=0"}


def preloaded(library, **variables):
    """Environment of a process in which system calls fail, as `library`.so defines."""
    path = os.environ.get(f"MUSTER_{library.upper()}", os.path.join(os.path.dirname(BINARY), f"{library}.so"))
    return {"LD_PRELOAD": path, "ASAN_OPTIONS": "verify_asan_link_order=0", **variables}


def needs(cache, reason, *modules):
    """If `modules` are missing, runs this test in the venv `cache`; without it ends with SKIPPED and `reason`."""
    import importlib.util

    if all(importlib.util.find_spec(module) for module in modules):
        return
    venv = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "muster", cache)
    if os.path.exists(f"{venv}/muster-ready") and not sys.prefix.startswith(venv):
        os.execv(f"{venv}/bin/python", [f"{venv}/bin/python", *sys.argv])
    print(f"SKIPPED: {reason}", file=sys.stderr)
    sys.exit(SKIPPED)


IN_A_POD = """set -e
mkdir "$1" && cd "$1" && mkdir usr etc dev proc workspace
for name in bin lib lib64 sbin; do ln -s "usr/$name" "$name"; done
for name in usr etc dev proc; do mount --rbind "/$name" "$name"; done
touch muster-initializer && mount --bind "$2" muster-initializer && mount --bind "$3" workspace
exec chroot . /muster-initializer "$4"
"""


class InitializerCase(unittest.TestCase):
    role = "dataset"
    flags = ()  # of every run
    prefix = ()  # of every run: a command that ends with exec of the words after it

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="muster-test-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.addCleanup(self.check_servers)  # runs after the servers are closed
        self.target = os.path.join(self.dir, "target")
        self.said = ""  # output of the last run
        self.all_said = ""
        self.more = {}  # variables added to every environment

    def check_servers(self):
        errors = server_errors.taken()
        self.assertEqual(errors, [], "a server of the test went wrong by itself:\n" + "\n".join(errors))

    def environment(self):
        return clean_environment(HOME=self.dir)

    def start(self, uri, *flags, env=None, **how):
        """`env`: variables instead of environment(). `how`: arguments of Popen."""
        words = [
            *self.prefix,
            BINARY,
            self.role,
            *([uri] if uri else []),
            "--to",
            self.target,
            "--json",
            *self.flags,
            *flags,
        ]
        env = self.environment() if env is None else clean_environment(**{"HOME": self.dir, **env})
        process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**env, **self.more}, **how
        )

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

        self.addCleanup(end)
        return process

    def in_a_pod(self, role, volume, env):
        """A run configured by `env` alone, in a root of its own where `volume` is /workspace, on our network."""
        root = os.path.join(self.dir, f"root-{role}")
        words = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            IN_A_POD,
            "sh",
            root,
            os.path.abspath(BINARY),
            volume,
            role,
        ]
        process = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": "/", **env},
        )
        self.addCleanup(process.kill)
        return process

    def fetch(self, uri, *flags, env=None):
        """(exit code, the last event)"""
        process = self.start(uri, *flags, env=env)
        out, err = process.communicate(timeout=DEADLINE)
        self.said = out + err
        self.all_said += self.said
        events = [json.loads(line) for line in out.splitlines()]
        return process.returncode, events[-1] if events else {}

    def target_files(self):
        """Path below the target -> content, without Muster's own files."""
        found = {}
        for folder, _, names in os.walk(self.target):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), self.target)
                if not path.startswith(".muster/"):
                    with open(os.path.join(folder, name), "rb") as file:
                        found[path] = file.read()
        return found

    def manifest(self):
        with open(os.path.join(self.target, ".muster", "manifest.json")) as file:
            return json.load(file)

    def check_right(self, expected):
        """`expected`: path below the target -> content. Fails if there is any other or unfinished file."""
        there = self.target_files()
        self.assertEqual(sorted(there), sorted(expected))
        for path, data in expected.items():
            self.assertTrue(there[path] == data, f"{path} differs")
        self.assertEqual(os.listdir(os.path.join(self.target, ".muster")), ["manifest.json"])

    def check_nothing(self):
        """Nothing is published."""
        self.assertEqual(self.target_files(), {})
        self.assertFalse(os.path.exists(os.path.join(self.target, ".muster", "manifest.json")))

    def succeeds(self, uri, expected, *flags, env=None):
        code, end = self.fetch(uri, *flags, env=env)
        self.assertEqual((code, end.get("event")), (0, "done"), self.said)
        self.check_right(expected)
        return end

    def refused(self, uri, code, words, *flags, env=None):
        ended, end = self.fetch(uri, *flags, env=env)
        self.assertEqual((ended, end.get("event")), (code, "failed"), self.said)
        self.assertRegex(end["reason"], words)
        self.check_nothing()

    def dies_at_rename(self, number, uri, *flags):
        """Kills the run when it begins rename number `number`. There is one for each staged file, one for next.json,
        one for each published file, one for the manifest. False: the run ended before."""
        self.more = preloaded("dies_at_rename", MUSTER_TEST_DIE_AT_RENAME=str(number))
        process = self.start(uri, *flags)
        out, err = process.communicate(timeout=DEADLINE)
        self.more = {}
        self.assertIn(process.returncode, (0, -signal.SIGKILL), out + err)
        return process.returncode != 0

    def stopped(self, uri, *flags, **at):
        """A process that stops itself at the call given by `at` (dies_at_rename.cc); SIGCONT continues it."""
        self.more = preloaded("dies_at_rename", **at)
        process = self.start(uri, *flags)
        self.more = {}
        self.assertTrue(os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1]))
        return process

    def staged(self):
        """Paths of the whole files in the staging folder."""
        folder = os.path.join(self.target, ".muster", "staging")
        return [os.path.join(folder, name) for name in os.listdir(folder) if "." not in name]

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        self.assertEqual(process.wait(DEADLINE), -signal.SIGKILL)
