"""Muster's part of a worker's Python. It runs before the script and leaves the process as Python alone would.

The agent starts `PYTHON -u script args` with this file, in a zip archive in memory, at the front of PYTHONPATH, so that
the module `site` imports it as sitecustomize. The variable MUSTER_STANDBY has four fields, "MODE:PATH:ARCHIVE:SOCKET":

  learn  this process is a worker. A finder at the front of sys.meta_path sends the name of each imported module that
         lies in the standard library or in site-packages. It finds nothing itself.
  wait   this process is a standby. It imports the modules that the agent names, and waits for its start. When it
         returns from here, Python runs the script as in any other process.

PATH is "set" if there was a PYTHONPATH before. ARCHIVE and SOCKET are descriptors. The messages are those of frames.h.
"""

import os
import sys


def take_settings():
    """Undoes what the agent did to the environment and to sys.path. Returns (mode, number of the socket)."""
    import posix
    import zipimport

    mode, had_path, archive, channel = os.environ.pop("MUSTER_STANDBY").split(":")
    posix.environ.pop(b"MUSTER_STANDBY", None)
    place = "/proc/self/fd/" + archive
    if had_path == "set":
        rest = os.environ["PYTHONPATH"].partition(":")[2]
        os.environ["PYTHONPATH"] = rest
        posix.environ[b"PYTHONPATH"] = os.fsencode(rest)
    else:
        del os.environ["PYTHONPATH"]
        posix.environ.pop(b"PYTHONPATH", None)
    sys.path.remove(place)
    sys.path_importer_cache.pop(place, None)
    zipimport._zip_directory_cache.pop(place, None)
    os.close(int(archive))
    return mode, int(channel)


def customize():
    """Runs the sitecustomize that Python would have found. Returns its ImportError if there is none."""
    del sys.modules["sitecustomize"]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as missing:
        if missing.name != "sitecustomize":
            raise
        return missing
    return None


def is_foreign(spec):
    """Whether a module is the standard library's or an installed package's, and so not the user's own."""
    origin = getattr(spec, "origin", None)
    if origin in ("built-in", "frozen"):
        return True
    places = [origin] if origin else list(getattr(spec, "submodule_search_locations", None) or [])
    library = os.path.dirname(os.__file__) + os.sep
    for place in places:
        parts = str(place).split(os.sep)
        if "site-packages" not in parts and "dist-packages" not in parts and not str(place).startswith(library):
            return False
    return bool(places)


class Learner:
    """A finder that finds nothing. A module that was looked for is sent when it is in sys.modules."""

    def __init__(self, channel):
        self.channel = channel
        self.process = os.getpid()
        self.pending = []

    def find_spec(self, name, path=None, target=None):
        if self.process == os.getpid():
            self.send()
            self.pending.append(name)
        return None

    def send(self):
        pending, self.pending = self.pending, []
        names = []
        for name in pending:
            spec = getattr(sys.modules.get(name), "__spec__", None)
            if spec is not None and is_foreign(spec):
                names.append(name)
        if names:
            try:
                send(self.channel, b"N", "\0".join(names))
            except OSError:
                self.process = -1  # the agent listens no more


def send(channel, letter, text=""):
    body = text.encode("utf-8", "surrogateescape")
    message = letter + len(body).to_bytes(4, "little") + body
    while message:
        message = message[os.write(channel, message) :]


def learn(channel):
    import fcntl

    had = "fcntl" in sys.modules
    far = fcntl.fcntl(channel, fcntl.F_DUPFD_CLOEXEC, 200)  # the script's own descriptors get the usual numbers
    os.close(channel)
    if not had:
        sys.modules.pop("fcntl", None)
    sys.meta_path.insert(0, Learner(far))
    send(far, b"H")


class Unfit(Exception):
    """An import did what only the script may do."""


class Watcher:
    """Tells what an import has left in the process."""

    def __init__(self, channel):
        self.channel = channel
        self.descriptors = self.list_descriptors()
        self.signals = self.list_signals()
        with open("/proc/self/limits") as limits:
            self.limits = limits.read()

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
    def list_signals():
        with open("/proc/self/status") as status:
            return [line for line in status if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]

    def check_descriptors(self, module):
        for number, target in self.list_descriptors().items():
            if self.descriptors.get(number) == target:
                continue
            if target.startswith(("/dev/nvidia", "/dev/kfd", "/dev/dri", "/dev/infiniband", "socket:")):
                raise Unfit("importing %s opens %s" % (module, target))
            if target.startswith("/") and not target.startswith(("/dev/", "/proc/")) and self.is_written(number):
                raise Unfit("importing %s opens %s for writing" % (module, target))
            self.descriptors[number] = target

    @staticmethod
    def is_written(number):
        try:
            with open("/proc/self/fdinfo/" + number) as info:
                flags = [line for line in info if line.startswith("flags:")]
        except OSError:
            return False
        return bool(flags) and int(flags[0].split()[1], 8) & os.O_ACCMODE != os.O_RDONLY

    def check(self, module):
        """Everything. Slower than check_descriptors."""
        self.check_descriptors(module)
        if self.list_signals() != self.signals:
            raise Unfit("importing %s changes signals" % module)
        with open("/proc/self/limits") as limits:
            if limits.read() != self.limits:
                raise Unfit("importing %s changes limits" % module)
        for task in os.listdir("/proc/self/task"):
            try:
                with open("/proc/self/task/%s/children" % task) as children:
                    left = children.read().split()
            except OSError:
                continue
            if left:
                raise Unfit("importing %s starts a process, %s" % (module, left[0]))


def find_spec(name, folders=None):
    for finder in sys.meta_path if folders is None else sys.meta_path[-1:]:
        find = getattr(finder, "find_spec", None)
        spec = find(name, folders) if find else None
        if spec is not None:
            return spec
    return None


def import_all(folder, names, watcher):
    """Imports `names`, but for those that belong to the user. Returns how many were imported."""
    own = {}  # by the first part of a name: whether the module is the user's, or is not there
    count = 0
    for name in names:
        if name in sys.modules:
            continue
        first = name.partition(".")[0]
        if first not in own:
            spec = None if find_spec(first, [folder]) else find_spec(first)
            own[first] = spec is None or not is_foreign(spec)
        if own[first]:
            continue
        try:
            __import__(name)
        except (Exception, SystemExit):
            continue  # the script sees the same error, if it imports this module
        count += 1
        watcher.check_descriptors(name)
    watcher.check(names[0] if len(names) == 1 else "the modules of the script")
    return count


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


def set_environment(block):
    """Makes `block`, of "NAME=VALUE\\0", the whole environment, in its order: Python's and that of C."""
    import posix

    entries = [entry.partition(b"=") for entry in block.split(b"\0") if entry]
    os.environ.clear()
    posix.environ.clear()
    for name, _, value in entries:
        os.environ[os.fsdecode(name)] = os.fsdecode(value)
        posix.environ[name] = value


def take_streams(descriptors):
    """Makes `descriptors` the streams 0, 1 and 2. sys.stdout and sys.stderr stay the same objects.

    They are unbuffered (-u), so that they lie directly on a FileIO. It has noted whether the old file could be sought.
    """
    import _io

    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        raw = _io.FileIO(number, "wb", closefd=False)
        raw.name = stream.name
        mode = stream.mode
        stream.__init__(
            raw,
            encoding=stream.encoding,
            errors=stream.errors,
            newline="\n",
            line_buffering=stream.line_buffering,
            write_through=True,
        )
        stream.mode = mode


def set_oom_score(text):
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write(text)
    except OSError:
        pass


def wait(channel):
    import _socket
    import site

    socket = _socket.socket(fileno=channel)
    with open("/proc/self/oom_score_adj") as score:
        oom_score = score.read()
    set_oom_score("1000")  # the kernel takes a standby first
    if site.ENABLE_USER_SITE:
        site.execusercustomize()  # Python imports it only once
    watcher = Watcher(channel)
    send(channel, b"H")
    while True:
        letter, body, descriptors = take_message(socket)
        if letter == b"I":
            folder, _, names = body.decode("utf-8", "surrogateescape").partition("\0")
            try:
                count = import_all(folder, names.split("\0") if names else [], watcher)
            except Unfit as why:
                send(channel, b"U", str(why))
                os._exit(0)
            send(channel, b"R", str(count))
        elif letter == b"P":
            send(channel, b"P")
        elif letter == b"S":
            break
    socket.close()
    set_oom_score(oom_score)
    set_environment(body)
    take_streams(descriptors)


def begin():
    mode, channel = take_settings()
    missing = customize()
    if mode == "learn":
        learn(channel)
    else:
        wait(channel)
    return missing


absent = begin()
if absent is not None:
    raise absent
