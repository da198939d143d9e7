// SPDX-License-Identifier: Apache-2.0
// The arguments of a small subcommand, parsed by CLI11 with Muster's exit codes: 64 for a wrong flag, 0 for --help.
//
// Only this class includes CLI11's header, which makes each file that does a few kilobytes larger.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/commands/commands.h"

namespace muster::agent {

class Arguments {
 public:
  Arguments(const char* summary, const char* command);  // "muster wait"
  ~Arguments();
  void TakeLast();  // of a flag that is given twice; to be called first. Else that is an error

  // What may be added to a text.
  struct Form {
    const char* metavar = "";   // what completes it: usage::PlaceOf, usage::WordsIn
    const char* variable = "";  // of the environment, read if the flag is not given
    bool required = false;
    bool shows_default = false;  // the help shows what *value holds now
  };
  // Each declares a flag ("-o,--output") or an operand ("DIR"), whose value Parse() stores.
  void Switch(const char* names, bool* value, const char* help);
  void Text(const char* names, std::string* value, const char* help, const Form& form = {"", "", false, false});
  void Texts(const char* names, std::vector<std::string>* values, const char* help, bool required);
  void Positive(const char* names, double* value, const char* help);              // more than 0
  void Positives(const char* names, std::vector<int>* values, const char* help);  // each more than 0; required
  void Port(const char* names, int* value, const char* help);                     // 0 to 65535

  void Exclude(const char* one, const char* other);  // not both
  bool Given(const char* name) const;

  // Parses, or describes the command; an exit code means "end now" (that was done, or help or an error was printed).
  std::optional<int> Parse(const Call& call);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace muster::agent
