// SPDX-License-Identifier: Apache-2.0
// Which python a console script names in its first lines, as Python's installers write them. Pure.
//
//   #!/venv/bin/python3                                 pip, uv, conda, distributions
//   #!/usr/bin/env python3.11                           conda, of a package's own scripts, if the path is too long
//
// The kernel takes neither blanks nor long paths there. For these, there are lines that both the shell and Python can
// read:
//   #!/bin/sh
//   '''exec' /long/venv/bin/python3 "$0" "$@"           pip
//   '''exec' "/my venv/bin/python3" "$0" "$@"           pip, conda
//   '''exec' '/my venv/bin/python3' "$0" "$@"           uv
//   '''exec' "$(dirname -- "$(realpath -- "$0")")"/'python3' "$0" "$@"    uv venv --relocatable
#pragma once

#include <string>
#include <string_view>

namespace muster::agent {

struct ScriptHead {
  enum class Place {
    kNone,          // the script names no python
    kPath,          // `python` is a path
    kOnPath,        // a name that is looked up on PATH
    kBesideLink,    // a name in the folder that the script was called in
    kBesideScript,  // a name in the folder of the script itself, symbolic links followed
  } place = Place::kNone;
  std::string python;
  bool operator==(const ScriptHead&) const = default;
};

// `text`: a script, or its first lines.
ScriptHead ReadScriptHead(std::string_view text);

}  // namespace muster::agent
