// SPDX-License-Identifier: Apache-2.0
// libFuzzer: the command line of `muster rsh`, one argument a line. The parsed options are written in another way and
// parsed again.
#include "base/text.h"
#include "rsh/rsh_arguments.h"
#include "tests/fuzz/input.h"

namespace muster::rsh {
namespace {

std::vector<std::string> Arguments(const RshCommand& command) {
  std::vector<std::string> arguments;
  if (!command.user.empty()) arguments.insert(arguments.end(), {"-l", command.user});
  if (command.port) arguments.push_back(fmt::format("-p{}", *command.port));
  if (command.no_stdin) arguments.emplace_back("-xnq");
  if (command.timeout) {
    arguments.push_back(fmt::format("--rsh-timeout={:.9f}", std::chrono::duration<double>(*command.timeout).count()));
  }
  arguments.insert(arguments.end(), {"--", command.host, command.command});
  return arguments;
}

}  // namespace
}  // namespace muster::rsh

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::rsh;
  std::vector<std::string> arguments;
  for (std::string_view line : muster::Split({reinterpret_cast<const char*>(data), size}, '\n')) {
    arguments.emplace_back(line);
  }
  auto command = ParseRshArguments(arguments);
  if (!command.ok() || command->ask != RshCommand::Ask::kRun) return 0;
  Must(!command->host.empty() && command->host[0] != '-' && !command->command.empty());
  auto again = ParseRshArguments(Arguments(*command));
  Must(again.ok());
  if (command->timeout) {
    // A decimal fraction of a second has no exact binary value.
    auto apart = *again->timeout - *command->timeout;
    Must(apart < std::chrono::microseconds(1) && apart > -std::chrono::microseconds(1));
    again->timeout = command->timeout;
  }
  Must(*again == *command);
  return 0;
}
