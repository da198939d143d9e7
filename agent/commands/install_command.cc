// `muster install DIR`: this binary and its links, into a folder that the pod's other containers mount.
#include "agent/commands/command_line.h"
#include "agent/commands/commands.h"
#include "agent/installation.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/text.h"
#include "base/version.h"

namespace muster::agent {

int InstallCommand(const std::vector<std::string>& arguments) {
  CLI::App app{"Copy this binary into a folder, with the links torchrun and muster-rsh beside it", "muster install"};
  std::string folder;
  bool force = false;
  app.add_option("DIR", folder, "the folder; made where it is missing")->required();
  app.add_flag("--force", force, "replace a torchrun or muster-rsh in DIR that is not Muster's");
  if (auto end = ParseCommandLine(app, arguments)) return *end;
  if (folder.empty()) {
    PrintTo(stderr, "muster install: DIR is empty; give a folder, such as /muster/bin\n");
    return kExitUsage;
  }
  auto installed = InstallInto(folder, force);
  if (!installed.ok()) {
    PrintTo(stderr, "muster install: {}\n", Message(installed.status()));
    return kExitBadConfiguration;
  }
  if (installed->written.empty()) {
    PrintTo(stdout, "muster {} (commit {}) is already in {}: nothing written\n", Version(), Commit(), folder);
  } else {
    PrintTo(stdout, "muster {} (commit {}) installed in {}: {}\n", Version(), Commit(), folder,
            Join(installed->written, ", "));
  }
  return 0;
}

}  // namespace muster::agent
