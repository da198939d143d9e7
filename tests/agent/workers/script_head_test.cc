// SPDX-License-Identifier: Apache-2.0
// The first lines that pip, uv and conda write into console scripts.
#include "agent/workers/script_head.h"

#include <gmock/gmock.h>

#include "agent/workers/torch_command.h"
#include "tests/base/fake_machine.h"

namespace muster::agent {

using Place = ScriptHead::Place;

void PrintTo(const ScriptHead& head, std::ostream* out) { *out << static_cast<int>(head.place) << " " << head.python; }

namespace {

constexpr char kRelocatable[] = R"sh('''exec' "$(dirname -- "$(realpath -- "$0")")"/'python3' "$0" "$@")sh";

TEST(ScriptHead, AsTheInstallersWriteIt) {
  const std::string shell = "#!/bin/sh\n";
  struct {
    std::string head;
    ScriptHead expected;
  } const rows[] = {
      {"#!/venv/bin/python3\nimport sys\n", {Place::kPath, "/venv/bin/python3"}},
      {"#!/it's/bin/python\n", {Place::kPath, "/it's/bin/python"}},  // uv
      {"#! /venv/bin/python3.11 -sE\n", {Place::kPath, "/venv/bin/python3.11"}},
      {"#!/venv/bin/pypy3", {Place::kPath, "/venv/bin/pypy3"}},
      {"#!/usr/bin/env python3.11\n", {Place::kOnPath, "python3.11"}},  // conda, long
      {"#!/usr/bin/env -S python3 -u\n", {Place::kOnPath, "python3"}},
      {"#!/usr/bin/env -S A=b /venv/bin/python3 -u\n", {Place::kPath, "/venv/bin/python3"}},
      {shell + "'''exec' /long/bin/python3 \"$0\" \"$@\"\n' '''\n", {Place::kPath, "/long/bin/python3"}},     // pip
      {shell + "'''exec' /long/bin/python3 -E \"$0\" \"$@\"\n' '''\n", {Place::kPath, "/long/bin/python3"}},  // pip
      {shell + "'''exec' \"/my venv/bin/python3\" \"$0\" \"$@\"\n' '''\n",
       {Place::kPath, "/my venv/bin/python3"}},                                                                  // pip
      {shell + "'''exec' '/my venv/bin/python' \"$0\" \"$@\"\n' '''\n", {Place::kPath, "/my venv/bin/python"}},  // uv
      {shell + "'''exec' '/it'\"'\"'s my/bin/python' \"$0\"\n", {Place::kPath, "/it's my/bin/python"}},
      {shell + "'''exec' /my\\ venv/bin/python \"$0\"\n", {Place::kPath, "/my venv/bin/python"}},
      {shell + kRelocatable + "\n' '''\n", {Place::kBesideScript, "python3"}},  // uv
      {shell + R"sh('''exec' "$(CDPATH= cd -- "$(dirname -- "$0")" && echo "$PWD")"/'python' "$0" "$@")sh",
       {Place::kBesideLink, "python"}},
      {shell + R"sh("exec" "$(dirname $0)/python3" "$0" "$@")sh", {Place::kBesideLink, "python3"}},
      // No python, or one that cannot be found out.
      {"", {}},
      {"#!", {}},
      {"#!\n", {}},
      {"\x7f"
       "ELF",
       {}},
      {"#!python3\n", {}},
      {"#!/python-tools/bin/ruby\n", {}},
      {"#!/usr/bin/env\n", {}},
      {"#!/usr/bin/env bash\n", {}},
      {"#!/bin/sh", {}},
      {"#!/bin/bash\n", {}},
      {shell + "exec muster run \"$@\"\n", {}},
      {shell + "'''exec' \"/not closed/python3\n", {}},
      {shell + "'''exec' '/not closed/python3\n", {}},
      {shell + "'''exec' \"$(which python3)\" \"$0\"\n", {}},
      {shell + "'''exec' \"$(dirname -- \"$0\"/python\n", {}},
      {shell + "'''exec' \"$PREFIX/bin/python3\" \"$0\"\n", {}},
      {shell + "'''exec' bin/python3 \"$0\"\n", {}},
      {shell + "'''exec' /bin/python3\\", {}},
      {shell + "'''exec'\n", {}},
  };
  for (const auto& row : rows) EXPECT_EQ(ReadScriptHead(row.head), row.expected) << row.head;
}

// As pipx, "uv tool" and Dockerfiles install a script: PATH has a link to it, and the script is in a folder of its own.
TEST(ScriptHead, BehindALinkFromAnotherFolder) {
  const std::string shell = "#!/bin/sh\n";
  struct {
    std::string head, expected;
  } const rows[] = {{"#!/my venv/bin/python3\n", "/path/python3"},  // the kernel ends that path at the blank
                    {shell + "'''exec' '/my venv/bin/python3' \"$0\" \"$@\"\n' '''\n", "/my venv/bin/python3"},
                    {shell + kRelocatable + "\n' '''\n", "/my venv/bin/python3"},
                    {shell + "'''exec' '/gone/bin/python3' \"$0\" \"$@\"\n' '''\n", "/path/python3"},
                    {shell + R"sh("exec" "$(dirname $0)/python3" "$0" "$@")sh", "/path/python3"}};
  for (const auto& row : rows) {
    FakeMachine machine;
    machine.Set("PATH", "/path:/usr/bin").Program("/usr/bin/python3").Program("/path/python3");
    machine.Program("/my venv/bin/python3").Program("/my venv/bin/torchrun", row.head);
    machine.Link("/path/torchrun", "/my venv/bin/torchrun");
    CommandSurroundings around{machine.fs(), machine.environment(), "/opt/muster/muster", {}};
    auto python = FindPython(around);
    ASSERT_TRUE(python.ok()) << python.status();
    EXPECT_EQ(*python, row.expected) << row.head;
  }
}

}  // namespace
}  // namespace muster::agent
