# SPDX-License-Identifier: Apache-2.0
"""Containers by runc, for tests: from scratch (a folder of their own), or from this machine's Debian."""

import json
import os
import shutil
import subprocess
import tempfile

from muster_case import DEADLINE, MUSTER

HERE = os.path.dirname(os.path.abspath(__file__))
MEMORY = 256 << 20


def why_not():
    """Why no container can be run here, or None."""
    if os.geteuid() != 0:
        return "SKIPPED: runc takes root"
    if shutil.which("runc") is None:
        return "SKIPPED: runc is not installed"
    with tempfile.TemporaryDirectory(prefix="muster-test-") as folder:
        box = Container(folder, image="scratch", command=["/muster", "version"])
        done = box.run()
        return None if done.returncode == 0 else f"SKIPPED: runc cannot run a container here: {done.stderr.strip()}"


def debian_root(name, suite, *packages):
    """The folder of a root with only these Debian packages, and None or the reason why there is none."""
    setup = os.path.join(HERE, "..", "..", "build-support", "setup-root")
    done = subprocess.run([setup, name, suite, *packages], capture_output=True, text=True)
    return done.stdout.strip(), f"SKIPPED: {done.stderr.strip()}" if done.returncode else None


def bind(source, target, writable=False):
    return {"destination": target, "type": "bind", "source": source, "options": ["bind", "rw" if writable else "ro"]}


class Container:
    """`tmp`: /tmp can be written. `image`: scratch (nothing but /muster), debian (this machine's /usr, read-only), or a
    folder whose copy is the root. The root is read-only."""

    count = 0

    def __init__(self, folder, image, command, user=1000, env=(), mounts=(), memory=MEMORY, tmp=True, cpus=None):
        Container.count += 1
        self.name = f"muster-test-{os.getpid()}-{Container.count}"
        self.bundle = tempfile.mkdtemp(prefix="bundle-", dir=folder)
        self.state = os.path.join(folder, "runc")
        root = os.path.join(self.bundle, "rootfs")
        os.mkdir(root)
        if image == "scratch":
            mounts = [*mounts, bind(MUSTER, "/muster")]
        elif image != "debian":
            subprocess.run(["cp", "-a", f"{image}/.", root], check=True)
        else:
            mounts = [*mounts, bind("/usr", "/usr"), bind("/etc", "/etc")]
            for name in ("bin", "lib", "lib64", "sbin"):
                os.symlink(f"usr/{name}", os.path.join(root, name))
        for mount in mounts:  # a read-only root needs its mount points
            target = root + mount["destination"]
            if mount["type"] == "bind" and not os.path.isdir(mount["source"]):
                os.makedirs(os.path.dirname(target), exist_ok=True)
                open(target, "w").close()
            else:
                os.makedirs(target, exist_ok=True)
        for name in ("proc", "dev", "sys", "tmp"):
            os.makedirs(os.path.join(root, name), exist_ok=True)
        os.chmod(os.path.join(root, "tmp"), 0o1777 if tmp else 0o755)  # runc gives the mount its folder's mode
        plain = ["nosuid", "noexec", "nodev"]
        config = {
            "ociVersion": "1.0.2",
            "process": {
                "terminal": False,
                "user": {"uid": user, "gid": user},
                "args": command,
                "cwd": "/",
                "env": ["PATH=/usr/local/bin:/usr/bin:/bin", *env],
                "noNewPrivileges": True,
                "capabilities": {},
            },
            "root": {"path": "rootfs", "readonly": True},
            "hostname": "pod-0",
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {
                    "destination": "/dev",
                    "type": "tmpfs",
                    "source": "tmpfs",
                    "options": ["nosuid", "mode=755", "size=64k"],
                },
                {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*plain, "ro"]},
                {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": [*plain, "ro"]},
                {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["size=16m"]},
                *mounts,
            ],
            "linux": {
                "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")],
                "resources": {"memory": {"limit": memory, "swap": memory}, "pids": {"limit": 1000}},
            },
        }
        if cpus is not None:
            config["linux"]["resources"]["cpu"] = {"quota": int(cpus * 100_000), "period": 100_000}
        with open(os.path.join(self.bundle, "config.json"), "w") as file:
            json.dump(config, file)

    def command(self):
        return ["runc", "--root", self.state, "run", "--bundle", self.bundle, self.name]

    def run(self):
        return subprocess.run(
            self.command(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE
        )

    def kill(self, name):
        """The runtime's signal to the container's main process, as the kubelet sends it."""
        return subprocess.run(
            ["runc", "--root", self.state, "kill", self.name, name], capture_output=True, text=True, timeout=DEADLINE
        )

    def remove(self):
        subprocess.run(
            ["runc", "--root", self.state, "delete", "--force", self.name], capture_output=True, timeout=DEADLINE
        )
