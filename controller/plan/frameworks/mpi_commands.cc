// SPDX-License-Identifier: Apache-2.0
#include "controller/plan/frameworks/mpi_commands.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "controller/plan/pod_fields.h"

namespace muster::controller {
namespace {

constexpr std::string_view kShells[] = {"sh", "bash", "dash", "ash"};
constexpr std::string_view kSshd = "sshd";
// The last two are Open MPI's parameters with options of ssh, such as its port.
constexpr std::string_view kClients[] = {"ssh", "scp", "sftp", "plm_rsh_args", "plm_ssh_args"};
// Launchers that reach the other nodes by ssh, whatever Open MPI's variables say.
constexpr std::string_view kLaunchersBySsh[] = {"deepspeed", "horovodrun", "mpirun_rsh", "pdsh"};
// Commands of a script that prepare sshd, or keep the script alive beside it.
constexpr std::string_view kBesideSshd[] = {"cd",   "chmod", "chown", "cp",    "echo",  "export",
                                            "ln",   "mkdir", "rm",    "set",   "sleep", "ssh-keygen",
                                            "tail", "touch", "true",  "umask", "wait"};

template <size_t kCount>
bool IsOneOf(std::string_view word, const std::string_view (&words)[kCount]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// Calls `found` with each longest piece of `text` that has no character of `between`.
template <class Found>
void ForEachPiece(std::string_view text, std::string_view between, Found found) {
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(between), text.size());
    if (end > 0) found(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// The program of a simple command, without `exec` and assignments before it: "sshd" of "exec /usr/sbin/sshd -D".
std::string ProgramOf(std::string_view command) {
  std::string program;
  ForEachPiece(command, " \t\r", [&](std::string_view word) {
    const bool assigns = word.find('=') != std::string_view::npos;
    if (program.empty() && word != "exec" && !assigns) program = BaseName(word);
  });
  return program;
}

// Calls `found` with the program of each simple command of a script.
template <class Found>
void ForEachProgram(std::string_view script, Found found) {
  ForEachPiece(script, ";&|\n", [&](std::string_view command) {
    if (const std::string program = ProgramOf(command); !program.empty() && !program.starts_with('#')) found(program);
  });
}

bool ScriptOnlyServesSsh(std::string_view script) {
  bool serves = false, more = false;
  ForEachProgram(script, [&](std::string_view program) {
    serves = serves || program == kSshd;
    more = more || (program != kSshd && !IsOneOf(program, kBesideSshd));
  });
  return serves && !more;
}

// The script of a shell's command: it follows the first option that contains a c (-c, -ec, -lc). Null: it is not a
// shell, or has none.
const std::string* ScriptIn(const std::vector<std::string>& words) {
  if (words.empty() || !IsOneOf(BaseName(words[0]), kShells)) return nullptr;
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    if (words[i].starts_with('-') && words[i].find('c') != std::string::npos) return &words[i + 1];
  }
  return nullptr;
}

}  // namespace

bool OnlyServesSsh(const Json& container) {
  const std::vector<std::string> words = CommandWords(container);
  if (const std::string* script = ScriptIn(words)) return ScriptOnlyServesSsh(*script);
  if (words.empty() || IsOneOf(BaseName(words[0]), kShells)) return false;
  return std::any_of(words.begin(), words.end(), [](const std::string& word) { return BaseName(word) == kSshd; });
}

bool CallsSsh(const Json& container) {
  const std::vector<std::string> words = CommandWords(container);
  bool calls = !words.empty() && IsOneOf(BaseName(words[0]), kLaunchersBySsh);
  if (const std::string* script = ScriptIn(words)) {
    ForEachProgram(*script, [&](std::string_view program) { calls = calls || IsOneOf(program, kLaunchersBySsh); });
  }
  for (const std::string& text : words) {
    ForEachPiece(text, " \t\r\n;&|()<>\"'`$={},",
                 [&](std::string_view word) { calls = calls || IsOneOf(BaseName(word), kClients); });
  }
  return calls;
}

}  // namespace muster::controller
