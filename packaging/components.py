# SPDX-License-Identifier: Apache-2.0
"""What a binary is made of beside Muster's sources: Debian's packages, found from the build and from the binary."""

import os

from release import Failed, output


class Components:
    """Of the binary `name` in the folder `build` (Ninja's). `libraries`: paths in the Debian of its shared libraries;
    `shared`: packages of these; `linked`: packages whose code is in the binary, from static libraries and headers. All
    are sorted."""

    def __init__(self, build, name, debian):
        binary = os.path.join(build, "bin", name)
        self.libraries = debian.libraries(binary)
        self.shared = debian.packages_of(self.libraries)
        files = headers_of(build, name, debian.root) | static_libraries(
            build, name, debian, is_static=not self.libraries
        )
        self.linked = [package for package in debian.packages_of(sorted(files)) if package not in self.shared]


def headers_of(build, name, root):
    """Paths in the Debian of all headers that the objects of the binary include, from Ninja's log of dependencies."""
    inputs = set(output("ninja", "-C", build, "--quiet", "-t", "inputs", f"bin/{name}").split())
    headers, is_input = set(), False
    for line in output("ninja", "-C", build, "--quiet", "-t", "deps").splitlines():
        if not line.startswith(" "):
            is_input = line.split(":")[0] in inputs
        elif is_input:
            path = os.path.normpath(os.path.join(build, line.strip()))
            if path.startswith(os.path.join(root, "usr/")):
                headers.add("/" + os.path.relpath(path, root))
    if not headers:
        raise Failed(f"{build} has no dependencies of bin/{name}; build it there with CMake and Ninja")
    return headers


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
