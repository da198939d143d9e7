"""Muster's part of a worker's Python. It runs before the script and leaves the process as Python alone would.

The agent starts `PYTHON -u script args` with this file, in a zip archive in memory, at the front of PYTHONPATH, so that
the module `site` imports it as sitecustomize. The variable MUSTER_STANDBY has five fields, "MODE:PATH:ARCHIVE:SOCKET:
NAMES":

  learn  this process is a worker. A finder at the front of sys.meta_path sends the name of each imported module that
         lies in the standard library or in site-packages. It finds nothing itself.
  wait   this process is a standby. It imports the modules that the agent names, and waits for its start. When it
         returns from here, Python runs the script as in any other process. It must not return before: an error ends it.
  probe  this process has no script. It answers as probe.py says, and ends.

PATH is "set" if there was a PYTHONPATH before. ARCHIVE and SOCKET are descriptors. NAMES, joined by commas, are the
variables that come with the start. The messages are those of frames.h.
"""

import os
import sys


def take_settings():
    """Undoes what the agent did to the environment, to sys.path and to the descriptors.

    Returns (number of the socket, NAMES)."""
    import zipimport

    _, had_path, archive, channel, names = os.environ.pop("MUSTER_STANDBY").split(":")
    place = "/proc/self/fd/" + archive
    if had_path == "set":
        os.environ["PYTHONPATH"] = os.environ["PYTHONPATH"].partition(":")[2]
    else:
        del os.environ["PYTHONPATH"]
    sys.path.remove(place)
    sys.path_importer_cache.pop(place, None)
    zipimport._zip_directory_cache.pop(place, None)
    os.close(int(archive))
    return move_away(int(channel)), names.split(",")


def move_away(channel):
    """The script's own descriptors, and those of modules, get the usual numbers. Processes do not inherit this one."""
    had = "fcntl" in sys.modules
    import fcntl

    try:
        far = fcntl.fcntl(channel, fcntl.F_DUPFD_CLOEXEC, 200)
    except OSError:  # the limit of descriptors is lower
        far = fcntl.fcntl(channel, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(channel)
    if not had:
        del sys.modules["fcntl"]
    return far


def customize():
    """Runs the sitecustomize that Python would have found. Returns its error, an ImportError if there is none."""
    del sys.modules["sitecustomize"]
    try:
        import sitecustomize  # noqa: F401
    except Exception as error:
        return error
    return None


def spec_of(name):
    """The spec of an imported module. No attribute of the module is looked for: it may be one that loads when used."""
    try:
        return object.__getattribute__(sys.modules.get(name), "__dict__").get("__spec__")
    except AttributeError:
        return None


def is_foreign_place(place):
    parts = str(place).split(os.sep)
    library = os.path.dirname(os.__file__)
    return "site-packages" in parts or "dist-packages" in parts or (str(place) + os.sep).startswith(library + os.sep)


def is_foreign(spec):
    """Whether a module is the standard library's or an installed package's, and so not the user's own."""
    origin = getattr(spec, "origin", None)
    if origin in ("built-in", "frozen"):
        return True
    places = [origin] if origin else list(getattr(spec, "submodule_search_locations", None) or [])
    return bool(places) and all(map(is_foreign_place, places))


class Learner:
    """A finder that finds nothing. A module that was looked for is sent when it is in sys.modules."""

    def __init__(self, channel):
        self.channel = channel
        self.socket = os.fstat(channel)
        self.process = os.getpid()
        self.pending = []

    def find_spec(self, name, path=None, target=None):
        if self.process == os.getpid():
            self.send()
            self.pending.append(name)
        return None

    def send(self):
        """In the order of the look-ups: what a module does before it imports another may matter to that."""
        pending, self.pending = self.pending, []
        names = []
        for name in pending:
            spec = spec_of(name)
            if spec is not None and is_foreign(spec):
                names.append(name)
        if names:
            try:
                if os.path.samestat(self.socket, os.fstat(self.channel)):  # the script has not closed it
                    return send(self.channel, b"N", "\0".join(names))
            except OSError:
                pass  # the agent listens no more
            self.process = -1


def send(channel, letter, text=""):
    body = text.encode("utf-8", "surrogateescape")
    message = letter + len(body).to_bytes(4, "little") + body
    while message:
        message = message[os.write(channel, message) :]


def learn(channel):
    sys.meta_path.insert(0, Learner(channel))
    send(channel, b"H", str(os.getpid()))


class Watcher:
    """Ends the process and tells the agent why, when an import does what only the script may do."""

    def __init__(self, channel, names):
        self.channel = channel
        self.module = ""  # that is being imported
        self.folder = None  # that is to stay at the front of sys.path
        self.descriptors = self.list_descriptors()
        self.state = self.list_state()
        self.methods = self.watch_environment({*names, *map(os.fsencode, names)})

    def unfit(self, why):
        send(self.channel, b"U", self.module + "\0" + why)
        os._exit(0)

    def watch_environment(self, names):
        """Calls unfit() when a variable of `names`, which this process does not have yet, is looked for."""
        kind = type(os.environ)
        methods = {method: getattr(kind, method) for method in ("__getitem__", "__delitem__")}

        def watched(method):
            def look(environment, name):
                if name in names:
                    self.unfit("reads " + os.fsdecode(name))
                return method(environment, name)

            return look

        for name, method in methods.items():
            setattr(kind, name, watched(method))
        return methods

    def end(self):
        for name, method in self.methods.items():
            setattr(type(os.environ), name, method)
        if sys.path[:1] == [self.folder]:
            del sys.path[0]  # Python puts it there itself

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
            return {
                "signals": signals,
                "limits": limits.read(),
                "the working directory": (here.st_dev, here.st_ino),
            }

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
            if value != self.state[what]:
                self.unfit("changes " + what)
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


def find_spec(name):
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(name, None) if find else None
        if spec is not None:
            return spec
    return None


def import_all(names, watcher):
    """Imports `names`, but for those that belong to the user. Returns how many were imported."""
    own = {}  # by the first part of a name: whether the module is the user's, or is not there
    count = 0
    for name in names:
        if name in sys.modules:
            continue
        first = name.partition(".")[0]
        if first not in own:
            spec = find_spec(first)
            own[first] = spec is None or not is_foreign(spec)
        if own[first]:
            continue
        watcher.module = name
        try:
            __import__(name)
        except (Exception, SystemExit) as error:  # a second try, by the script, may find half a module
            watcher.unfit("raises %s: %s" % (type(error).__name__, error))
        count += 1
        watcher.check()
    watcher.module = ""
    return count


def stamp_of(path):
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def list_files():
    """The files of all modules, with stamps that change with them, and where the first part of each name was found."""
    files, origins = {}, {}
    for name in list(sys.modules):
        spec = spec_of(name)
        if not getattr(spec, "has_location", False):
            continue
        path = getattr(spec.loader, "archive", spec.origin)
        files[path] = stamp_of(path)
        if "." not in name and spec.origin == getattr(find_spec(name), "origin", None):
            origins[name] = spec.origin
    return files, origins


def find_change(files, origins):
    """What the imports of a cold start would find changed; None if they would find the same."""
    for path, stamp in files.items():
        if stamp_of(path) != stamp:
            return path + " has changed"
    for name, origin in origins.items():
        if getattr(find_spec(name), "origin", None) != origin:
            return "%s is no longer that of %s" % (name, origin)
    return None


def receive(socket, size):
    received = b""
    while len(received) < size:
        piece = socket.recv(size - len(received))
        if not piece:
            os._exit(0)  # the agent has ended
        received += piece
    return received


def take_message(socket):
    """Returns (letter, body, descriptors). The descriptors come with the first byte."""
    import _socket

    letter, attached, _, _ = socket.recvmsg(1, _socket.CMSG_SPACE(4 * 3))
    if not letter:
        os._exit(0)
    descriptors = []
    for level, kind, data in attached:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            descriptors += [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data) - 3, 4)]
    size = int.from_bytes(receive(socket, 4), "little")
    return letter, receive(socket, size), descriptors


def split_environment(block):
    """A dict in the order of `block`, of "NAME=VALUE\0"."""
    entries = [os.fsdecode(entry).partition("=") for entry in block.split(b"\0") if b"=" in entry]
    return {name: value for name, _, value in entries}


def set_environment(given):
    """Makes `given` the environment, in its order, for Python and for C, and keeps what this process has changed.

    Python itself, sitecustomize and modules do that. A variable that only the start has brought is as it says.
    """
    with open("/proc/self/environ", "rb") as environ:
        before = split_environment(environ.read())
    now = dict(os.environ)
    os.environ.clear()
    for name in before:
        if name not in now:
            given.pop(name, None)
    for name, value in now.items():
        if before.get(name) != value and (name in before or name not in given):
            given[name] = value
    for name, value in given.items():
        try:
            os.environ[name] = value
        except (OSError, ValueError):
            pass  # a name that C cannot have


def take_streams(descriptors, streams):
    """Makes `descriptors` the streams 0, 1 and 2. `streams`, sys.stdout and sys.stderr, stay the same objects.

    They are unbuffered (-u), so that they lie directly on a FileIO. It has noted whether the old file could be sought.
    """
    import _io

    for number, descriptor in enumerate(descriptors):
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
    for number, stream in streams.items():
        try:
            mode = stream.mode
            raw = _io.FileIO(number, "wb", closefd=False)
            raw.name = stream.name
            stream.__init__(
                raw,
                encoding=stream.encoding,
                errors=stream.errors,
                newline="\n",
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            stream.mode = mode
        except (AttributeError, ValueError):
            pass  # an import has detached or closed it


def set_oom_score(text):
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write(text)
    except OSError:
        pass


def wait(channel, names):
    """Returns when the process is to be the worker: customize()'s error."""
    import _socket
    import site

    socket = _socket.socket(fileno=channel)
    with open("/proc/self/oom_score_adj") as score:
        oom_score = score.read()
    set_oom_score("1000")  # the kernel takes a standby first
    streams = {1: sys.stdout, 2: sys.stderr}
    watcher = Watcher(channel, names)
    error = customize()
    if site.ENABLE_USER_SITE:
        site.execusercustomize()  # Python imports it only once
    watcher.check_descriptors()
    watcher.state = watcher.list_state()  # what these two change is so in a cold start, too
    send(channel, b"H", str(os.getpid()))
    files, origins = {}, {}
    while True:
        letter, body, descriptors = take_message(socket)
        if letter == b"I":
            folder, _, text = body.partition(b"\0")
            if watcher.folder is None and not getattr(sys.flags, "safe_path", False):
                watcher.folder = os.fsdecode(folder)
                sys.path.insert(0, watcher.folder)  # as in a worker: it may have a module that hides an installed one
            count = import_all(text.decode("utf-8", "replace").split("\0") if text else [], watcher)
            files, origins = list_files()
            send(channel, b"R", str(count))
        elif letter == b"P":
            send(channel, b"P", find_change(files, origins) or "")
        elif letter in (b"S", b"T"):
            break
    watcher.end()
    socket.detach()
    if letter == b"T":
        learn(channel)
    else:
        os.close(channel)
    set_oom_score(oom_score)
    set_environment(split_environment(body))
    take_streams(descriptors, streams)
    return error


def answer_probe():
    try:
        import probe  # of the archive, before its path is taken away

        channel, _ = take_settings()
        probe.run(channel, sys.modules["sitecustomize"])
    finally:
        os._exit(0)


def begin():
    mode = os.environ["MUSTER_STANDBY"].partition(":")[0]
    if mode == "probe":
        answer_probe()
    waits = mode == "wait"
    try:
        channel, names = take_settings()
        if waits:
            return wait(channel, names)
        learn(channel)
    except BaseException:
        if waits:
            os._exit(1)  # else Python would run the script now
        raise
    return customize()


failed = begin()
if failed is not None:
    raise failed
