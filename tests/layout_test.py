# SPDX-License-Identifier: Apache-2.0
"""Which room may include which, read from the #include lines; no sleep in tests; every test is run and has a label.

base < {usage, net, http, launcher}; net < rendezvous; {rendezvous, launcher} < rsh < agent;
usage < {agent, initializers, controller, local}; http < {initializers, controller};
{launcher, parts of controller} < local; the agent uses only those parts of http that the static binary can link
(a < b: files of b may include files of a)
"""

import ast
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

import class_runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {".h", ".cc", ".cpp", ".hpp"}

# A room and the other rooms that it may include.
ALLOWED = {
    "base": set(),
    "usage": {"base"},
    "net": {"base"},
    "http": {"base"},
    "launcher": {"base"},
    "rendezvous": {"base", "net"},
    "rsh": {"base", "net", "rendezvous", "launcher"},
    "agent": {"base", "usage", "net", "http", "rendezvous", "launcher", "rsh"},
    "initializers": {"base", "usage", "http"},
    "controller": {"base", "usage", "http"},
    "local": {"base", "usage", "launcher", "controller"},  # of controller: PARTS
    "packaging": set(),
}
# A room and the parts of another room to which it is limited.
PARTS = {
    ("local", "controller"): (
        "controller/api/",
        "controller/plan/",
        "controller/reconcile/",
        "controller/admission/",
        "controller/command_line.h",
        "controller/input_file.h",
    )
}
# Folders inside a folder: each may include those before it. ".": the files beside the folders; if it is not named, they
# may include all.
INSIDE = {
    "controller": ["api", "plan", "reconcile", "admission", "kube"],
    "controller/kube": ["client", "jobs", "webhook"],
    "agent": ["workers", "standby", "flags", "report", "watch", "page", "probe", ".", "commands"],
    "initializers": ["facts", "disk", "target", "stores", "aws", "google", "transfer", "archives"],
    "local": ["image", "pod", "network", "state", "container", "cluster"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
CPP_SLEEPS = re.compile(r"\bsleep_(?:for|until)\b")
SLEEPS = re.compile(r"\bsleep_for\b|\bsleep_until\b|\b(?:u|nano)?sleep\s*\(\s*\d|\btime\.sleep\(")
# The wall clock can be set and then jumps. Deadlines use the monotonic clock only. A decision about times that other
# machines read gets `now` from one of WALL_CLOCK_READERS.
WALL_CLOCK_READERS = {
    "base/clock.h",
    "http/cloud_clock.h",
    "controller/kube/jobs/agent_asks.cc",
    "controller/kube/jobs/job_controller.h",
    "controller/kube/jobs/leader.cc",
    "controller/kube/webhook/own_certificates.cc",
    "controller/kube/jobs/passes.cc",
    "controller/kube/webhook/webhooks.cc",
    "local/container/pod_run.cc",
    "local/inputs.cc",
    "local/ps_command.cc",
    "local/run.cc",
    "local/session.cc",
}
WALL_CLOCK = re.compile(
    r"\bsystem_clock\b|\bhigh_resolution_clock\b|\bgettimeofday\b|\bCLOCK_REALTIME\b|\bCLOCK_TAI\b|"
    r"\bTFD_TIMER_CANCEL_ON_SET\b|\btime\((?:nullptr|NULL|0)\)|\babsl::Now\b|\bpthread_cond_timedwait\b|"
    r"\bfile_clock\b|\bdeadline_timer\b|\bsystem_timer\b|\bUnixMillis\(\)|\bWallNow\(\)"
)
WALL_CLOCK_FOR_PEOPLE = re.compile(
    # Records, the log.
    r'unix_ms = UnixMillis\(\);|unix_millis = UnixMillis\(\);|record\["time_ms"\] = UnixMillis\(\);|'
    # A unique name, which nothing parses.
    r'"muster-\{\}-\{\}", getpid\(\), UnixMillis\(\)|'
    # gRPC's way to say "at once".
    r"->Shutdown\(std::chrono::system_clock::now\(\)\)"
)


def wall_clock_lines(path, source):
    """Lines of `source` that read the wall clock, except for records that people read."""
    if path in WALL_CLOCK_READERS:
        return []
    return [
        line.strip()
        for line in source.splitlines()
        if WALL_CLOCK.search(line.split("//")[0]) and not WALL_CLOCK_FOR_PEOPLE.search(line)
    ]


def tracked(*folders):
    listed = subprocess.run(["git", "ls-files", "--", *folders], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0:
        return [pathlib.Path(line) for line in listed.stdout.splitlines() if (ROOT / line).is_file()]
    return [p.relative_to(ROOT) for folder in folders for p in (ROOT / folder).rglob("*") if p.is_file()]


def text(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def wrong_includes(room, source):
    """Included paths of `source` that a file of `room` may not include."""
    wrong = []
    for included in INCLUDE.findall(source):
        other = included.split("/")[0]
        if "/" not in included or other not in set(ALLOWED) | {"tests"} or other == room:
            continue
        if other not in ALLOWED[room] or not included.startswith(PARTS.get((room, other), other)):
            wrong.append(included)
    return wrong


def part_of(folder, path):
    """The part of `folder` in which the file at `path` is: a folder in it, or "."; None: it is not in `folder`."""
    path = str(path)
    if not path.startswith(folder + "/"):
        return None
    below = path[len(folder) + 1 :].split("/")
    return below[0] if len(below) > 1 else "."


def wrong_includes_inside(path, source):
    """Included paths of `source` that the file at `path` may not include, because of the folders in which both are."""
    wrong = []
    for folder, order in INSIDE.items():
        ranks = {part: rank for rank, part in enumerate(order)}
        ranks.setdefault(".", len(order))
        own = ranks.get(part_of(folder, path), len(order))  # a file elsewhere may include all
        wrong += [included for included in INCLUDE.findall(source) if ranks.get(part_of(folder, included), -1) > own]
    return wrong


FOREIGN = ("absl::", "grpc::", "asio::", "beast::")


def defaults_of_own_enums(source):
    """The last case before each `default:` of a switch over an enum of Muster."""
    cases, found = [], []
    for line in map(str.strip, source.splitlines()):
        if re.match(r"case \w+::.*:$", line):
            cases.append(line)
        elif line.startswith("case "):
            cases.append("")
        elif (
            line == "default:"
            and cases
            and cases[-1]
            and not cases[-1].startswith(tuple(f"case {name}" for name in FOREIGN))
        ):
            found.append(cases[-1])
    return found


TYPE = re.compile(r"^(?:struct|class|enum class|enum) (\w+)(?: final)?(?: : [^{;]*)? \{")


def types_defined_twice(files):
    """Types of one name and namespace that several files define: the linker takes the functions of one for both.
    `files`: path -> text. What is in a namespace without a name is the file's own."""
    places = {}
    for path, source in files.items():
        namespaces = []
        for line in source.splitlines():
            opens = re.match(r"namespace ([\w:]* ?)\{", line)
            if opens:
                namespaces.append(opens[1].strip())
            elif line.startswith("}  // namespace") and namespaces:
                namespaces.pop()
            elif TYPE.match(line) and "" not in namespaces:
                places.setdefault("::".join([*namespaces, TYPE.match(line)[1]]), set()).add(path)
    return {name: sorted(paths) for name, paths in places.items() if len(paths) > 1}


def unit_of(path, branches):
    """The unit of `path` in the order inside its room: its folder. In one of `branches`, which have folders themselves:
    a header together with its source.
    """
    path = pathlib.PurePath(path).with_suffix("")
    return str(path if str(path.parent) in branches else path.parent)


def folders_in_a_loop(files):
    """Folders inside rooms that are in a loop of includes, direct or not. `files`: path -> text."""
    branches = {str(folder) for path in files for folder in list(pathlib.PurePath(path).parents)[1:]}
    branches |= {path.split("/")[0] for path in files}
    includes = {}
    for path, source in files.items():
        unit = unit_of(path, branches)
        includes.setdefault(unit, set()).update(
            unit_of(other, branches)
            for other in INCLUDE.findall(source)
            if other.split("/")[0] == path.split("/")[0] and unit_of(other, branches) != unit
        )

    def reached(unit):
        found, left = set(), [unit]
        while left:
            new = includes.get(left.pop(), set()) - found
            found |= new
            left += new
        return found

    folders = {str(pathlib.PurePath(path).parent) for path in files} - branches
    return sorted(folder for folder in folders if folder in reached(folder))


def classes_with_tests(files):
    """(file, class) of each class that unittest would run. `files`: name of a Python file -> its text. A class without
    a base is a mixin and is left out."""
    classes, imported = {}, {}
    for file, source in files.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef):
                classes[file, node.name] = node
            elif isinstance(node, ast.ImportFrom):
                imported.update(
                    {(file, name.asname or name.name): (f"{node.module}.py", name.name) for name in node.names}
                )

    def has_tests(place):
        place = imported.get(place, place)
        node = classes.get(place)
        return node is not None and (
            any(isinstance(part, ast.FunctionDef) and part.name.startswith("test_") for part in node.body)
            or any(has_tests((place[0], ast.unparse(base))) for base in node.bases)
        )

    return [
        place for place, node in classes.items() if place[0].endswith("_test.py") and node.bases and has_tests(place)
    ]


def is_run(listing, file, name):
    """Whether a CMakeLists.txt names the class, or runs the whole file."""
    of_file = re.findall(rf"_test\({file.removesuffix('_test.py')}\s+([^)]*)\)", listing)
    loops = re.findall(r"foreach\(([^)]*)\)", listing)
    return name in " ".join(of_file + loops).replace(".", " ").split() or f"/{file})" in listing


def unlabelled(shown):
    """Names of the tests in ctest's JSON without exactly one of the labels `quick` and `full`. A binary that is not
    built has no labels."""

    def labels(test):
        return {label for of in test["properties"] if of["name"] == "LABELS" for label in of["value"]}

    return [
        test["name"]
        for test in shown["tests"]
        if not test["name"].endswith("_NOT_BUILT") and len(labels(test) & {"quick", "full"}) != 1
    ]


class Layout(unittest.TestCase):
    def test_arrows(self):
        for room in ALLOWED:
            for path in tracked(room):
                if path.suffix in SOURCES:
                    self.assertEqual(wrong_includes(room, text(path)), [], f"{path} includes what {room}/ may not")
                    self.assertEqual(
                        wrong_includes_inside(path, text(path)), [], f"{path} includes what its folder may not"
                    )

    def test_arrows_inside_a_room(self):
        includes = '#include "base/log.h"\n#include "controller/plan/plan.h"\n#include "controller/health.h"\n'
        self.assertEqual(
            wrong_includes_inside("controller/api/x.cc", includes), ["controller/plan/plan.h", "controller/health.h"]
        )
        self.assertEqual(wrong_includes_inside("controller/kube/x.cc", includes), ["controller/health.h"])
        self.assertEqual(wrong_includes_inside("controller/x.cc", includes), [])
        includes = '#include "controller/kube/webhook/webhooks.h"\n#include "controller/kube/client/informer.h"\n'
        self.assertEqual(
            wrong_includes_inside("controller/kube/jobs/x.cc", includes), ["controller/kube/webhook/webhooks.h"]
        )

    def test_each_type_is_defined_once(self):
        self.assertEqual(
            types_defined_twice(
                {str(path): text(path) for room in ALLOWED for path in tracked(room) if path.suffix in SOURCES}
            ),
            {},
        )

    def test_the_scan_sees_a_type_of_two_files(self):
        files = {
            "a.h": "namespace m::x {\nstruct Rule {\n};\n}  // namespace m::x\n",
            "b.h": "namespace m::x {\nclass Rule final : public A {\n",
            "c.cc": "namespace m::x {\nnamespace {\nstruct Rule {\n};\n}  // namespace\n",
            "d.h": "namespace m::y {\nstruct Rule {\n",
        }
        self.assertEqual(types_defined_twice(files), {"m::x::Rule": ["a.h", "b.h"]})

    def test_a_folder_inside_a_room_is_in_no_loop(self):
        """A folder may include files beside it, but only those that do not include the folder."""
        for room in ALLOWED:
            files = {str(path): text(path) for path in tracked(room) if path.suffix in SOURCES}
            self.assertEqual(folders_in_a_loop(files), [])

    def test_the_scan_sees_a_loop(self):
        files = {
            "agent/flags/x.cc": '#include "agent/a.h"\n',
            "agent/a.h": '#include "agent/b.h"\n',
            "agent/b.cc": '#include "agent/watch/w.h"\n',
        }
        self.assertEqual(folders_in_a_loop(files), [])
        files["agent/b.cc"] += '#include "agent/flags/x.h"\n'
        self.assertEqual(folders_in_a_loop(files), ["agent/flags"])

    def test_the_scan_sees_a_wrong_arrow(self):
        self.assertEqual(
            wrong_includes("launcher", '#include "base/log.h"\n#  include "rendezvous/round.h"\n'),
            ["rendezvous/round.h"],
        )
        self.assertEqual(wrong_includes("base", '#include "agent/run_options.h"\n'), ["agent/run_options.h"])
        self.assertEqual(
            wrong_includes("agent", '#include "tests/base/fake_machine.h"\n'), ["tests/base/fake_machine.h"]
        )
        self.assertEqual(wrong_includes("agent", '#include "launcher/reaper.h"\n#include <base/x.h>\n'), [])
        self.assertEqual(
            wrong_includes(
                "local", '#include "controller/plan/plan.h"\n#include "controller/kube/client/informer.h"\n'
            ),
            ["controller/kube/client/informer.h"],
        )

    def test_no_link_leads_out_of_the_checkout(self):
        """Such a link means something on one machine only."""
        listed = subprocess.run(["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True)
        if listed.returncode:
            self.skipTest("SKIPPED: only a clone knows its links")
        links = [line.split("\t")[1] for line in listed.stdout.splitlines() if line.startswith("120000 ")]
        self.assertTrue(links, "git lists no link")
        out = [name for name in links if not (ROOT / name).resolve().is_relative_to(ROOT)]
        self.assertEqual(out, [])

    def test_every_room_is_known(self):
        folders = {path.parts[0] for path in tracked(".") if path.suffix in SOURCES and len(path.parts) > 1}
        self.assertLessEqual(folders, set(ALLOWED) | {"tests", "e2e"})

    def test_every_fuzz_target_has_rows_of_growing_inputs(self):
        targets = set(re.findall(r"muster_fuzz\((\w+)_fuzz", text("tests/fuzz/CMakeLists.txt")))
        rows = {name for path in tracked("tests/linear") for name in re.findall(r'\{"(\w+)",\s*"\w+",', text(path))}
        self.assertEqual(targets - rows, set(), "give each a row in tests/linear")

    def test_no_sleep_in_tests(self):
        # Programs that a test starts may sleep; tests await events. A benchmark may sleep to measure an idle program.
        for path in tracked("tests", "e2e"):
            if path.suffix not in SOURCES | {".py"} or "bench" in path.parts or path.name == "layout_test.py":
                continue
            is_test = path.stem.endswith(("_test", "_case"))
            pattern = SLEEPS if is_test else CPP_SLEEPS
            found = [line for line in text(path).splitlines() if pattern.search(line)]
            self.assertEqual(found, [], f"{path} sleeps; await an event with a generous deadline")

    def test_only_the_monotonic_clock_decides(self):
        # A test cannot set the wall clock for itself (time namespaces shift only the other clocks), so the files that
        # read it are listed instead.
        for room in ALLOWED:
            for path in tracked(room):
                if path.suffix in SOURCES:
                    self.assertEqual(wall_clock_lines(str(path), text(path)), [], f"{path} reads the wall clock")

    def test_the_scan_sees_a_wall_clock(self):
        for line in (
            "auto now = std::chrono::system_clock::now();",
            "if (UnixMillis() > until) return;",
            "time_t t = time(nullptr);",
            "Renew(lease, WallNow());",
            "clock_gettime(CLOCK_REALTIME, &now);",
        ):
            self.assertEqual(wall_clock_lines("agent/x.cc", line), [line])
        self.assertEqual(wall_clock_lines("agent/x.cc", "record_.ended_unix_ms = UnixMillis();  // shown"), [])

    def test_every_test_class_is_run(self):
        for folder in ("tests/outer", "tests/initializers", "tests/torch", "tests/local", "tests/controller/cluster"):
            files = {path.name: text(path) for path in tracked(folder) if path.suffix == ".py"}
            listing = text(f"{folder}/CMakeLists.txt")
            forgotten = [place for place in classes_with_tests(files) if not is_run(listing, *place)]
            self.assertEqual(forgotten, [], f"{folder}/CMakeLists.txt does not name them: they never run")

    def test_the_scan_sees_a_class_that_is_not_run(self):
        files = {
            "faults.py": "class Faults:\n  def test_a(self): pass\n",
            "x_test.py": "from faults import Faults\nclass Case(TestCase): pass\n"
            "class Mixed(Faults, Case): pass\nclass Own(Case):\n  def test_b(self): pass\n",
        }
        self.assertEqual(classes_with_tests(files), [("x_test.py", "Mixed"), ("x_test.py", "Own")])
        listing = "muster_outer_test(x Mixed)\nmuster_outer_test(y Own)\nadd_test(COMMAND python3 ${HERE}/z_test.py)\n"
        self.assertTrue(is_run(listing, "x_test.py", "Mixed"))
        self.assertFalse(is_run(listing, "x_test.py", "Own"))
        self.assertTrue(is_run(listing, "z_test.py", "Own"))

    def test_what_was_all_skipped_ends_as_skipped(self):
        class Some(unittest.TestCase):
            def test_passes(self):
                pass

            def test_skips(self):
                self.skipTest("of a reason")

            def test_fails(self):
                self.fail("of a reason")

        class Whole(Some):
            @classmethod
            def setUpClass(cls):
                raise unittest.SkipTest("all of it")

        for cases, code in (
            ((Some("test_skips"), Some("test_skips")), class_runner.SKIPPED),
            ((Whole("test_fails"),), class_runner.SKIPPED),
            ((Some("test_skips"), Some("test_passes")), 0),
            ((Some("test_skips"), Some("test_fails")), 1),
            ((), 1),
        ):
            result = class_runner.Result(unittest.runner._WritelnDecorator(io.StringIO()), False, 0)
            unittest.TestSuite(cases).run(result)
            self.assertEqual(class_runner.exit_code(result), code, cases)

    def test_every_test_is_quick_or_full(self):
        """Looks at the build that CMake names. A test without a label would run in `make test` only, by accident."""
        build = os.environ.get("MUSTER_BUILD")
        if build is None:
            self.skipTest("MUSTER_BUILD names no build")
        shown = subprocess.run(
            ["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True
        )
        self.assertEqual(unlabelled(json.loads(shown.stdout)), [])

    def test_the_scan_sees_a_test_without_a_label(self):
        def entry(name, *labels):
            return {
                "name": name,
                "properties": [{"name": "TIMEOUT", "value": 5.0}, {"name": "LABELS", "value": list(labels)}],
            }

        shown = {
            "tests": [
                entry("a", "quick"),
                entry("b", "full", "other"),
                entry("none", "other"),
                entry("both", "quick", "full"),
                {"name": "bare", "properties": []},
                {"name": "x_test_NOT_BUILT", "properties": []},
            ]
        }
        self.assertEqual(unlabelled(shown), ["none", "both", "bare"])

    def test_a_switch_over_an_own_enum_has_no_default(self):
        """So the compiler names the places that a new value needs."""
        for room in ALLOWED:
            for path in tracked(room):
                if path.suffix in SOURCES:
                    self.assertEqual(
                        defaults_of_own_enums(text(path)), [], f"{path}: name all values instead of `default:`"
                    )

    def test_the_scan_sees_a_default(self):
        own = "    case Kind::kOne:\n      return 1;\n    default:\n"
        self.assertEqual(defaults_of_own_enums(own), ["case Kind::kOne:"])
        self.assertEqual(defaults_of_own_enums(own.replace("Kind", "absl::StatusCode")), [])
        self.assertEqual(defaults_of_own_enums("    case kExitUsage:\n    default:\n    case 'R':\n    default:\n"), [])

    def test_headers_are_guarded(self):
        for room in ALLOWED:
            for path in tracked(room):
                if path.suffix == ".h":
                    self.assertIn("#pragma once", text(path), path)


if __name__ == "__main__":
    sys.exit(unittest.main())
