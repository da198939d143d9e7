# SPDX-License-Identifier: Apache-2.0
"""The probe of a worker's Python: whether it runs sitecustomize.py, and which modules the script will import.

The agent starts the worker's command line with `-c pass` in place of the script. sitecustomize.py imports this module,
which answers the agent (frames.h) and ends the process. Nothing of the user runs here: sources are only read.
"""

import ast
import hashlib
import os
import sys

import constants  # of the archive

MOST_ENTRIES = 20_000


def changes_nothing(statement):
    """Whether the imports after a statement see what they would see without it."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return not statement.decorator_list
    if isinstance(statement, ast.If):
        return isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"
    if isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    elif isinstance(statement, ast.AnnAssign):
        targets, value = [statement.target], statement.value
    elif isinstance(statement, ast.Expr):
        targets, value = [], statement.value
    else:
        return isinstance(statement, ast.Pass)
    active = (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
    return all(isinstance(target, ast.Name) for target in targets) and not (
        value and any(isinstance(node, active) for node in ast.walk(value))
    )


class Scan:
    """Names of installed modules, in the order in which the script and its own modules import them.

    A module counts that is imported in any case: at the top of a file, in a `try`, or where the file is `__main__`. A
    statement that sets variables to constants, and a module of the script's own, is an entry as in learner.py. The
    first other statement that may change what an import sees ends it.
    """

    def __init__(self, tools):
        """`tools`: the module sitecustomize."""
        self.tools = tools
        self.entries = []
        self.seen = set()
        self.ended = False

    def read(self, path, package):
        tree = constants.read(path)
        if tree is None:
            self.ended = True  # the script's run will say why
        else:
            self.walk(tree.body, package)

    def walk(self, statements, package):
        for statement in statements:
            if self.ended:
                return
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                for name in constants.imported_by(statement, package):
                    self.add(name)  # if that is a module
            elif isinstance(statement, ast.Try):
                self.walk(statement.body + statement.orelse + statement.finalbody, package)
            elif isinstance(statement, ast.If) and constants.is_main(statement.test):
                self.walk(statement.body, package)
            elif not self.take_constants(constants.stored_by(statement)) and not changes_nothing(statement):
                self.ended = True

    def take_constants(self, stored):
        if any(name is None or value is None for name, value, _ in stored):
            return False
        self.entries += [self.tools.variable_entry(name, value) for name, value, _ in stored]
        return bool(stored)

    def add(self, name):
        """A module, after its parents."""
        if self.ended or name in self.seen or len(self.seen) >= MOST_ENTRIES:
            return
        self.seen.add(name)
        parent = name.rpartition(".")[0]
        if parent:
            self.add(parent)
        spec = self.tools.find_without_import(name)
        if spec is None:
            return
        if self.tools.is_foreign(spec):
            self.entries.append(name)
        else:
            self.read_module(name, spec)

    def read_module(self, name, spec):
        """One of the script's own."""
        self.entries += self.tools.file_entries(name, spec)
        is_package = spec.submodule_search_locations is not None
        if spec.origin and spec.origin.endswith(".py"):
            self.read(spec.origin, name if is_package else name.rpartition(".")[0])

    def read_main(self, name):
        """A module that Python runs (-m). It is not imported itself, but its parents are."""
        name, spec = self.tools.find_main(name)
        package = name.rpartition(".")[0]
        if package:
            self.add(package)
        if getattr(spec, "origin", None):
            self.read(spec.origin, package)


def digest(parts):
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def list_versions(is_foreign_place):
    """What changes when another Python is used, or when a package is installed or removed."""
    versions = [sys.version, sys.executable or ""]
    for place in sys.path:
        if is_foreign_place(place):
            try:
                versions += [place, str(os.stat(place).st_mtime_ns)]
            except OSError:
                pass
    return versions


def run(channel, tools):
    """`tools`: the module sitecustomize."""
    import _socket

    socket = _socket.socket(fileno=channel)
    tools.send(channel, b"H", str(os.getpid()))
    _, body, _ = tools.take_message(socket)
    folder, kind, name = (os.fsdecode(part) for part in body.split(b"\0"))
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, folder)
    path = os.path.realpath(name) if kind == "script" else os.getcwd()
    tools.send(channel, b"V", digest([kind, name, path]) + "\0" + digest(list_versions(tools.is_foreign_place)))
    scan = Scan(tools)
    if kind == "script":
        scan.read(name, "")
    else:
        scan.read_main(name)
    if scan.entries:
        tools.send(channel, b"N", "\0".join(scan.entries[:MOST_ENTRIES]))
