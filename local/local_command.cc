// SPDX-License-Identifier: Apache-2.0
#include "local/commands.h"

#include <memory>

#include "base/exit_codes.h"
#include "base/print.h"
#include "local/session.h"

namespace muster::local {
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
                  "a file, or a folder of files, with a TrainJob or a PyTorchJob, its runtime, ConfigMaps and Secrets; "
                  "YAML or JSON; -: stdin")
      ->type_name("FILE")
      ->required()
      ->take_all();
  app->add_option("--nodes", flags->overrides.nodes, "the number of nodes, in place of the job's");
  app->add_option("--procs", flags->overrides.processes,
                  "the number of torchrun's processes on each node, in place of the job's");
  app->add_option("--env", flags->overrides.env, "NAME=VALUE, a variable of the trainer's container")
      ->type_name("NAME=VALUE");
  app->add_option("--set", flags->overrides.sets,
                  "PATH=VALUE, a field of the job, as in spec.trainer.args='[--lr, 0.1]'")
      ->type_name("PATH=VALUE");
  app->add_option("--workdir", flags->work_folder,
                  "the working folder of containers without a workingDir; default: the current folder")
      ->type_name("DIR");
  app->add_option("--secret", flags->secrets, "NAME=FOLDER, a Secret: each file of the folder is a key")
      ->type_name("NAME=FOLDER");
  app->add_option("--config-map", flags->config_maps, "NAME=FOLDER, a ConfigMap: each file of the folder is a key")
      ->type_name("NAME=FOLDER");
  app->add_option("--image-root", flags->image_roots,
                  "[IMAGE=]FOLDER, an unpacked image: the read-only root of that image's containers; without IMAGE, of "
                  "all containers")
      ->type_name("[IMAGE=]FOLDER");
  app->add_option(
         "--oci", flags->image_files,
         "[IMAGE=]FILE, an image from `docker save`, or an OCI layout: like --image-root, unpacked once, and with the "
         "image's Entrypoint, Cmd, Env and WorkingDir")
      ->type_name("[IMAGE=]FILE");
  app->add_option(
      "--kill", flags->drills,
      "TARGET:NUMBER[:SIGNAL|:exit=CODE|:cut|:mend]@WHEN, injects a fault: node:1@30s, rank:3@\"epoch 4\" (at "
      "the first line of output with this text), rank:0:STOP@5s, rank:1:exit=3@5s, node:1:cut@5s");
  app->add_option(
         "--network", flags->network,
         "private: each host has its own network (needs root); shared: all use this machine's; auto, the default: "
         "private if possible, else shared")
      ->type_name("private|shared|auto");
  app->add_flag("--detach", flags->detach,
                "continue in the background once the job runs; `muster logs JOB` shows the output");
  app->add_flag("--keep", flags->keep, "keep the pods' volumes after the end, until the job's next start");
  app->add_flag("--dry-run", flags->dry_run, "print the objects that would run, as `muster-controller plan` does");
  app->callback([flags, run] { *run = [flags] { return Run(*flags); }; });
}

}  // namespace muster::local
