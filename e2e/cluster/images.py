# SPDX-License-Identifier: Apache-2.0
"""The images that a test cluster needs in addition to Muster's."""

import os
import shutil
import subprocess

BUSYBOX = "docker.io/library/busybox:1"
NONROOT = "muster.dev/nonroot:1"  # busybox as the user 65532
PAUSE = "muster.dev/pause:1"


def busybox_root(folder):
    """A root file system with busybox under all its names."""
    for name in ("bin", "etc", "tmp", "root", "proc", "sys", "dev"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    os.chmod(os.path.join(folder, "tmp"), 0o1777)
    files = subprocess.run(["dpkg", "-L", "busybox-static"], check=True, capture_output=True, text=True).stdout.split()
    binary = os.path.join(folder, "bin", "busybox")
    shutil.copy(next(path for path in files if path.endswith("/bin/busybox")), binary)
    for name in subprocess.run([binary, "--list"], check=True, capture_output=True, text=True).stdout.split():
        if name != "busybox":
            os.symlink("busybox", os.path.join(folder, "bin", name))
    with open(os.path.join(folder, "etc", "passwd"), "w") as file:
        file.write("root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/sh\n")
    with open(os.path.join(folder, "etc", "group"), "w") as file:
        file.write("root:x:0:\nnonroot:x:65532:\n")
