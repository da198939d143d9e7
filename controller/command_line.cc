// SPDX-License-Identifier: Apache-2.0
#include "controller/command_line.h"

#include <csignal>

#include "base/exit_codes.h"
#include "base/text.h"
#include "base/version.h"

namespace muster::controller {

int ParseAndRun(int argc, char** argv, CLI::App* app, const std::function<int()>& run) {
  signal(SIGPIPE, SIG_IGN);
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app->exit(error) == 0 ? 0 : kExitUsage;
  }
  return run();
}

std::string UsualAgentImage() { return fmt::format("muster:{}", Version()); }

}  // namespace muster::controller
