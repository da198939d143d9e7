#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes stand-ins for the CUDA libraries that PyTorch's wheel is linked to, so that PyTorch runs on the CPU without
them.

    setup-newest-torch-standins.py SITE_PACKAGES

Without its dependencies the wheel is a download of 0.5 GB, with them of 2.9 GB. For each library that torch/lib/*.so
names as NEEDED and that is not on this machine, the script makes a shared object of that soname in nvidia/cu13/lib,
which is on the wheel's own RPATH. The object defines every symbol (with its version) that torch needs from the library;
each function returns 100, CUDA's "no device"; one whose name ends in String or Name returns a text. torch itself is not
changed; torch.cuda.is_available() is False.
"""

import collections
import glob
import os
import re
import subprocess
import sys


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", tool("readelf", "-d", "-W", library))


def version_files(library):
    """{version name: sonames of the libraries that must define it}."""
    files, current = {}, None
    in_needs = False
    for line in tool("readelf", "-V", "-W", library).splitlines():
        if "section '" in line:
            in_needs = ".gnu.version_r" in line
        elif in_needs and (found := re.search(r"Version: \d+\s+File: (\S+)", line)):
            current = found.group(1)
        elif in_needs and (found := re.search(r"Name: (\S+)", line)):
            files.setdefault(found.group(1), set()).add(current)
    return files


def undefined(library):
    """(symbol, version or "") of every symbol that `library` needs from other libraries."""
    for line in tool("nm", "-D", "--undefined-only", library).splitlines():
        kind, name = line.split()[-2:]
        if kind == "U":
            symbol, _, version = name.partition("@")
            yield symbol, version.lstrip("@")


def defined(library):
    return {line.split()[-1].split("@")[0] for line in tool("nm", "-D", "--defined-only", library).splitlines() if line}


def write_stand_in(folder, soname, symbols):
    """`symbols`: {version, or "": names}."""
    names = sorted({name for group in symbols.values() for name in group})
    source = os.path.join(folder, soname + ".c")
    with open(source, "w") as out:
        for name in names:
            kind, value = ("char *", '"no device"') if name.endswith(("String", "Name")) else ("int ", "100")
            out.write(f"{kind}{name}(void) {{ return {value}; }}\n")
    script = os.path.join(folder, soname + ".map")
    with open(script, "w") as out:
        for version, group in sorted(symbols.items()):
            if version:
                out.write(f"{version} {{ global: {' '.join(f'{name};' for name in sorted(group))} }};\n")
    versioned = any(symbols)
    if versioned and "" in symbols:
        symbols[""] -= set().union(*(group for version, group in symbols.items() if version))
    target = os.path.join(folder, soname)
    command = [
        "gcc",
        "-shared",
        "-fPIC",
        "-O0",
        "-w",
        "-fno-builtin",
        "-nostdlib",
        f"-Wl,-soname,{soname}",
        "-o",
        target,
        source,
    ]
    if versioned:
        command.append(f"-Wl,--version-script={script}")
    subprocess.run(command, check=True)
    os.unlink(source)
    os.unlink(script)


def main():
    site = sys.argv[1]
    libraries = sorted(glob.glob(f"{site}/torch/lib/*.so*"))
    if not libraries:
        sys.exit(f"no torch/lib/*.so in {site}")
    own = {os.path.basename(path) for path in libraries}
    system = dict(re.findall(r"^\s+(\S+) .*=> (\S+)$", tool("/sbin/ldconfig", "-p"), re.MULTILINE))
    folder = f"{site}/nvidia/cu13/lib"
    missing = {name for path in libraries for name in needed(path)} - own - set(system)
    wanted = {soname: collections.defaultdict(set) for soname in missing}
    exported = set().union(*(defined(path) for path in libraries))
    for path in libraries:
        here = [name for name in needed(path) if name in missing]
        if not here:
            continue
        owners = version_files(path)
        known = exported.union(*(defined(system[name]) for name in needed(path) if name in system))
        for symbol, version in undefined(path):
            if version:
                for soname in owners.get(version, ()):
                    if soname in missing:
                        wanted[soname][version].add(symbol)
            elif symbol not in known:
                # A symbol without a version may come from any of the libraries. All stand-ins define it; the first one
                # loaded is used.
                for soname in here:
                    wanted[soname][""].add(symbol)
    os.makedirs(folder, exist_ok=True)
    for soname, symbols in sorted(wanted.items()):
        write_stand_in(folder, soname, symbols)
    print(f"stand-ins for {len(wanted)} CUDA libraries: {' '.join(sorted(wanted))}", file=sys.stderr)


if __name__ == "__main__":
    main()
