# SPDX-License-Identifier: Apache-2.0
"""Muster's part of a worker's Python. It runs before the script and leaves the process as Python alone would.

The agent starts `PYTHON -u script args` with this file, in a zip archive in memory, at the front of PYTHONPATH, so that
the module `site` imports it as sitecustomize. The variable MUSTER_STANDBY has five fields, "MODE:PATH:ARCHIVE:SOCKET:
NAMES":

  learn  this process is a worker. A finder at the front of sys.meta_path sends the names of imported modules
         (learner.py).
  wait   this process is a standby. It imports the modules that the agent names, and waits for its start. When it
         returns from here, Python runs the script as in any other process. It must not return before: an error ends it.
         What an import does is watched (watcher.py).
  probe  this process has no script. It answers as probe.py says, and ends.

PATH is "set" if there was a PYTHONPATH before. ARCHIVE and SOCKET are descriptors. NAMES, joined by commas, are the
variables that come with the start. The messages are those of frames.h.
"""

import os
import sys

LONGEST_ENTRY = 512  # bytes
MARKS = int.from_bytes(b"muster", "little")  # the key of mark_of()


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

    duplicate = 1030  # F_DUPFD_CLOEXEC, which PyPy does not name
    try:
        far = fcntl.fcntl(channel, duplicate, 200)
    except OSError:  # the limit of descriptors is lower
        far = fcntl.fcntl(channel, duplicate, 3)
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


def send(channel, letter, text=""):
    body = text.encode("utf-8", "surrogateescape")
    message = letter + len(body).to_bytes(4, "little") + body
    while message:
        message = message[os.write(channel, message) :]


def find_spec(name, but=None):
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None) if finder is not but else None
        spec = find(name, None) if find else None
        if spec is not None:
            return spec
    return None


def find_without_import(name):
    """The spec of a module. None: there is none. Its parents are not imported."""
    from _frozen_importlib_external import PathFinder

    parts = name.split(".")
    spec = find_spec(parts[0])
    for end in range(2, len(parts) + 1):
        places = getattr(spec, "submodule_search_locations", None)
        if places is None:
            return None
        spec = PathFinder.find_spec(".".join(parts[:end]), list(places))
    return spec


def find_main(name):
    """The name and the spec of what `python -m NAME` runs."""
    spec = find_without_import(name)
    if getattr(spec, "submodule_search_locations", None) is not None:
        name += ".__main__"
        spec = find_without_import(name)
    return name, spec


def is_plain(entry):
    """Whether the agent takes this entry of a list (learner.py)."""
    size = len(entry.encode("utf-8", "surrogateescape"))
    return size <= LONGEST_ENTRY and all(" " <= c != "\x7f" for c in entry)


def mark_of(name, value):
    """Eight bytes that differ where the value of a variable does. The value may be secret, and stays where it is."""
    import _imp

    return _imp.source_hash(MARKS, os.fsencode(name) + b"=" + os.fsencode(value)).hex()


def variable_entry(name, value):
    """The entry of a variable that the script sets to `value`. None: it removes it."""
    entry = "=environ:" + name + ("" if value is None else "=" + mark_of(name, value))
    return entry if is_plain(entry) else "=end:os.environ"


def file_entries(name, spec):
    """A list with the entry of a module of the script's own. Empty: it is a folder, or an importer has made it."""
    origin = getattr(spec, "origin", None)
    entry = "=file:%s:%s" % (name, origin)
    return [] if origin is None else [entry if is_plain(entry) else "=file:"]


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


def wait(channel, names, learner, watcher):
    """Returns when the process is to be the worker: customize()'s error."""
    import _socket
    import site

    socket = _socket.socket(fileno=channel)
    with open("/proc/self/oom_score_adj") as score:
        oom_score = score.read()
    set_oom_score("1000")  # the kernel takes a standby first
    streams = {1: sys.stdout, 2: sys.stderr}
    tools = sys.modules["sitecustomize"]
    watcher = watcher.Watcher(socket, names, tools)
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
            if watcher.path is None:
                watcher.begin(os.fsdecode(folder))
            count = watcher.import_all(text.decode("utf-8", "surrogateescape").split("\0") if text else [])
            files, origins = list_files()
            files.update(watcher.list_sources())
            send(channel, b"R", str(count))
        elif letter == b"P":
            send(channel, b"P", find_change(files, origins) or "")
        elif letter in (b"S", b"T"):
            break
    watcher.end()
    socket.detach()
    set_oom_score(oom_score)
    set_environment(split_environment(body))
    take_streams(descriptors, streams)
    if letter == b"T":
        sys.meta_path.insert(0, learner.Learner(channel, tools))
    else:
        os.close(channel)
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
        import learner  # of the archive, before its path is taken away

        del sys.modules["learner"]
        if waits:
            import watcher  # and constants

            del sys.modules["watcher"], sys.modules["constants"]
        channel, names = take_settings()
        if waits:
            return wait(channel, names, learner, watcher)
    except BaseException:
        if waits:
            os._exit(1)  # else Python would run the script now
        raise
    send(channel, b"H", str(os.getpid()))
    tools = sys.modules["sitecustomize"]
    error = customize()
    sys.meta_path.insert(0, learner.Learner(channel, tools))
    return error


failed = begin()
if failed is not None:
    sys.modules.setdefault("sitecustomize", None)  # what imports this removes it: PyPy takes it for granted
    raise failed
