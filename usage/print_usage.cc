// SPDX-License-Identifier: Apache-2.0
#include "usage/print_usage.h"

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/text.h"
#include "base/version.h"
#include "usage/complete.h"
#include "usage/manual.h"

namespace muster::usage {

int PrintCompletion(const Command& program, const CompletionWords& words) {
  const std::string text =
      words.shell == "for" ? AnswerText(Complete(program, words.words)) : Script(words.shell, program.name);
  if (text.empty()) {
    PrintTo(stderr, "{} completion: there is no script for '{}'; choose bash, zsh or fish\n", program.name,
            words.shell);
    return kExitUsage;
  }
  PrintTo(stdout, "{}", text);
  return 0;
}

int PrintManual(const Command& program, const std::string& subcommand) {
  const Command* command = subcommand.empty() ? &program : FindCommand(program, subcommand);
  if (command == nullptr) {
    PrintTo(stderr, "{} man: '{}' is not a subcommand; see {} --help\n", program.name, subcommand, program.name);
    return kExitUsage;
  }
  std::vector<std::string> see_also;
  if (command != &program) {
    see_also.push_back(program.name);
  } else {
    for (const Command& inner : program.commands) see_also.push_back(inner.name);
  }
  PrintTo(stdout, "{}", ManualPage(*command, fmt::format("Muster {}", Version()), see_also));
  return 0;
}

}  // namespace muster::usage
