# SPDX-License-Identifier: Apache-2.0
"""Imports for a standby, and watches what the imports do.

An import of a standby comes before the script's first line, and before the variables and streams of the round. One that
depends on these, or does what only the script may do, is the worker's.
"""

import _socket
import os
import sys

import constants  # of the archive

# Variables that C code may read when a library is loaded, by their beginnings: no other place sees these looks. NCCL,
# gloo and the drivers of GPUs read theirs at their first use.
READ_BY_LIBRARIES = (
    *("ATEN_", "CUBLAS_", "CUDNN_", "GOMP_", "KMP_", "LD_", "MALLOC_", "MKL_", "OMP_", "OPENBLAS_", "PYTORCH_", "TF_"),
    *("TORCH_", "XLA_"),
)


class Watcher:
    """Ends the process and tells the agent why, when an import does what only the script may do.

    While it imports, it is a finder that finds nothing, and notes what has been looked for."""

    def __init__(self, socket, names, tools):
        """`names`: variables that this process does not have yet. `tools`: the module sitecustomize."""
        self.socket, self.channel, self.tools = socket, socket.fileno(), tools
        self.module = ""  # that is being imported
        self.folder = None  # that is to stay at the front of sys.path
        self.path = None  # sys.path as a worker's Python has it before it adds `folder`
        self.given = []  # the sys.path that was set last
        self.added = []  # by imports, before that
        self.looked = set()  # names of modules
        self.libraries = None  # that are loaded; None: it does not matter
        self.read_by_libraries = ""  # a variable that the script has changed
        self.watches = True
        self.names = {*names, *map(os.fsencode, names)}
        self.of_script = set()  # variables that it changes, and that are not repeated
        self.repeated = {}  # variables: (value, value before) or, if the script leaves the value that is there, None
        self.constants = constants.Constants()
        self.files = set()  # entries of learner.py for modules of the script's own
        self.own = []  # those that are not read yet: (module, package, path)
        self.stamps = {}  # of those that are read, by path
        self.descriptors = self.list_descriptors()
        self.state = self.list_state()
        self.methods = self.watch_environment()

    def find_spec(self, name, path=None, target=None):
        self.looked.add(name)
        return None

    def begin(self, folder):
        self.path = list(sys.path)
        if not getattr(sys.flags, "safe_path", False):
            self.folder = folder
            sys.path.insert(0, folder)  # as in a worker: it may have a module that hides an installed one
        self.given = list(sys.path)
        if sys.argv[0] != "-m":
            self.set_main(os.path.abspath(sys.argv[0]) if sys.version_info >= (3, 9) else sys.argv[0])
        self.own.append(("__main__", *self.find_script()))

    def find_script(self):
        """The package and the file of what this process will run."""
        if sys.argv[0] != "-m":
            return "", os.path.abspath(sys.argv[0])
        with open("/proc/self/cmdline", "rb") as line:
            words = os.fsdecode(line.read()).split("\0")
        name, spec = self.tools.find_main(words[words.index("-m") + 1]) if "-m" in words else ("", None)
        return name.rpartition(".")[0], getattr(spec, "origin", None) or ""

    @staticmethod
    def set_main(path):
        """Libraries ask for __main__.__file__ to find out whether they are in a script. Python sets it itself later."""
        if path is not None:
            sys.modules["__main__"].__file__ = path
        elif hasattr(sys.modules.get("__main__"), "__file__"):
            del sys.modules["__main__"].__file__

    def follow(self, entry):
        """The script has changed something here (learner.py)."""
        kind, _, value = entry[1:].partition(":")
        if kind == "environ":
            name, _, mark = value.partition("=")
            if not mark or not self.repeat(name, mark):
                self.distrust(name)
        elif kind == "file" and entry not in self.files:
            self.files.add(entry)
            module, _, path = value.partition(":")
            package = module if os.path.basename(path) == "__init__.py" else module.rpartition(".")[0]
            self.own.append((module, package, path))
            if self.repeated:
                self.read_own()
        elif kind == "path" and sys.path != value.split(os.pathsep):  # else an import has done the same here
            self.take_added()
            self.given = value.split(os.pathsep)
            sys.path[:] = self.given + [place for place in self.added if place not in self.given]
            self.folder = sys.path[0]

    def repeat(self, name, mark):
        """Sets a variable as the script does, if its text says that each worker does so. Returns whether it does."""
        if name in self.names or name in self.of_script:
            return False
        self.read_own()
        constant = self.constants.find(name)
        if constant is None or self.tools.mark_of(name, constant[0]) != mark:
            return False
        if name not in self.repeated:
            value, keeps = constant
            before = os.environ.get(name)
            self.repeated[name] = None if keeps and before is not None else (value, before)
            if self.repeated[name]:
                os.environ[name] = value
        return True

    def distrust(self, name):
        """From now on the variable may have another value in a worker than here."""
        self.of_script |= {name, os.fsencode(name)}
        if name.startswith(READ_BY_LIBRARIES):
            self.libraries, self.read_by_libraries = self.list_libraries(), name

    def read_own(self):
        own, self.own = self.own, []
        for module, package, path in own:
            self.stamps.setdefault(path, self.tools.stamp_of(path))
            self.constants.add(module, package, constants.read(path))
        for name in self.repeated:
            if name not in self.of_script and self.constants.find(name) is None:
                self.distrust(name)

    def list_sources(self):
        """The files that say what is repeated, with their stamps."""
        return self.stamps if self.repeated else {}

    def take_added(self):
        """What imports have added to sys.path since it was set."""
        whole = sys.path[: len(self.given)] == self.given
        self.added += sys.path[len(self.given) :] if whole else [place for place in sys.path if place not in self.given]

    def unfit(self, why, ends=False):
        """`ends`: no module that the script imports later can be imported, either."""
        self.tools.send(self.channel, b"E" if ends else b"U", self.module + "\0" + why)
        os._exit(0)

    def watch_environment(self):
        """Calls unfit() when a variable is looked for that this process does not have yet."""
        kind = type(os.environ)

        def watch(method):
            def look(environment, name):
                if self.watches and name in self.names:
                    self.unfit("reads " + os.fsdecode(name))
                if self.watches and name in self.of_script:  # many modules may look for it, one after the other
                    self.unfit("reads %s, after the script has changed it" % os.fsdecode(name), ends=True)
                return method(environment, name)

            return method, look

        methods = {name: watch(getattr(kind, name)) for name in ("__getitem__", "__delitem__")}
        for name, (_, look) in methods.items():
            setattr(kind, name, look)
        return methods

    def end(self):
        self.watches = False  # a module may have kept a method
        for name, (method, look) in self.methods.items():
            if getattr(type(os.environ), name) is look:  # else a module has put its own there
                setattr(type(os.environ), name, method)
        for name, change in self.repeated.items():
            value, before = change or (None, None)
            if change and os.environ.get(name) == value:  # it is the script that sets it
                self.put(name, before)
        self.set_main(None)
        if self.path is not None and self.given[1:] != self.path:
            self.take_added()
            sys.path[:] = self.path + self.added
        elif sys.path[:1] == [self.folder]:
            del sys.path[0]  # Python puts it there itself

    @staticmethod
    def put(name, value):
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value

    @staticmethod
    def list_descriptors():
        found = {}
        for number in os.listdir("/proc/self/fd"):
            try:
                found[number] = os.readlink("/proc/self/fd/" + number)
            except OSError:
                pass  # that of the listing itself
        return found

    @staticmethod
    def list_state():
        with open("/proc/self/status") as status, open("/proc/self/limits") as limits:
            masks = [line.split()[1] for line in status if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]
            signals = [int(mask, 16) & ~(3 << 31) for mask in masks]  # without glibc's own, for threads: 32 and 33
            here = os.stat(".")
            root = getattr(sys.modules.get("logging"), "root", None)
            contexts = getattr(sys.modules.get("multiprocessing.context"), "_default_context", None)
            return {
                "signals": signals,
                "limits": limits.read(),
                "the working directory": (here.st_dev, here.st_ino),
                # What a script does only if no import has done it before, or that it may do before the import.
                "the root logger": (root.level, list(map(id, root.handlers))) if root else (30, []),
                "the start method of multiprocessing": getattr(contexts, "_actual_context", None) is not None,
                "the state of random": getattr(sys.modules.get("random"), "getstate", lambda: None)(),
            }

    @staticmethod
    def list_libraries():
        with open("/proc/self/maps") as maps:
            return {line.split()[-1] for line in maps if ".so" in line and "/lib-dynload/" not in line}

    def check_descriptors(self):
        for number, target in self.list_descriptors().items():
            if self.descriptors.get(number) == target:
                continue
            if target.startswith(("/dev/nvidia", "/dev/kfd", "/dev/dri", "/dev/infiniband", "socket:")):
                self.unfit("opens " + target)
            if target in (self.descriptors.get("1"), self.descriptors.get("2")):
                self.unfit("copies the descriptor of an output")  # the worker has others
            if target.startswith("/") and not target.startswith(("/dev/", "/proc/")) and self.is_written(number):
                self.unfit("opens %s for writing" % target)
            self.descriptors[number] = target

    @staticmethod
    def is_written(number):
        try:
            with open("/proc/self/fdinfo/" + number) as info:
                flags = [line for line in info if line.startswith("flags:")]
        except OSError:
            return False
        return bool(flags) and int(flags[0].split()[1], 8) & os.O_ACCMODE != os.O_RDONLY

    def check(self):
        self.check_descriptors()
        for what, value in self.list_state().items():
            if self.state[what] is None:
                self.state[what] = value  # the module random has come
            if value != self.state[what]:
                self.unfit("changes " + what)
        for name, change in self.repeated.items():
            if change and name not in self.of_script and os.environ.get(name) != change[0]:
                self.unfit("changes %s, which the script has set" % name, ends=True)
        if self.libraries is not None and self.list_libraries() != self.libraries:
            self.unfit("loads a library, after the script has changed " + self.read_by_libraries, ends=True)
        if self.folder is not None and sys.path[:1] != [self.folder]:
            self.unfit("changes the front of sys.path")
        for task in os.listdir("/proc/self/task"):
            try:
                with open("/proc/self/task/%s/children" % task) as children:
                    left = children.read().split()
            except OSError:
                continue
            if left:
                self.unfit("starts a process, %s" % left[0])

    def import_all(self, entries):
        """Imports the modules, but for those that belong to the user. Returns how many were imported."""
        sys.meta_path.insert(0, self)
        own = {}  # by the first part of a name: whether the module is the user's, or is not there
        count = 0
        for name in entries:
            if name.startswith("="):
                self.follow(name)
                if name.startswith("=path:"):
                    own.clear()
                continue
            if name in sys.modules or self.has_failed(name):
                continue
            first = name.partition(".")[0]
            if first not in own:
                spec = self.tools.find_spec(first, but=self)
                own[first] = spec is None or not self.tools.is_foreign(spec)
            if own[first]:
                continue
            self.module = name
            try:
                __import__(name)
            except (Exception, SystemExit) as error:  # a second try, by the script, may find half a module
                self.unfit("raises %s: %s" % (type(error).__name__, error))
            count += 1
            self.check()
            if self.has_question():  # the agent wants to start it: the worker imports the rest
                break
        self.module = ""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        return count

    def has_question(self):
        try:
            return self.socket.recv(1, _socket.MSG_PEEK | _socket.MSG_DONTWAIT) == b"P"
        except BlockingIOError:
            return False

    def has_failed(self, name):
        """Whether an import has looked for the module or a parent of it, and has done without it."""
        while name:
            if name in self.looked and name not in sys.modules:
                return True
            name = name.rpartition(".")[0]
        return False
