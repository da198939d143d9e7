# SPDX-License-Identifier: Apache-2.0
"""Finds the variables that the text of a script sets to constants. Texts are read, never run.

A standby repeats such a change before it imports what the script imports after it (watcher.py). So each worker must
make it, whatever its rank. A variable is constant if, in all files that are known (the script, modules of its own):

- One statement alone stores it. The name and the value are literals:

      os.environ["NAME"] = "value"
      os.environ.setdefault("NAME", "value")
      os.environ.update(NAME="value")
      os.environ.update({"NAME": "value"})

- That statement is at the top level of its file, or in the script's `if __name__ == "__main__"`.
- The file is the script, or a module that such a statement imports, in the script or in another such module.
- Nothing stores a variable whose name is no literal, and os.environ goes nowhere where it might be changed, as in
  `env = os.environ` and `f(os.environ)`.
- All these files could be read.

What functions of installed packages and texts for exec() store is not seen: the caller compares the value with the one
that a worker has shown.

No module of Python's library is imported: the script may have one of the same name.
"""

import os
import sys
from _ast import (
    AST,
    Assign,
    Attribute,
    Call,
    Compare,
    Constant,
    Dict,
    Eq,
    Expr,
    If,
    Import,
    ImportFrom,
    Load,
    Name,
    PyCF_ONLY_AST,
    Subscript,
)

LONGEST_FILE = 4 << 20  # bytes
TABLES = {"environ", "environb"}
TOOLS = {"putenv", "unsetenv"}
# Methods of os.environ.
STORE = {"__delitem__", "__setitem__", "pop", "setdefault", "update"}
READ = {"__contains__", "__getitem__", "copy", "get", "items", "keys", "values"}
# Functions of Python that take it and do not change it.
LOOK = {"dict", "len", "list", "print", "repr", "sorted", "str"}


def read(path):
    """The syntax tree of a file. None: it cannot be read, is too long, or is not Python's."""
    stderr, sys.stderr = sys.stderr, None  # it is the script's run that shows the compiler's warnings
    try:
        with open(path, "rb") as file:
            text = file.read(LONGEST_FILE + 1)
        return compile(text, path, "exec", PyCF_ONLY_AST, True) if len(text) <= LONGEST_FILE else None
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    finally:
        sys.stderr = stderr


def nodes_of(tree):
    """All nodes, each after its parent."""
    nodes = [tree]
    for node in nodes:
        for field in node._fields:
            value = getattr(node, field, None)
            nodes += [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, AST)]
    return nodes


def name_of(node):
    """The last part of a name with dots. None: the node is something else."""
    return node.attr if isinstance(node, Attribute) else node.id if isinstance(node, Name) else None


def literal(node):
    """The text that a node stands for. None: it is no literal."""
    value = node.value if isinstance(node, Constant) else None
    return os.fsdecode(value) if isinstance(value, bytes) else value if isinstance(value, str) else None


def key_of(subscript):
    key = subscript.slice
    return literal(key.value if type(key).__name__ == "Index" else key)  # an Index until Python 3.8


def stored_by_call(call):
    """As stored_by(). None: the node calls no method that stores a variable. A name may be None: it is no literal."""
    method = call.func
    if not isinstance(method, Attribute) or name_of(method.value) not in TABLES or method.attr not in STORE:
        return None
    if method.attr != "update":
        value = call.args[1] if method.attr == "setdefault" and len(call.args) == 2 else None
        return [(literal(call.args[0]) if call.args else None, literal(value), True)]
    found = []
    for given in call.args:
        if isinstance(given, Dict):
            found += [(literal(key), literal(value), False) for key, value in zip(given.keys, given.values)]
        else:
            found.append((None, None, False))
    return found + [(keyword.arg, literal(keyword.value), False) for keyword in call.keywords]


def stored_by(statement):
    """[(variable, value, whether one that is there stays)] if the statement does no more than to store variables.

    A name or a value may be None: it is no literal."""
    if isinstance(statement, Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], Subscript):
        (target,) = statement.targets
        table, found = target.value, [(key_of(target), literal(statement.value), False)]
    elif isinstance(statement, Expr) and isinstance(statement.value, Call):
        found = stored_by_call(statement.value)
        table = statement.value.func.value if found else None
    else:
        return []
    if isinstance(table, Attribute):
        return found if table.attr == "environ" and isinstance(table.value, Name) and table.value.id == "os" else []
    return found if name_of(table) == "environ" else []


def is_main(test):
    """Whether an expression is `__name__ == "__main__"`."""
    return (
        isinstance(test, Compare)
        and name_of(test.left) == "__name__"
        and [type(operator) for operator in test.ops] == [Eq]
        and literal(test.comparators[0]) == "__main__"
    )


def imported_by(statement, package):
    """The names that may be modules, without their parents. `package`: that of the file."""
    if isinstance(statement, Import):
        return [alias.name for alias in statement.names]
    if not isinstance(statement, ImportFrom):
        return []
    base = statement.module or ""
    if statement.level:
        parents = package.split(".") if package else []
        if statement.level > len(parents):
            return []
        base = ".".join(parents[: len(parents) - statement.level + 1] + ([base] if base else []))
    return [base, *(base + "." + alias.name for alias in statement.names)]


def stores_of(tree):
    """A list of the names that a text stores, once for each place. One is None: the text does not show it."""
    found = []
    harmless = set()  # mentions of os.environ, by the node around them
    for node in nodes_of(tree):
        if isinstance(node, Subscript) and name_of(node.value) in TABLES:
            harmless.add(node.value)
            if not isinstance(node.ctx, Load):
                found.append(key_of(node))
        elif isinstance(node, Call):
            stored = stored_by_call(node)
            if stored is not None:
                harmless.add(node.func.value)
                found += [name for name, _, _ in stored]
            elif name_of(node.func) in TOOLS:
                harmless.add(node.func)
                found.append(literal(node.args[0]) if node.args else None)
            elif isinstance(node.func, Name) and node.func.id in LOOK:
                harmless.update(node.args)
            of_subprocess = isinstance(node.func, Attribute) and name_of(node.func.value) == "subprocess"
            harmless.update(k.value for k in node.keywords if k.arg is None or (of_subprocess and k.arg == "env"))
        elif isinstance(node, Compare):
            harmless.update(node.comparators)
        elif isinstance(node, Dict):
            harmless.update(value for key, value in zip(node.keys, node.values) if key is None)
        elif isinstance(node, ImportFrom):
            found += [None for alias in node.names if alias.asname and alias.name in TABLES | TOOLS]
        elif isinstance(node, Attribute) and node.attr in READ:
            harmless.add(node.value)
        if name_of(node) in TABLES | TOOLS and node not in harmless:
            found.append(None)
    return found


class Constants:
    """What the files that are known say together."""

    def __init__(self):
        self.stores = {}  # by name, or None: how many places store it
        self.values = {}  # by name: (module, value, whether one that is there stays)
        self.imports = {}  # by module: the names that it imports in any case
        self.certain = {"__main__"}  # the names that the script does

    def add(self, module, package, tree):
        """`module`: the name; "__main__" for the script. `tree`: from read()."""
        names = [None] if tree is None else stores_of(tree)
        for name in names:
            self.stores[name] = self.stores.get(name, 0) + 1
        statements = [] if tree is None else tree.body
        imports = self.imports.setdefault(module, [])
        if module == "__main__":
            imports.append(package)  # `python -m` imports it
            mains = [part.body if isinstance(part, If) and is_main(part.test) else [part] for part in statements]
            statements = [part for parts in mains for part in parts]
        for statement in statements:
            imports += imported_by(statement, package)
            for name, value, keeps in stored_by(statement):
                self.values[name] = (module, value, keeps)
        if module in self.certain:
            self.reach(imports)

    def reach(self, names):
        """The script imports these in any case, with their parents, and so what they import."""
        names = list(names)
        while names:
            name = names.pop()
            if name and name not in self.certain:
                self.certain.add(name)
                names += [name.rpartition(".")[0], *self.imports.get(name, ())]

    def find(self, name):
        """(value, whether one that is there stays) if the variable is constant."""
        module, value, keeps = self.values.get(name, (None, None, False))
        constant = value is not None and self.stores.get(name) == 1 and None not in self.stores
        return (value, keeps) if constant and module in self.certain else None
