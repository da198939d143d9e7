# SPDX-License-Identifier: Apache-2.0
"""What a release was made of and how, as an in-toto statement with SLSA's provenance (v1)."""

import json
import os
import re

from package_files import SITE
from release import ROOT, Failed, output
from spdx import utc

BUILD_TYPE = f"{SITE}/make-dist/v1"


def name_of(facts):
    return f"muster-{facts.version}-{facts.architecture}.provenance.json"


def statement(digests, facts, commit, build):
    """`digests`: SHA-256 of each file of the release, by its name. `build`: a package_tree.Build."""
    compiler, flags = compiler_of(build.folder)
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in sorted(digests.items())],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": facts.version, "architecture": facts.architecture},
                "internalParameters": {
                    "compiler": output(compiler, "--version").splitlines()[0],
                    "flags": flags,
                    "linker": output(build.debian.tool("ld"), "--version").splitlines()[0],
                    "cmake": output("cmake", "--version").splitlines()[0],
                    "distribution": distribution(),
                    "SOURCE_DATE_EPOCH": facts.moment,
                },
                "resolvedDependencies": [{"name": "source", "digest": {"gitCommit": full(commit)}}],
            },
            "runDetails": {"builder": {"id": BUILD_TYPE}, "metadata": {"invocationId": utc(facts.moment)}},
        },
    }


def compiler_of(folder):
    """The compiler, and the flags that all sources have."""
    place = os.path.join(folder, "compile_commands.json")
    try:
        with open(place) as file:
            commands = [entry["command"].split() for entry in json.load(file)]
    except OSError as error:
        raise Failed(f"{place}: {error.strerror}; configure with CMake") from error
    everywhere = set(commands[0]).intersection(*commands[1:])
    shared = [word for word in commands[0] if word in everywhere]
    compiler = next(word for word in shared if re.fullmatch(r".*(c\+\+|g\+\+)(-\d+)?", os.path.basename(word)))
    flags = [word for word in shared if re.match(r"-[DOWfgmst]", word) and "/" not in word]
    return compiler, flags


def full(commit):
    """The 40 digits of `commit`; as it is if this folder has no such commit."""
    try:
        return output("git", "-C", ROOT, "rev-parse", f"{commit.removesuffix('-dirty')}^{{commit}}").strip()
    except Failed:
        return commit


def distribution():
    with open("/etc/os-release") as file:
        facts = dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)
    return facts.get("PRETTY_NAME", "unknown").strip('"')
