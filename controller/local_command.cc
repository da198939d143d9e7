#include "controller/local_command.h"

#include <memory>

#include "base/exit_codes.h"
#include "base/print.h"
#include "controller/local_session.h"

namespace muster::controller {
namespace {

int Failed(const Status& why) {
  PrintTo(stderr, "muster local: {}\n", Message(why));
  return kExitBadConfiguration;
}

int Run(const LocalFlags& flags) {
  const auto code = RunLocally(flags);
  return code.ok() ? *code : Failed(code.status());
}

}  // namespace

void AddLocalFlags(CLI::App* app, std::function<int()>* run) {
  auto flags = std::make_shared<LocalFlags>();
  app->add_option("-f,--filename", flags->files,
                  "a file with a TrainJob or a PyTorchJob, its runtime, ConfigMaps and Secrets; YAML or JSON; -: stdin")
      ->required()
      ->take_all();
  app->add_option("--nodes", flags->overrides.nodes, "so many nodes, whatever the job says");
  app->add_option("--procs", flags->overrides.processes, "so many processes of torchrun on a node");
  app->add_option("--env", flags->overrides.env, "NAME=VALUE, a variable of the trainer's container");
  app->add_option("--set", flags->overrides.sets,
                  "PATH=VALUE, a field of the job, as in spec.trainer.args='[--lr, 0.1]'");
  app->add_option("--workdir", flags->work_folder,
                  "where containers without a workingDir run; else the current folder");
  app->add_option("--secret", flags->secrets, "NAME=FOLDER, a Secret: each file of the folder is a key");
  app->add_option("--config-map", flags->config_maps, "NAME=FOLDER, a ConfigMap: each file of the folder is a key");
  app->add_option(
      "--image-root", flags->image_roots,
      "[IMAGE=]FOLDER, an unpacked image: its containers, or all, see that folder as their root, read-only");
  app->add_option("--oci", flags->image_files,
                  "[IMAGE=]FILE, an image as `docker save` or an OCI layout has it: the same, unpacked once, with its "
                  "Entrypoint, Cmd, Env and WorkingDir");
  app->add_option(
      "--kill", flags->drills,
      "TARGET:NUMBER[:SIGNAL|:exit=CODE|:cut|:mend]@WHEN, a fault on purpose: node:1@30s, rank:3@\"epoch 4\" (once "
      "a line of output has that text), rank:0:STOP@5s, rank:1:exit=3@5s, node:1:cut@5s");
  app->add_option("--network", flags->network,
                  "private: each host has its own (needs root); shared: this machine's; auto, the default: private "
                  "where it can be had");
  app->add_flag("--detach", flags->detach,
                "go on in the background once the job runs; `muster logs JOB` has its output");
  app->add_flag("--keep", flags->keep,
                "leave the pods' volumes where they are after the end, until the job's next start");
  app->add_flag("--dry-run", flags->dry_run, "print what would run, as `muster-controller plan` does");
  app->callback([flags, run] { *run = [flags] { return Run(*flags); }; });
}

}  // namespace muster::controller
