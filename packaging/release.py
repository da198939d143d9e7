# SPDX-License-Identifier: Apache-2.0
"""What all files of a release share: the error, the version, the time, and how they are written."""

import hashlib
import os
import re
import subprocess

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))


class Failed(Exception):
    """The message says what, where, and what to do."""


def output(*command, **options):
    """What `command` prints. Failed: it cannot be run, or it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, **options)
    except OSError as error:
        raise Failed(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        raise Failed(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def put(root, path, source=None, content=None, mode=None):
    """Writes the file `path` of `root`: a copy of the file `source` (links are followed) with its mode, or `content`
    (text or bytes)."""
    place = os.path.join(root, path.lstrip("/"))
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if source is not None:
        with open(source, "rb") as file:
            content = file.read()
        mode = mode or (0o755 if os.access(source, os.X_OK) else 0o644)
    with open(place, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    os.chmod(place, mode or 0o644)
    return place


def version_of(binary):
    """(version, commit) as `binary --version` prints them."""
    said = output(binary, "--version")
    found = re.match(r"\S+ (\S+) \(commit (\S+)\)", said)
    if not found:
        raise Failed(f"{binary} --version says {said.splitlines()[:1]}; want NAME VERSION (commit COMMIT)")
    return found.groups()


def check_commit(binary, commit):
    """Failed: `binary` is not of `commit`."""
    with open(binary, "rb") as file:
        if commit.encode() not in file.read():
            raise Failed(f"{binary} is not of commit {commit} as the others are; build it again")


def moment_of(commit):
    """The time of all files, in seconds since 1970: SOURCE_DATE_EPOCH, else that of the commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        try:
            given = output("git", "-C", ROOT, "log", "-1", "--format=%ct", commit.removesuffix("-dirty"))
        except Failed as error:
            raise Failed(f"no time for the files: {error}; set SOURCE_DATE_EPOCH") from error
    if not re.fullmatch(r"\d+\n?", given):
        raise Failed(f"SOURCE_DATE_EPOCH is '{given}'; want seconds since 1970")
    return int(given)


def sha256_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
