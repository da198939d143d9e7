# SPDX-License-Identifier: Apache-2.0
"""Starts the programs of one cluster, each with a log and a record of its process, and ends them by these records.

The kernel ends them together with the program that started them, so a killed test leaves none of them running. Not
thread-safe.
"""

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time

WAIT = 180  # s; for events that usually take a second or a few
AWAIT_URL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "await_url.py")


class Broken(Exception):
    """A program did not start or did not work. The text says which one, and where its log is."""


def start_time(pid):
    """The start time in clock ticks since boot: with the pid it identifies a process for good. None: no process."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return None


def end_process(pid, began, seconds):
    """Sends SIGTERM, and SIGKILL after `seconds`, to exactly that process. Does nothing if it is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        if start_time(pid) == began:
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
            if not selector.select(seconds):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                selector.select(seconds)
    os.close(descriptor)


class Processes:
    """`folder` gets logs/NAME.log and processes/NAME. `prefix`: the words before each command line, which enter a
    namespace."""

    patience = WAIT  # s, until a program must be ready; 0: it is not awaited

    def __init__(self, folder, prefix=()):
        self.logs = os.path.join(folder, "logs")
        self.records = os.path.join(folder, "processes")
        self.prefix = prefix
        self.children = {}
        os.makedirs(self.logs, exist_ok=True)
        os.makedirs(self.records, exist_ok=True)

    def inside(self, command):
        """The command line that runs `command` where all programs run."""
        return [*self.prefix, *command]

    def log(self, name):
        return os.path.join(self.logs, f"{name}.log")

    def start(self, name, command, environment=None, inside=None):
        """Kills a program of this name that still runs. `inside`: the words before `command`, instead of the prefix."""
        if self.alive(name):
            self.kill(name)
        with open(self.log(name), "ab") as log:
            child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *(self.prefix if inside is None else inside), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
        self.children[name] = child
        with open(os.path.join(self.records, name), "w") as file:
            json.dump({"pid": child.pid, "began": start_time(child.pid)}, file)
        return child

    def alive(self, name):
        return name in self.children and self.children[name].poll() is None

    def stop(self, *names, seconds=10):
        for name in names:
            path = os.path.join(self.records, name)
            try:
                with open(path) as file:
                    record = json.load(file)
            except (FileNotFoundError, ValueError):
                continue
            end_process(record["pid"], record["began"], seconds)
            if name in self.children:
                child = self.children.pop(name)
                child.kill()  # a signal may have come before its record was written
                child.wait()
            os.unlink(path)

    def kill(self, name):
        """Sends SIGKILL at once."""
        self.children[name].kill()
        self.children[name].wait()

    def signal(self, name, number):
        self.children[name].send_signal(number)

    def stop_all(self):
        """Stops all programs of this run, or of an earlier run with the same folder."""
        self.stop(*sorted(os.listdir(self.records)))

    def await_url(self, name, url, *keys, seconds=None, inside=None):
        """While program `name` lives, waits until a GET is answered with 200. `keys`: CA, certificate and key.
        `seconds`: instead of `patience`. `inside`: as of start()."""
        limit = self.patience if seconds is None else seconds
        if not limit:
            return
        command = [*(self.prefix if inside is None else inside), sys.executable, AWAIT_URL, url, *keys]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL) as probe:
            try:
                self._first_to_end(name, probe, limit, f"{url} was not answered with 200")
            finally:
                probe.kill()

    def _first_to_end(self, name, probe, seconds, otherwise):
        descriptors = {process: os.pidfd_open(process.pid) for process in (probe, self.children[name])}
        with selectors.DefaultSelector() as selector:
            for descriptor in descriptors.values():
                selector.register(descriptor, selectors.EVENT_READ)
            selector.select(seconds)
        for descriptor in descriptors.values():
            os.close(descriptor)
        if not self.alive(name):
            raise Broken(f"{name} ended; its log {self.log(name)} ends with:\n{self.tail(name)}")
        if probe.poll() != 0:
            raise Broken(f"{name} was not ready within {seconds} s: {otherwise}; its log is {self.log(name)}")

    def await_socket(self, name, path, seconds=WAIT):
        """Waits until program `name` listens on the Unix socket."""
        until = time.monotonic() + seconds
        while True:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    return probe.connect(path)
                except OSError:
                    pass
            if not self.alive(name):
                raise Broken(f"{name} ended; its log {self.log(name)} ends with:\n{self.tail(name)}")
            if time.monotonic() > until:
                raise Broken(f"{name} did not listen on {path} within {seconds} s; its log is {self.log(name)}")
            time.sleep(0.05)

    def tail(self, name, lines=15):
        with open(self.log(name), errors="replace") as file:
            return "".join(file.readlines()[-lines:])
