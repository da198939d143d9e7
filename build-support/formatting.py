#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Formats the C++ (clang-format) and the Python (ruff) of this checkout in place.

tests/format_test.py checks the same files. A script without a suffix counts by its first line.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
CLANG_FORMAT = "clang-format-16"
SHELLCHECK = "shellcheck"
RUFF = str(CACHE / "muster" / "ruff" / "bin" / "ruff")  # setup-venv ruff
FOREIGN = ("tests/fuzz/corpus/",)  # inputs of the fuzz targets: heads of other people's scripts
LICENCE = "Apache-2.0"
# Sources besides those that have a language: by suffix or name. Data and pages name no licence of their own.
OTHER_SOURCES = (".c", ".cmake", ".css", ".go", ".html", ".js", ".proto", "CMakeLists.txt", "Dockerfile", "Makefile")
CORES = len(os.sched_getaffinity(0))


def interpreter(head):
    """The interpreter of a script that begins with the bytes `head`, such as "bash"; "" if it names none."""
    if not head.startswith(b"#!"):
        return ""
    words = [word.rsplit("/", 1)[-1] for word in head.split(b"\n")[0][2:].decode(errors="replace").split()]
    if words[:1] == ["env"]:
        words = [word for word in words[1:] if not word.startswith("-")]
    return words[0] if words else ""


def language(name, head):
    """What the file `name`, which begins with the bytes `head`, is: "c++", "python", "shell" or ""."""
    suffix = pathlib.PurePath(name).suffix
    if suffix in (".h", ".cc"):
        return "c++"
    by = interpreter(head)
    if suffix == ".py" or by.startswith("python"):
        return "python"
    return "shell" if suffix == ".sh" or by in ("sh", "bash", "dash") else ""


def names_licence(name, head):
    """Whether the file `name`, which begins with the bytes `head`, names its licence in the first line, or in the one
    after the interpreter's. True of a file that is no source."""
    lines = head.splitlines()
    if not language(name, head) and not name.endswith(OTHER_SOURCES):
        return True
    first = lines[1:2] if head.startswith(b"#!") else lines[:1]
    return f"SPDX-License-Identifier: {LICENCE}".encode() in b"".join(first)


def head_of(path):
    with open(path, "rb") as file:
        return file.read(200)


def listed():
    """The files that git tracks or would add: name -> language."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    names = [name for name in names if not name.startswith(FOREIGN) and (ROOT / name).is_file()]
    return {name: language(name, head_of(ROOT / name)) for name in names if not (ROOT / name).is_symlink()}


def run_on(command, names):
    """Runs `command` on shares of `names`, one for each core. Returns (whether all succeeded, what they wrote)."""

    def run(share):
        return subprocess.run([*command, *share], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    shares = [names[i::CORES] for i in range(min(CORES, len(names)))]
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        done = list(pool.map(run, shares))
    return not any(one.returncode for one in done), "".join(one.stdout for one in done)


def main():
    files = listed()
    for wanted, command in (
        ("c++", [CLANG_FORMAT, "-i"]),
        ("python", [RUFF, "check", "--quiet", "--no-cache", "--exit-zero", "--select=I", "--fix"]),  # the imports
        ("python", [RUFF, "format", "--quiet", "--no-cache"]),
    ):
        succeeded, output = run_on(command, [name for name in files if files[name] == wanted])
        if not succeeded:
            sys.exit(output)


if __name__ == "__main__":
    main()
