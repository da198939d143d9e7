"""Image archives of one layer, made from a folder: no daemon and no registry. `ctr images import` loads them."""
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile

BUSYBOX = "docker.io/library/busybox:1"
PAUSE = "muster.dev/pause:1"


def _plain(member):
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def write_image(reference, root, config, archive):
    """`config`: the image's "config" object (Env, Entrypoint, Cmd, User, WorkingDir)."""
    layer = archive + ".layer"
    with tarfile.open(layer, "w") as tar:
        tar.add(root, ".", filter=_plain)
    with open(layer, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    described = {"architecture": "amd64", "os": "linux", "config": config, "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
                 "history": [{"created": "1970-01-01T00:00:00Z"}]}
    manifest = [{"Config": "config.json", "RepoTags": [reference], "Layers": ["layer.tar"]}]
    with tarfile.open(archive, "w") as tar:
        for name, content in (("manifest.json", manifest), ("config.json", described)):
            text = json.dumps(content).encode()
            member = tarfile.TarInfo(name)
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
        tar.add(layer, "layer.tar", filter=_plain)
    os.unlink(layer)


def busybox_root(folder):
    """A root with busybox under all of its names."""
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


def program_root(folder, binary, target):
    """A root with `binary` at `target` ("/usr/bin/x"), the shared libraries that ldd names, and a /tmp."""
    def put(source, path):
        place = os.path.join(folder, path.lstrip("/"))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy(source, place)  # what a link leads to

    put(binary, target)
    listed = subprocess.run(["ldd", binary], capture_output=True, text=True)  # it fails for a static binary
    for path in re.findall(r"(?:=> |^\s)(/\S+) \(0x", listed.stdout, re.MULTILINE) if listed.returncode == 0 else []:
        put(path, path)
    os.makedirs(os.path.join(folder, "tmp"), exist_ok=True)
    os.chmod(os.path.join(folder, "tmp"), 0o1777)
