// SPDX-License-Identifier: Apache-2.0
// `muster install DIR`: this binary and its links, into a folder that the pod's other containers mount.
#include "agent/commands/arguments.h"
#include "agent/commands/commands.h"
#include "agent/installation.h"
#include "base/exit_codes.h"
#include "base/print.h"
#include "base/text.h"
#include "base/version.h"

namespace muster::agent {

int InstallCommand(const Call& call) {
  Arguments arguments("Copy this binary into a folder, with the links torchrun and muster-rsh beside it",
                      "muster install");
  std::string folder;
  bool force = false;
  arguments.Text("DIR", &folder, "the folder; made where it is missing", {.required = true});
  arguments.Switch("--force", &force, "replace a torchrun or muster-rsh in DIR that is not Muster's");
  if (auto end = arguments.Parse(call)) return *end;
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
