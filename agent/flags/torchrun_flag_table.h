// SPDX-License-Identifier: Apache-2.0
// The one table of the flags of `muster run`, `launch` and `exec`, for parsing, abbreviations, PET_*, the help text,
// completions and manual pages.
// Source: torch/distributed/run.py and argparse_util.py of torch 2.14.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::agent {

enum class CalledAs { kRun, kLaunch, kExec };  // muster run, launch (torch.distributed.launch), exec

enum class FlagKind {
  kValue,   // takes one argument
  kSwitch,  // on if given. Its variable is a number: 0 is off, else on
  kHelp,
};
enum class FlagOwner {
  kTorchrun,
  kLegacy,  // only of `muster launch`
  kMuster,
  kExec,  // Muster's, only of `muster exec`
};

struct Flag {
  std::string_view name;  // long name with dashes and without "--"; underscores are read as dashes
  char letter;            // 'm' for "-m"; 0: none
  FlagKind kind;
  FlagOwner owner;
  std::string_view variable;  // environment variable that replaces the default; empty: none
  std::string_view fallback;  // built-in default as text
  std::string_view metavar;
  std::string_view choices;  // "a,b": checked on the command line only, as argparse does; empty: any text
  std::string_view help;
  std::string_view exec_fallback = {};  // the default of `muster exec`, if it is another one
  std::string_view pod_variable = {};   // read if `variable` is not set: the same fact in Kubeflow's pods
};

std::span<const Flag> FlagTable();
bool IsVisible(const Flag& flag, CalledAs called_as);  // whether that command has the flag
bool IsOwn(const Flag& flag);                          // Muster's, not torchrun's
// The built-in default.
std::string_view Fallback(const Flag& flag, CalledAs called_as);

// The row of a long name without "--": exact, else an unambiguous prefix. A prefix that is unique among torchrun's own
// flags means that flag, whatever Muster adds. InvalidArgument names the candidates, or says that there are none.
StatusOr<const Flag*> FindFlag(std::string_view name, CalledAs called_as);
const Flag* FindLetter(char letter);  // nullptr: none

// A command line in its parts; the values are not judged yet.
struct CommandLine {
  std::map<std::string_view, std::string> values;  // by Flag::name, as given last; switches hold ""
  bool help = false;
  std::optional<std::string> script;
  size_t script_at = 0;  // its place among the arguments; without a script their number
  std::vector<std::string> script_args;
  // Muster's own flags: their words are the arguments from `first` up to before `end`.
  struct Own {
    const Flag* flag;
    size_t first, end;
  };
  std::vector<Own> own;
};

// Splits as argparse does: options, then the script, then the rest verbatim. "--flag=value", "--flag value", "-r3",
// "-mr3". "--" ends the options (the first "--" just after the script is dropped, too). Negative numbers and texts with
// a blank are values. InvalidArgument names the argument.
StatusOr<CommandLine> SplitCommandLine(const std::vector<std::string>& arguments, CalledAs called_as);

// The same for a command line that may be wrong: skips what is wrong.
CommandLine SplitWhatCanBeRead(const std::vector<std::string>& arguments, CalledAs called_as);

// The part of `arguments` (`line` was split from them) for PyTorch's own launcher, and the left out flags of Muster.
struct TorchrunsPart {
  std::vector<std::string> arguments;
  std::vector<std::string> left_out;  // "--node-name"
};
TorchrunsPart WithoutOwnFlags(const std::vector<std::string>& arguments, const CommandLine& line);

// The error for a command line without a script or command; it says what to write.
Status MissingScript(CalledAs called_as);

}  // namespace muster::agent
