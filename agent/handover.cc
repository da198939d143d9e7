#include "agent/handover.h"

#include <unistd.h>

#include <cerrno>

#include "agent/early_signals.h"
#include "base/exit_codes.h"
#include "base/log.h"
#include "base/text.h"

namespace muster::agent {

StatusOr<std::vector<std::string>> HandOverCommand(const std::vector<std::string>& arguments, std::string_view reason,
                                                   bool legacy_launch, const CommandSurroundings& surroundings) {
  if (surroundings.environment(kHandedOver)) {
    return absl::FailedPreconditionError(fmt::format(
        "{}, and the torchrun on PATH leads back to muster; put the folder of PyTorch's own torchrun on PATH", reason));
  }
  std::string torchrun = FindRealTorchrun(surroundings);
  if (torchrun.empty()) {
    return absl::NotFoundError(
        fmt::format("{}, and there is no other torchrun on PATH; install PyTorch or leave the flag out", reason));
  }
  std::vector<std::string> command = {torchrun};
  if (legacy_launch) {
    MUSTER_ASSIGN_OR_RETURN(std::string python, FindPython(surroundings));
    command = {python, "-m", "torch.distributed.launch"};
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

int HandOver(const std::vector<std::string>& arguments, const std::string& reason, bool legacy_launch) {
  auto command = HandOverCommand(arguments, reason, legacy_launch, RealSurroundings());
  if (!command.ok()) {
    log::Error(Message(command.status()));
    return absl::IsNotFound(command.status()) ? kExitNotFound : kExitBadConfiguration;
  }
  log::Warning(fmt::format("{}; {} goes on in place of muster", reason, command->front()));
  setenv(std::string(kHandedOver).c_str(), "1", 1);
  std::vector<char*> argv;
  for (std::string& argument : *command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ReleaseSignals();
  execv(argv.front(), argv.data());
  int error = errno;
  log::Error(Message(ErrnoStatus(error, fmt::format("cannot execute {}", command->front()))));
  return error == ENOENT ? kExitNotFound : kExitNotExecutable;
}

}  // namespace muster::agent
