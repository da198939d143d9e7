# SPDX-License-Identifier: Apache-2.0
"""One package as the files that people download: tar.gz, .deb, .rpm, and a Python wheel of several packages.

Each function reads a folder that package_tree.write() has written, and writes one file. The same folder and the same
time give the same bytes: entries are sorted, and have the owner 0 and the given time.
"""

import base64
import gzip
import hashlib
import os
import shutil
import tarfile
import tempfile
import time
import zipfile
from dataclasses import dataclass

from release import Failed, output, put

SITE = "https://muster.dev"
MAINTAINER = "The Muster authors <noreply@muster.dev>"
RPM_ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
# The binaries bring their libc, so they run with glibc and with musl.
WHEEL_TAGS = {
    "amd64": ("py3-none-manylinux2014_x86_64", "py3-none-musllinux_1_1_x86_64"),
    "arm64": ("py3-none-manylinux2014_aarch64", "py3-none-musllinux_1_1_aarch64"),
}


@dataclass(frozen=True)
class Facts:
    """Of a release: its version, Debian's name of the architecture, the time of all files (seconds since 1970), and the
    level of compression of packages: 1 (fast) to 9."""

    version: str
    architecture: str
    moment: int
    level: int = 6


def files_of(folder):
    """Relative paths of the files below `folder`, sorted."""
    return sorted(
        os.path.relpath(os.path.join(place, name), folder) for place, _, names in os.walk(folder) for name in names
    )


def write_tar(folder, top, moment, path):
    """Writes a .tar.gz whose entries are below the folder `top`."""

    def plain(member):
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = moment
        return member

    with open(path, "wb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w") as tar:
            for name in files_of(folder):
                tar.add(os.path.join(folder, name), f"{top}/{name}", filter=plain)


def write_deb(folder, package, facts, path):
    with tempfile.TemporaryDirectory(prefix="muster-deb-") as root:
        usr = os.path.join(root, "usr")
        shutil.copytree(folder, usr)
        zsh = os.path.join(usr, "share/zsh")  # Debian's place for packages
        os.rename(os.path.join(zsh, "site-functions"), os.path.join(zsh, "vendor-completions"))
        files = files_of(root)
        sizes = [os.path.getsize(os.path.join(root, name)) for name in files]
        fields = {
            "Package": package.name,
            "Version": facts.version,
            "Architecture": facts.architecture,
            "Maintainer": MAINTAINER,
            "Installed-Size": sum(-(-size // 1024) for size in sizes),
            "Depends": ", ".join(f"{name} (= {facts.version})" for name in package.needs),
            "Recommends": ", ".join(package.recommends),
            "Section": "science",
            "Priority": "optional",
            "Homepage": SITE,
            "Description": package.summary,
        }
        put(root, "DEBIAN/control", content="".join(f"{name}: {value}\n" for name, value in fields.items() if value))
        sums = []
        for name in files:
            with open(os.path.join(root, name), "rb") as file:
                sums.append(f"{hashlib.file_digest(file, 'md5').hexdigest()}  {name}\n")
        put(root, "DEBIAN/md5sums", content="".join(sums))
        make_folders_readable(root)
        build = ["dpkg-deb", "--root-owner-group", "-Zxz", f"-z{facts.level}", "--build", root, path]
        output(*build, env={**os.environ, "SOURCE_DATE_EPOCH": str(facts.moment)})


def write_rpm(folder, package, facts, path):
    """Failed: rpmbuild is not installed."""
    with tempfile.TemporaryDirectory(prefix="muster-rpm-") as work:
        root = os.path.join(work, "root")
        shutil.copytree(folder, os.path.join(root, "usr"))
        make_folders_readable(root)
        files = files_of(root)
        own = [f"%dir /usr/{name}" for name in (f"lib/{package.name}", f"share/doc/{package.name}")]
        fields = [
            ("Name", package.name),
            ("Version", facts.version),
            ("Release", "1"),
            ("Summary", package.summary),
            ("License", "Apache-2.0"),
            ("URL", SITE),
            ("AutoReqProv", "no"),
            *(("Requires", f"{name} = {facts.version}") for name in package.needs),
            *(("Recommends", name) for name in package.recommends),
        ]
        spec = [
            *(f"{name}: {value}" for name, value in fields),
            "%description",
            f"{package.summary}.",
            "%files",
            *(line for line in own if os.path.isdir(root + line.removeprefix("%dir "))),
            *(f'"/{name}"' for name in files),
        ]
        put(work, "package.spec", content="\n".join(spec) + "\n")
        architecture = RPM_ARCHITECTURES[facts.architecture]
        macros = {
            "_topdir": os.path.join(work, "top"),
            "_rpmdir": os.path.join(work, "rpms"),
            "_rpmfilename": "package.rpm",
            "_buildhost": "localhost",
            "use_source_date_epoch_as_buildtime": "1",
            "clamp_mtime_to_source_date_epoch": "1",
            "source_date_epoch_from_changelog": "0",
            "_build_id_links": "none",
            "__os_install_post": "%{nil}",
            "debug_package": "%{nil}",
            "_binary_payload": f"w{facts.level}.xzdio",
        }
        for name in files:
            os.utime(os.path.join(root, name), (facts.moment, facts.moment))
        for place, _, _ in os.walk(root, topdown=False):
            os.utime(place, (facts.moment, facts.moment))
        command = ["rpmbuild", "-bb", "--quiet"]
        for name, value in macros.items():
            command += ["--define", f"{name} {value}"]
        command += ["--target", f"{architecture}-linux", "--buildroot", root, os.path.join(work, "package.spec")]
        output(*command, env={**os.environ, "SOURCE_DATE_EPOCH": str(facts.moment), "HOME": work})
        made = os.path.join(work, "rpms", "package.rpm")
        if not os.path.exists(made):
            raise Failed(f"rpmbuild has written no package of {package.name}")
        shutil.copy(made, path)


def make_folders_readable(root):
    for place, _, _ in os.walk(root):
        os.chmod(place, 0o755)


def write_wheel(folder, name, summary, facts, path):
    """Writes a wheel of the files below `folder`: bin goes onto PATH, the rest below the environment's prefix."""
    module = name.replace("-", "_")
    about = f"{module}-{facts.version}.dist-info"
    data = f"{module}-{facts.version}.data"
    place_of = lambda file: f"{data}/scripts/{file[4:]}" if file.startswith("bin/") else f"{data}/data/{file}"
    entries = {}
    for file in files_of(folder):
        with open(os.path.join(folder, file), "rb") as source:
            entries[place_of(file)] = (source.read(), os.stat(os.path.join(folder, file)).st_mode & 0o777)
    tags = "".join(f"Tag: {tag}\n" for tag in WHEEL_TAGS[facts.architecture])
    entries[f"{about}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: muster\nRoot-Is-Purelib: false\n{tags}".encode(),
        0o644,
    )
    fields = {
        "Metadata-Version": "2.1",
        "Name": name,
        "Version": facts.version,
        "Summary": summary,
        "License": "Apache-2.0",
        "Home-page": SITE,
        "Requires-Python": ">=3.6",
    }
    entries[f"{about}/METADATA"] = ("".join(f"{key}: {value}\n" for key, value in fields.items()).encode(), 0o644)
    record = "".join(
        f"{file},sha256={url_digest(content)},{len(content)}\n" for file, (content, _) in sorted(entries.items())
    )
    entries[f"{about}/RECORD"] = (f"{record}{about}/RECORD,,\n".encode(), 0o644)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in sorted(entries, key=lambda file: (file.startswith(about), file)):  # dist-info comes last
            content, mode = entries[file]
            entry = zipfile.ZipInfo(file, date_time=zip_time(facts.moment))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)


def wheel_name(name, facts):
    tags = WHEEL_TAGS[facts.architecture]
    platforms = ".".join(tag.rpartition("-")[2] for tag in tags)
    return f"{name.replace('-', '_')}-{facts.version}-py3-none-{platforms}.whl"


def zip_time(moment):
    return max(time.gmtime(moment)[:6], (1980, 1, 1, 0, 0, 0))  # zip files know no earlier time


def url_digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
