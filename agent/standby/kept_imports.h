// SPDX-License-Identifier: Apache-2.0
// The modules that a script has imported, kept for its next run: $XDG_STATE_HOME/muster/imports/<script's digest>.
//
// The folder has at most 200 files: the oldest go.
//
// The file has lines: "muster imports 2", the digest of the versions, then one entry each, as in learner.py. A file of
// another form, of other versions or above 1 MiB counts as none. Only its owner may read it: entries have marks of
// values of variables.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent::standby {

// What the probe of a Python has said (probe.py): two digests, 64 hexadecimal digits each.
struct ScriptFacts {
  std::string script;    // of what names the script
  std::string versions;  // of Python and the installed packages
  bool operator==(const ScriptFacts&) const = default;
};
// InvalidArgument: `body` is not that of a frame with two digests.
StatusOr<ScriptFacts> ParseScriptFacts(std::string_view body);

std::string FormatKeptImports(std::string_view versions, const std::vector<std::string>& names);
// Empty if `text` was not kept with these versions. A name may be any text without a line's end.
std::vector<std::string> ParseKeptImports(std::string_view text, std::string_view versions);

// Reads and replaces the file. Empty if there is none. The error says what cannot be written.
std::vector<std::string> ReadKeptImports(const ScriptFacts& facts);
Status KeepImports(const ScriptFacts& facts, const std::vector<std::string>& names);

}  // namespace muster::agent::standby
