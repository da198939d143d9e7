"""The probe of a worker's Python: whether it runs sitecustomize.py, and which modules the script will import.

The agent starts the worker's command line with `-c pass` in place of the script. sitecustomize.py imports this module,
which answers the agent (frames.h) and ends the process. Nothing of the user runs here: sources are only read.
"""

import ast
import hashlib
import importlib.machinery
import os
import sys

MOST_MODULES = 20_000
LONGEST_FILE = 4 << 20  # bytes


def find_without_import(name, find_spec):
    """The spec of a module. None: there is none. Its parents are not imported."""
    parts = name.split(".")
    spec = find_spec(parts[0])
    for end in range(2, len(parts) + 1):
        places = getattr(spec, "submodule_search_locations", None)
        if places is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(".".join(parts[:end]), list(places))
    return spec


def is_main(test):
    """Whether an expression is `__name__ == "__main__"`."""
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


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

    A module counts that is imported in any case: at the top of a file, in a `try`, or where the file is `__main__`. The
    first statement that may change what an import sees ends it.
    """

    def __init__(self, find_spec, is_foreign):
        self.find_spec, self.is_foreign = find_spec, is_foreign
        self.names = []
        self.seen = set()
        self.ended = False

    def read(self, path, package):
        try:
            with open(path, "rb") as file:
                text = file.read(LONGEST_FILE + 1)
            if len(text) <= LONGEST_FILE:
                self.walk(ast.parse(text, path).body, package)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            self.ended = True  # the script's run will say so

    def walk(self, statements, package):
        for statement in statements:
            if self.ended:
                return
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    self.add(alias.name)
            elif isinstance(statement, ast.ImportFrom):
                self.add_from(statement, package)
            elif isinstance(statement, ast.Try):
                self.walk(statement.body + statement.orelse + statement.finalbody, package)
            elif isinstance(statement, ast.If) and is_main(statement.test):
                self.walk(statement.body, package)
            elif not changes_nothing(statement):
                self.ended = True

    def add_from(self, statement, package):
        base = statement.module or ""
        if statement.level:
            parents = package.split(".") if package else []
            if statement.level > len(parents):
                return
            parents = parents[: len(parents) - statement.level + 1]
            base = ".".join(parents + ([base] if base else []))
        if base:
            self.add(base)
            for alias in statement.names:
                self.add(base + "." + alias.name)  # if that is a module

    def add(self, name):
        """A module, after its parents."""
        if self.ended or name in self.seen or len(self.seen) >= MOST_MODULES:
            return
        self.seen.add(name)
        parent = name.rpartition(".")[0]
        if parent:
            self.add(parent)
        spec = find_without_import(name, self.find_spec)
        if spec is None:
            return
        if self.is_foreign(spec):
            self.names.append(name)
        else:
            self.read_module(name, spec)

    def read_module(self, name, spec):
        is_package = spec.submodule_search_locations is not None
        if spec.origin and spec.origin.endswith(".py"):
            self.read(spec.origin, name if is_package else name.rpartition(".")[0])

    def read_main(self, name):
        """A module that Python runs (-m). It is not imported itself, but its parents are."""
        parent = name.rpartition(".")[0]
        if parent:
            self.add(parent)
        spec = find_without_import(name, self.find_spec)
        if getattr(spec, "submodule_search_locations", None) is not None:
            self.add(name)
            name += ".__main__"
            spec = find_without_import(name, self.find_spec)
        if spec is not None:
            self.read_module(name, spec)


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
    scan = Scan(tools.find_spec, tools.is_foreign)
    if kind == "script":
        scan.read(name, "")
    else:
        scan.read_main(name)
    if scan.names:
        tools.send(channel, b"N", "\0".join(scan.names))
