# SPDX-License-Identifier: Apache-2.0
"""What a binary is made of beside Muster's sources: Debian's packages, found from the build and from the binary."""

import os

from debian_files import own_debian
from release import Failed, output


class Components:
    """Of the binary `name` in the folder `build` (Ninja's). `libraries`: paths in the Debian of its shared libraries;
    `shared`: packages of these; `linked`: packages whose code is in the binary, from static libraries and headers. All
    are sorted. debian_of() says whose packages they are: a cross compiler's own headers are this machine's."""

    def __init__(self, build, name, debian):
        binary = os.path.join(build, "bin", name)
        self.libraries = debian.libraries(binary)
        self.shared = debian.packages_of(self.libraries)
        headers = headers_of(build, name)
        inside = {
            "/" + os.path.relpath(path, debian.root) for path in headers if path.startswith(debian.place("/usr/"))
        }
        files = inside | static_libraries(build, name, debian, is_static=not self.libraries)
        linked = dict.fromkeys(debian.packages_of(sorted(files)), debian)
        here = own_debian()
        outside = [path for path in headers if path.startswith("/usr/")] if debian.root != here.root else []
        linked.update(dict.fromkeys(here.packages_of(outside), here))
        self.linked = sorted(package for package in linked if package not in self.shared)
        self.debian_of = {**linked, **dict.fromkeys(self.shared, debian)}.__getitem__


def headers_of(build, name):
    """Absolute paths of all headers that the objects of the binary include, from Ninja's log of dependencies."""
    inputs = set(output("ninja", "-C", build, "--quiet", "-t", "inputs", f"bin/{name}").split())
    headers, is_input = set(), False
    for line in output("ninja", "-C", build, "--quiet", "-t", "deps").splitlines():
        if not line.startswith(" "):
            is_input = line.split(":")[0] in inputs
        elif is_input:
            headers.add(os.path.normpath(os.path.join(build, line.strip())))
    if not headers:
        raise Failed(f"{build} has no dependencies of bin/{name}; build it there with CMake and Ninja")
    return sorted(headers)


def static_libraries(build, name, debian, is_static):
    """Paths in the Debian of the static libraries that the linker's command for the binary names."""
    command = output("ninja", "-C", build, "--quiet", "-t", "commands", f"bin/{name}").splitlines()[-1]
    found = set()
    for word in command.split():
        if not word.startswith("-l"):  # -lNAME, or -l:FILE
            continue
        file = word[3:] if word.startswith("-l:") else f"lib{word[2:]}.a" if is_static else ""
        path = file and debian.library(file)
        if path:
            found.add(path)
    return found
