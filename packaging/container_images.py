# SPDX-License-Identifier: Apache-2.0
"""The container images of the programs: which there are, and what is in them beside the binary."""

import glob
import os
import tempfile

import oci_image
from debian_files import debian_of
from release import Failed, check_commit, moment_of, output, put, version_of

NONROOT = 65532
# Per image: files that the binary needs beside its libraries, and the user. The initializer has none, because volumes
# often belong to root.
TLS = ("ca-certificates",)
IMAGES = {
    "muster": ((), f"{NONROOT}:{NONROOT}"),
    "muster-initializer": ((*TLS, "C.UTF-8"), None),
    "muster-controller": (TLS, f"{NONROOT}:{NONROOT}"),
}
PASSWD = f"root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{NONROOT}:{NONROOT}:nonroot:/:/sbin/nologin\n"
GROUP = f"root:x:0:\nnonroot:x:{NONROOT}:\n"


def dependencies_root(root, debian, needed, extras):
    """Writes into `root` what a binary needs to run: the shared libraries `needed`, certificates, users, /tmp; and the
    packages for scanners."""
    for path in needed:
        put(root, path, source=debian.place(path))
    packages = debian.packages_of(needed)
    if "ca-certificates" in extras:
        # From the package, not from /etc, because this machine may trust certificates of its own.
        folder = debian.place("/usr/share/ca-certificates/mozilla")
        certificates = sorted(glob.glob(f"{folder}/*.crt"))
        if not certificates:
            raise Failed(f"{folder} has no certificates; install the package ca-certificates")
        put(root, "/etc/ssl/certs/ca-certificates.crt", content="".join(open(path).read() for path in certificates))
        packages.append("ca-certificates")
    if "C.UTF-8" in extras:  # for names in archives
        for path in glob.glob(debian.place("/usr/lib/locale/C.utf8/**"), recursive=True):
            if os.path.isfile(path):
                put(root, os.path.relpath(path, debian.root), source=path)
        packages.append("libc-bin")
    for package in packages:
        put(root, f"/var/lib/dpkg/status.d/{package}", content=debian.facts(package))
        if licence := debian.licence_of(package):
            put(root, f"/usr/share/doc/{package}/copyright", source=licence)
    put(root, "/etc/passwd", content=PASSWD)
    put(root, "/etc/group", content=GROUP)
    os.makedirs(os.path.join(root, "tmp"))
    os.chmod(os.path.join(root, "tmp"), 0o1777)


def image_of(name, binaries, facts, moment):
    """The Image of the program `name` in the folder `binaries`. `facts`: (version, commit)."""
    binary = os.path.join(binaries, name)
    version, commit = facts
    check_commit(binary, commit)
    debian = debian_of(binary)
    extras, user = IMAGES[name]
    layers = []
    with tempfile.TemporaryDirectory(prefix="muster-images-") as folder:
        if needed := debian.libraries(binary):
            dependencies_root(os.path.join(folder, "below"), debian, needed, extras)
            layers.append(oci_image.layer(os.path.join(folder, "below"), moment))
        top = os.path.join(folder, "top")
        put(top, f"/usr/local/bin/{name}", source=binary)
        output(debian.tool("strip"), "--strip-all", os.path.join(top, "usr/local/bin", name))
        layers.append(oci_image.layer(top, moment))
    config = {
        "Env": ["PATH=/usr/local/bin:/usr/bin:/bin"],
        "Entrypoint": [name],
        "WorkingDir": "/",
        **({"User": user} if user else {}),
        "Labels": {
            f"org.opencontainers.image.{key}": value
            for key, value in {"title": name, "version": version, "revision": commit, "licenses": "Apache-2.0"}.items()
        },
    }
    return oci_image.Image(debian.architecture, layers, config)


def make_image(name, folders, out, registry, tag):
    """Returns (reference, digest, archive). The programs in the first of `folders` must run here."""
    facts = version_of(os.path.join(folders[0], name))
    moment = moment_of(facts[1])
    images = [image_of(name, folder, facts, moment) for folder in folders]
    reference = f"{registry}/{name}:{tag or facts[0]}"
    digest = oci_image.write(os.path.join(out, name), reference, images, moment)
    return reference, digest, os.path.join(out, f"{name}.tar")
