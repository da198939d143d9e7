// SPDX-License-Identifier: Apache-2.0
// libFuzzer: torchrun's command line; lines are arguments, a line "NAME=value" before the first "-" is a variable.
#include "agent/flags/torchrun_flags.h"
#include "base/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> arguments;
  muster::Environment environment;
  for (std::string_view line : muster::Split({reinterpret_cast<const char*>(data), size}, '\n')) {
    size_t equals = line.find('=');
    if (arguments.empty() && equals != std::string_view::npos && line.starts_with("PET_")) {
      environment.Set(line.substr(0, equals), line.substr(equals + 1));
    } else {
      arguments.emplace_back(line);
    }
  }
  (void)muster::agent::ParseRun(arguments, environment);
  return 0;
}
