# SPDX-License-Identifier: Apache-2.0
"""docs/local.md, "Five minutes": each command unchanged, in one shell, and the output that the page shows.

$ command        runs; with <<'END' up to the line END
anything else    is found in the command's output, in this order; times and the home folder may differ
...              lines that the page omits
"""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from local_case import BIN, DEADLINE, LocalCase, clean

import class_runner  # local_case.py says where it is

PAGE = os.path.join(HERE, "..", "..", "docs", "local.md")
SECTION = re.compile(r"^## Five minutes\n(.*?)^## ", re.MULTILINE | re.DOTALL)
TIME = re.compile(r"\b[0-9.]+ s\b")


def steps(page):
    """[(command, [line of its output])] of the page's walk."""
    found, lines = [], iter(re.findall(r"^    (.*)$", SECTION.search(page)[1], re.MULTILINE))
    for line in lines:
        if not line.startswith("$ "):
            if line != "...":
                found[-1][1].append(line)
            continue
        command = line[2:]
        end = re.search(r"<<'(\w+)'", command)
        while end and not command.endswith(f"\n{end[1]}"):
            command += "\n" + next(lines)
        found.append((command, []))
    return found


def missing(wanted, said):
    """The first line of `wanted` that `said` lacks behind the previous line's place; None: all are there."""
    left = iter(said)
    return next((line for line in wanted if line not in left), None)


class Walk(LocalCase):
    def test_the_page_is_true(self):
        with open(PAGE) as file:
            walk = steps(file.read())
        self.assertGreater(len(walk), 8)
        mark = "--- end of a step"
        script = "set -e\n" + "".join(f"{command}\necho '{mark}'\n" for command, _ in walk)
        environment = clean(HOME=self.folder, PATH=f"{BIN}:/usr/bin:/bin")
        environment.pop("XDG_STATE_HOME", None)
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        said = done.stdout.replace(self.folder, "/home/you").split(mark + "\n")
        for (command, wanted), printed in zip(walk, said):
            line = missing(
                [TIME.sub("T", line) for line in wanted], [TIME.sub("T", line) for line in printed.splitlines()]
            )
            self.assertIsNone(line, f"{command}\nprinted\n{printed}")


if __name__ == "__main__":
    class_runner.main()
