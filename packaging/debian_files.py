# SPDX-License-Identifier: Apache-2.0
"""Which shared libraries a binary needs, and from which packages of Debian they are: of this machine, or of a folder
into which the packages of another architecture are unpacked."""

import os
import re
import subprocess

from release import ROOT, Failed, output

# Debian's name of an architecture: its folder of libraries, which stands before the names of its tools.
TRIPLETS = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
MACHINES = {"Advanced Micro Devices X86-64": "amd64", "AArch64": "arm64"}  # as readelf names them
FACTS = (
    "Package: ${Package}\\nStatus: ${Status}\\nArchitecture: ${Architecture}\\n"
    "Source: ${source:Package} (${source:Version})\\nVersion: ${Version}\\n"
)


def own_architecture():
    """Debian's name of this machine's architecture."""
    return output("dpkg", "--print-architecture").strip()


def architecture_of(binary):
    """Debian's name of the architecture that `binary` is for. Failed: it is for none of TRIPLETS."""
    machine = re.search(r"Machine:\s+(.+)", output("readelf", "-hW", binary))
    if not machine or machine[1] not in MACHINES:
        raise Failed(f"{binary} is for {machine[1] if machine else 'no machine'}; want {' or '.join(MACHINES)}")
    return MACHINES[machine[1]]


def debian_of(binary):
    """The DebianFiles that `binary` was built with: this machine's, or those of setup-arm64."""
    architecture = architecture_of(binary)
    if architecture == own_architecture():
        return own_debian()
    if architecture != "arm64":
        raise Failed(f"{binary} is for {architecture}; make its packages on such a machine")
    return DebianFiles(output(os.path.join(ROOT, "build-support", "setup-arm64")).strip(), architecture)


def own_debian():
    return DebianFiles("/", own_architecture())


class DebianFiles:
    def __init__(self, root, architecture):
        """`root`: the folder of the Debian; its /var/lib/dpkg tells the packages. `architecture`: one of TRIPLETS."""
        self.root = root
        self.architecture = architecture

    def tool(self, name):
        """The command `name`, such as strip, for binaries of the architecture."""
        return f"{TRIPLETS[self.architecture]}-{name}"

    def place(self, path):
        return os.path.join(self.root, path.lstrip("/"))

    def library(self, name):
        """The path in the Debian of the library in the file `name`; None: there is none."""
        triplet = TRIPLETS[self.architecture]
        places = [f"{folder}/{name}" for folder in (f"/lib/{triplet}", f"/usr/lib/{triplet}")]
        return next((path for path in places if os.path.exists(self.place(path))), None)

    def libraries(self, binary):
        """Paths in the Debian of the shared libraries that `binary` needs, and its loader, sorted; none: it is static.
        Failed: one is not there."""
        headers = output("readelf", "-lW", binary)
        loader = re.search(r"program interpreter: (\S+)\]", headers)
        if not loader:
            return []
        found, open_files = {}, [binary]
        while open_files:
            needed = re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-dW", open_files.pop()))
            for name in needed:
                if name in found or name == os.path.basename(loader[1]):
                    continue
                path = self.library(name)
                if path is None:
                    raise Failed(f"{binary}: its shared library {name} is not here; run build-support/install-deps")
                found[name] = path
                open_files.append(self.place(path))
        return sorted([*found.values(), loader[1]])

    def packages_of(self, paths):
        """Names of the packages that have the files at `paths`. Failed: no package has one of them."""
        real = ["/" + os.path.relpath(os.path.realpath(self.place(path)), self.root) for path in paths]
        known = sorted({*real, *(path.removeprefix("/usr") for path in real)})  # dpkg knows each by one of the two
        found = ""
        for at in range(0, len(known), 1000):  # a command line has a limit
            command = ["dpkg-query", f"--admindir={self.place('/var/lib/dpkg')}", "-S", *known[at : at + 1000]]
            found += subprocess.run(command, capture_output=True, text=True).stdout
        owners = {
            path.removeprefix("/usr"): names.split(", ")[0].split(":")[0]
            for names, path in re.findall(r"^(.+): (/\S+)$", found, re.MULTILINE)
            if not names.startswith("diversion by")
        }
        missing = [path for path in real if path.removeprefix("/usr") not in owners]
        if missing:
            raise Failed(f"no Debian package has {', '.join(missing)}; releases are made of packaged libraries only")
        return sorted(set(owners.values()))

    def facts(self, package, fields=FACTS):
        """What dpkg knows of `package`, in the form of `dpkg-query --showformat`."""
        return output("dpkg-query", f"--admindir={self.place('/var/lib/dpkg')}", "-W", "-f", fields, package)

    def licence_of(self, package):
        """The path of the file with the licence of `package`; None: it has none here."""
        path = self.place(f"/usr/share/doc/{package}/copyright")
        return path if os.path.exists(path) else None
