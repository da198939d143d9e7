# SPDX-License-Identifier: Apache-2.0
"""A worker that writes down all that a program can see of its process, and then waits for the test.

It writes a JSON object, name of a fact -> value, to $FACTS_FOLDER/ATTEMPT.json, says hello over the test's socket, and
ends with the exit code that the test sends. It runs as a script or with -m, on every Python from 3.8 on. Values that no
two processes share (pids, addresses) are told as relations. DRAWN are the ones that must differ.
"""

# What a first line sees, before any import.
import sys

FIRST = {
    "names of __main__": list(globals()),
    "sys.modules": list(sys.modules),
    "sys.path_importer_cache": [(k, type(v).__name__) for k, v in sys.path_importer_cache.items()],
    "sys.meta_path": [getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path],
    "sys.path_hooks": [getattr(hook, "__qualname__", repr(type(hook))) for hook in sys.path_hooks],
    "sys.path": list(sys.path),
    "first environment": [f"{name}={value}" for name, value in sys.modules["os"].environ.items()],
    "names of sys": sorted(vars(sys)),
    "depth of frames": 0,
}
frame = sys._getframe()
while frame:
    FIRST["depth of frames"] += 1
    frame = frame.f_back
del frame

import importlib
import os

if "FACTS_IMPORT" in os.environ:
    importlib.import_module(os.environ["FACTS_IMPORT"])

# A standby does this, too, before the imports that follow, and takes it back.
os.environ["FACTS_SET"] = "by the script"
os.environ["TORCHELASTIC_RUN_ID"] = "by the script, too"
os.environ.setdefault("FACTS_FOLDER", "is there")
os.environ.update({"OMP_NUM_THREADS": "2"}, FACTS_MORE="")

import atexit
import builtins
import contextlib
import contextvars
import ctypes
import faulthandler
import gc
import inspect
import json
import linecache
import locale
import logging
import multiprocessing
import pickle
import posix
import random
import re
import resource
import signal
import site
import socket
import stat
import subprocess
import tempfile
import threading
import time
import traceback
import uuid
import warnings
import zipimport

C = ctypes.CDLL(None, use_errno=True)
PRCTL_INTO = {"parent-death signal": 2, "child subreaper": 37}  # options of prctl(2) that fill an int
PRCTL = {"dumpable": 3, "keep capabilities": 7, "timer slack": 30, "no new privileges": 39, "huge pages off": 42}
STATUS = re.compile(
    r"^(Name|Umask|Uid|Gid|Groups|SigQ|Sig(?:Blk|Ign|Cgt)|Shd?Pnd|Cap\w+|NoNewPrivs|Seccomp\w*|Threads|"
    r"Speculation\w+|Cpus_allowed|Mems_allowed|CoreDumping|THP_enabled|TracerPid):[ \t]*(.*)$",
    re.MULTILINE,
)


class OfMain:
    """Its pickle names __main__."""


def a_function():
    """Its text is a fact."""
    raise LookupError("in a function")


def read(path, binary=False):
    try:
        with open(path, "rb" if binary else "r") as file:
            return repr(file.read()) if binary else file.read()
    except OSError as error:
        return f"{type(error).__name__} {error.errno}"


def outcome(call, *arguments):
    """What a call gives, as text: its value or its exception."""
    try:
        return repr(call(*arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def list_descriptors():
    """Number -> (kind or file, flags as fcntl(2) has them). Sockets, pipes and memory have no name."""
    found = {}
    for number in sorted(map(int, os.listdir("/proc/self/fd"))):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
            flags = re.search(r"flags:\s*(\w+)", read(f"/proc/self/fdinfo/{number}")).group(1)
            kind = oct(stat.S_IFMT(os.fstat(number).st_mode))
        except OSError:
            continue  # that of the listing itself
        found[str(number)] = [re.sub(r":?\[\d+\]", "", target), kind, flags]
    return found


def c_environment():
    entries = ctypes.POINTER(ctypes.c_char_p).in_dll(C, "environ")
    found = []
    while entries[len(found)] is not None:
        found.append(os.fsdecode(entries[len(found)]))
    return found


def type_of(thing):
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def written_to(number, call):
    """What `call` writes to descriptor `number`."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(number)
        os.dup2(file.fileno(), number)
        try:
            result = outcome(call)
        finally:
            os.dup2(kept, number)
            os.close(kept)
        file.seek(0)
        written = file.read()
    for encoding in ("ascii", "utf-16-le"):
        written = written.replace(os.environ["FACTS_FOLDER"].encode(encoding), b"FOLDER")
    return [result, repr(written)]


def stream_facts(stream, name):
    facts = {"type": type_of(stream), "repr": repr(stream), "is the original": stream is getattr(sys, f"__{name}__")}
    facts["attributes"] = sorted(vars(stream).items())
    layers = {"text": stream, "buffer": stream.buffer}
    if hasattr(stream.buffer, "raw"):
        layers["raw"] = stream.buffer.raw
    for layer, file in layers.items():
        facts[layer] = {
            field: outcome(lambda: getattr(file, field))
            for field in (
                *("encoding", "errors", "line_buffering", "write_through", "newlines", "mode", "name", "closed"),
                *("closefd", "_CHUNK_SIZE", "_blksize", "_finalizing"),
            )
        }
        facts[layer]["type"] = type_of(file)
        for method in ("fileno", "isatty", "seekable", "readable", "writable"):
            facts[layer][method] = outcome(getattr(file, method))
    return facts


def facts_of_python():
    yield "sys.argv", sys.argv
    for name in dir(sys.flags):
        if not name.startswith(("_", "n_")) and not callable(getattr(sys.flags, name)):
            yield f"sys.flags.{name}", getattr(sys.flags, name)
    for name in (
        *("orig_argv", "executable", "_base_executable", "prefix", "base_prefix", "exec_prefix", "base_exec_prefix"),
        *("platlibdir", "_stdlib_dir", "_xoptions", "warnoptions", "dont_write_bytecode", "pycache_prefix"),
        *("implementation", "thread_info", "hash_info", "version", "tracebacklimit", "last_value", "last_type"),
    ):
        yield f"sys.{name}", repr(getattr(sys, name, "absent"))
    for name in (
        *("getrecursionlimit", "getswitchinterval", "getfilesystemencoding", "getfilesystemencodeerrors"),
        *("getdefaultencoding", "gettrace", "getprofile", "getdlopenflags", "get_asyncgen_hooks", "exc_info"),
        *("get_coroutine_origin_tracking_depth", "get_int_max_str_digits", "is_stack_trampoline_active"),
    ):
        yield f"sys.{name}()", repr(getattr(sys, name)()) if hasattr(sys, name) else "absent"
    for name in ("excepthook", "displayhook", "unraisablehook", "breakpointhook"):
        yield f"sys.{name} is the original", getattr(sys, name) is getattr(sys, f"__{name}__")
    yield "names of builtins", sorted(vars(builtins))
    yield "builtins.__import__", repr(builtins.__import__)
    yield "gc", [gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.get_freeze_count(), len(gc.callbacks)]
    yield "faulthandler", faulthandler.is_enabled()
    yield "warnings.filters", [str(entry) for entry in warnings.filters]
    yield "context variables", len(contextvars.copy_context())
    yield "zip archives", sorted(zipimport._zip_directory_cache)
    yield "files of linecache", sorted(linecache.cache)
    yield "logging", [logging.root.level, len(logging.root.handlers), logging.lastResort.level]
    yield "threads", [(thread.name, thread.daemon) for thread in threading.enumerate()]
    yield "the main thread", threading.main_thread().ident == threading.get_ident()
    yield "locale", [locale.setlocale(n) for n in range(6)] + [locale.getpreferredencoding(False)]
    yield "time zone", [time.tzname, time.timezone, time.daylight]
    if os.environ.get("PYTHONHASHSEED", "random") != "random":
        yield "hash of a text", hash("a text")


def facts_of_site():
    yield "site.ENABLE_USER_SITE", site.ENABLE_USER_SITE
    yield "site.getsitepackages", site.getsitepackages()
    yield "site's user folders", [site.USER_BASE, site.USER_SITE, site.PREFIXES]
    for name in ("sitecustomize", "usercustomize"):
        module = sys.modules.get(name)
        yield (
            name,
            module and [module.__file__, repr(module.__spec__), getattr(module, "RUNS", None), sorted(vars(module))],
        )
    yield "module `site`", sorted(vars(site))
    name = "made_by_attempt_" + os.environ["TORCHELASTIC_RESTART_COUNT"]
    with open(os.path.join(os.environ["FACTS_FOLDER"], name + ".py"), "w") as file:
        file.write("VALUE = 'of a new module'\n")
    importlib.invalidate_caches()
    yield "a new module", re.sub(name, "NAME", outcome(lambda: importlib.import_module(name).VALUE))


def facts_of_main():
    main = sys.modules["__main__"]
    for name in ("__name__", "__file__", "__package__", "__doc__", "__cached__", "__annotations__", "__path__"):
        yield f"__main__.{name}", str(getattr(main, name, "absent"))
    yield "__main__.__spec__", repr(main.__spec__).split(", loader")[0]
    yield "__main__.__loader__", type_of(main.__loader__)
    yield "__main__.__builtins__", type_of(main.__builtins__)
    yield "__main__ is this module", vars(main) is globals()
    yield "pickle of a class of __main__", repr(pickle.dumps(OfMain(), 4))
    yield "pickle is read", type(pickle.loads(pickle.dumps(OfMain(), 4))) is OfMain
    yield "inspect.getsource", inspect.getsource(a_function)
    yield "inspect.stack", [entry[1:4] for entry in inspect.stack()]
    yield "traceback of a module", MODULE_TRACEBACK
    yield "traceback of a function", FUNCTION_TRACEBACK
    yield "an error that nobody catches", UNCAUGHT
    yield "a warning", WARNING


def facts_of_streams():
    for name in ("stdin", "stdout", "stderr"):
        yield f"sys.{name}", stream_facts(getattr(sys, name), name)
    yield "print", written_to(1, lambda: print("a text é \u20ac \udc80\r\nand a line"))
    yield "print to stderr", written_to(2, lambda: print("a text é \u20ac \udc80\r\nand a line", file=sys.stderr))
    yield "a part of a line is written", written_to(1, lambda: sys.stdout.write("part"))
    yield "bytes are written", written_to(1, lambda: sys.stdout.buffer.write(b"\xff\x00"))
    yield "1 and 2 are the same file", os.path.samestat(os.fstat(1), os.fstat(2))
    yield "blocking", [os.get_blocking(number) for number in range(3)]
    yield "stdin is read", outcome(sys.stdin.read)


def facts_of_process():
    for number in range(1, signal.NSIG):
        yield f"signal {number}", outcome(signal.getsignal, number)
    yield "signal mask", repr(signal.pthread_sigmask(signal.SIG_BLOCK, []))
    yield "wakeup descriptor", signal.set_wakeup_fd(-1)
    yield "timers", [signal.getitimer(n) for n in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)]
    for name, value in STATUS.findall(read("/proc/self/status")):
        yield f"status {name}", value if name != "SigQ" else value.split("/")[1]
    for name in sorted(dir(resource)):
        if name.startswith("RLIMIT_"):
            yield name, resource.getrlimit(getattr(resource, name))
    umask = os.umask(0o77)
    os.umask(umask)
    yield "umask", umask
    yield "working directory", os.getcwd()
    for name in ("cmdline", "comm", "oom_score_adj", "cgroup", "coredump_filter", "timerslack_ns", "personality"):
        yield f"/proc/self/{name}", read(f"/proc/self/{name}", binary=True)
    yield "/proc/self/environ", read("/proc/self/environ", binary=True)
    for name in ("exe", "root", *("ns/" + name for name in sorted(os.listdir("/proc/self/ns")))):
        yield f"/proc/self/{name}", os.readlink(f"/proc/self/{name}")
    yield "memory of Muster's is mapped", "muster-standby" in read("/proc/self/maps")
    yield "CPUs", sorted(os.sched_getaffinity(0))
    yield "scheduler", [os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)]
    yield "own group and session", [os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid()]
    yield "terminal", outcome(os.open, "/dev/tty", os.O_RDONLY)
    yield "parent", read(f"/proc/{os.getppid()}/comm")
    yield "parent's pid", os.getppid()
    for name, option in PRCTL_INTO.items():
        value = ctypes.c_int(-1)
        yield name, [C.prctl(option, ctypes.byref(value), 0, 0, 0), value.value]
    for name, option in PRCTL.items():
        yield name, C.prctl(option, 0, 0, 0, 0)


def facts_of_environment():
    yield "os.environ", [f"{name}={value}" for name, value in os.environ.items()]
    yield "os.environb", [os.fsdecode(name + b"=" + value) for name, value in os.environb.items()]
    yield "posix.environ", [os.fsdecode(name + b"=" + value) for name, value in posix.environ.items()]
    yield "C's environ", c_environment()
    C.getenv.restype = ctypes.c_char_p
    wrong = [name for name, value in os.environb.items() if C.getenv(name) != value]
    yield "C's getenv gives other values", [os.fsdecode(name) for name in wrong]
    os.environ["ONE_MORE"] = "1"
    yield "a changed variable, for C", os.fsdecode(C.getenv(b"ONE_MORE"))
    del os.environ["ONE_MORE"]
    yield "environment of a command", subprocess.run(["env"], stdout=subprocess.PIPE).stdout.decode().splitlines()


def what_a_child_sees(into=None):
    main = sys.modules["__main__"]
    facts = {
        "sys.argv": sys.argv,
        "sys.path": sys.path,
        "sys.flags": str(sys.flags),
        "sys.orig_argv": repr(getattr(sys, "orig_argv", [])[:2]),
        "sys.meta_path": [getattr(finder, "__name__", type(finder).__name__) for finder in sys.meta_path],
        "environment": [f"{name}={value}" for name, value in os.environ.items()],
        "__main__": [main.__name__, getattr(main, "__file__", None), "__mp_main__" in sys.modules],
        "working directory": os.getcwd(),
        "oom_score_adj": read("/proc/self/oom_score_adj"),
        "status": dict(STATUS.findall(read("/proc/self/status"))),
        "sitecustomize": getattr(sys.modules.get("sitecustomize"), "__file__", None),
    }
    facts["status"].pop("SigQ", None)
    if into is None:
        return facts
    into.send(facts)
    into.close()


def facts_of_children():
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=what_a_child_sees, args=(theirs,))
        child.start()
        theirs.close()
        yield f"a child of {method}", ours.recv()
        child.join()
        yield f"exit code of a child of {method}", child.exitcode
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(theirs, json.dumps({**what_a_child_sees(), "descriptors": list_descriptors()}).encode())
        os._exit(0)
    os.close(theirs)
    with open(ours, "rb") as answer:
        yield "a child of os.fork", json.loads(answer.read())
    os.waitpid(child, 0)
    code = "import os, json, sys; print(json.dumps([sys.argv, sys.path, list(os.environ), list(sys.modules)]))"
    yield "another Python", json.loads(subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE).stdout)
    listing = subprocess.run(["ls", "/proc/self/fd"], stdout=subprocess.PIPE, close_fds=False)
    yield "descriptors that a command inherits", listing.stdout.decode().split()


def collect():
    facts = dict(FIRST)
    for group in (
        *(facts_of_python, facts_of_site, facts_of_main, facts_of_process, facts_of_streams),
        *(facts_of_environment, facts_of_children),
    ):
        facts.update(group())
    facts["functions at the end"] = atexit._ncallbacks()  # of all modules that the facts have needed
    return facts


def main():
    facts = collect()
    facts["DRAWN"] = [random.random(), str(uuid.uuid4()), hash("a text"), next(tempfile._get_candidate_names())]
    path = os.path.join(os.environ["FACTS_FOLDER"], os.environ["TORCHELASTIC_RESTART_COUNT"] + ".json")
    with open(path, "w") as file:
        json.dump(facts, file)
    link = socket.socket(socket.AF_UNIX)
    link.connect(os.environ["MUSTER_TEST_SOCKET"])
    link.sendall((json.dumps(dict(what="hello", pid=os.getpid(), env=dict(os.environ))) + "\n").encode())
    sys.exit(int(link.makefile().readline()))


if __name__ == "__main__":
    FIRST["descriptors"] = list_descriptors()
    try:
        raise KeyError("in a module")
    except KeyError:
        MODULE_TRACEBACK = traceback.format_exc()
        UNCAUGHT = written_to(2, lambda: sys.excepthook(*sys.exc_info()))
    with contextlib.suppress(LookupError):
        try:
            a_function()
        finally:
            FUNCTION_TRACEBACK = traceback.format_exc()
    WARNING = written_to(
        2, lambda: [warnings.warn("of this module", kind, stacklevel=1) for kind in (DeprecationWarning, ImportWarning)]
    )
    main()
