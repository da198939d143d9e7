# SPDX-License-Identifier: Apache-2.0
"""The layout of the sources: clang-format checks the C++, ruff the Python, shellcheck the shell; and their licence."""

import pathlib
import shutil
import sys
import unittest

import class_runner

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True  # no __pycache__ in build-support
sys.path.insert(0, str(ROOT / "build-support"))
import formatting


class FormatCase(unittest.TestCase):
    def check(self, language, command, setup, remedy):
        """Runs `command` on all files of `language`; it must find no fault. `setup` installs the command."""
        if not (ROOT / ".git").exists():
            self.skipTest("only a clone knows its files: run it in one made by git")
        if shutil.which(command[0]) is None:
            self.skipTest(f"{command[0]} is missing: run {setup}")
        names = [name for name, of in formatting.listed().items() if of == language]
        self.assertTrue(names, f"git lists no file of {language}")
        succeeded, output = formatting.run_on(command, names)
        self.assertTrue(succeeded, f"{remedy}:\n{output}")


class Cpp(FormatCase):
    def test_clang_format_changes_nothing(self):
        self.check(
            "c++", [formatting.CLANG_FORMAT, "--dry-run", "-Werror"], "make deps on Debian 12", "run make format"
        )


class Python(FormatCase):
    def check_by_ruff(self, arguments, remedy):
        command = [formatting.RUFF, *arguments, "--quiet", "--no-cache"]
        self.check("python", command, "build-support/setup-venv ruff", remedy)

    def test_ruff_formats_nothing(self):
        self.check_by_ruff(["format", "--diff"], "run make format")

    def test_ruff_finds_nothing(self):
        self.check_by_ruff(["check"], "mend it, or add a noqa with the reason")


class Shell(FormatCase):
    def test_shellcheck_finds_nothing(self):
        self.check("shell", [formatting.SHELLCHECK], "make deps", "mend it, or disable the check with the reason")


class Licence(FormatCase):
    def test_each_source_names_it(self):
        if not (ROOT / ".git").exists():
            self.skipTest("only a clone knows its files: run it in one made by git")
        names = formatting.listed()
        self.assertIn("base/log.h", names)
        without = [name for name in names if not formatting.names_licence(name, formatting.head_of(ROOT / name))]
        self.assertEqual(without, [], f"write SPDX-License-Identifier: {formatting.LICENCE} into the first line")

    def test_the_scan_sees_a_source_without_it(self):
        line = b"// SPDX-License-Identifier: Apache-2.0\n"
        for name, head, named in (
            ("base/log.h", line + b"#pragma once\n", True),
            ("base/log.h", b"#pragma once\n", False),
            ("base/log.h", b"#pragma once\n\n" + line, False),
            ("base/log.h", b"// SPDX-License-Identifier: MIT\n", False),
            ("tests/x.py", b"", False),
            ("e2e/demo/run", b"#!/usr/bin/python3\n# SPDX-License-Identifier: Apache-2.0\n", True),
            ("e2e/demo/run", b"#!/usr/bin/python3\n", False),
            ("rsh/CMakeLists.txt", b"muster_room(", False),
            ("README.md", b"# Muster\n", True),
            ("tests/outer/data/x.json", b"{", True),
        ):
            self.assertEqual(formatting.names_licence(name, head), named, (name, head))


class Languages(unittest.TestCase):
    def test_a_script_counts_by_its_first_line(self):
        for name, head, language in (
            ("base/log.h", b"#pragma once\n", "c++"),
            ("tests/x.py", b"", "python"),
            ("e2e/demo/run", b"#!/usr/bin/python3\nimport os\n", "python"),
            ("x", b"#!/usr/bin/env -S python3.11 -u\n", "python"),
            ("build-support/setup-venv", b"#!/usr/bin/env bash\n", "shell"),
            ("x", b"#!/bin/sh -e\n", "shell"),
            ("x.sh", b"set -e\n", "shell"),
            ("x", b"#!\n", ""),
            ("x", b"#!/usr/bin/env\n", ""),
            ("Makefile", b"# Thin\n", ""),
        ):
            self.assertEqual(formatting.language(name, head), language, name)


if __name__ == "__main__":
    class_runner.main()
