// SPDX-License-Identifier: Apache-2.0
#include "controller/commands.h"

#include <memory>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/print.h"
#include "controller/admission/validate_files.h"
#include "controller/input_file.h"
#include "controller/plan/convert/convert_files.h"

namespace muster::controller {
namespace {

struct Flags {
  std::vector<std::string> files;
  std::string output = "yaml";
  ConvertOptions convert;
};

StatusOr<ConvertedFiles> Converted(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<InputFile> files, ReadInputs(flags.files));
  MUSTER_RETURN_IF_ERROR(ValidatePyTorchJobs(files));
  return ConvertFiles(files, flags.convert);
}

int Run(const Flags& flags) {
  const auto converted = Converted(flags);
  if (!converted.ok()) {
    PrintTo(stderr, "muster-controller: {}\n", Message(converted.status()));
    return kExitBadConfiguration;
  }
  for (const std::string& remark : converted->remarks) PrintTo(stderr, "{}\n", remark);
  PrintTo(stdout, "{}", flags.output == "json" ? ObjectsAsJson(converted->objects) : ObjectsAsYaml(converted->objects));
  return 0;
}

}  // namespace

void AddConvertCommand(CLI::App* app, std::function<int()>* run) {
  auto flags = std::make_shared<Flags>();
  auto* command = app->add_subcommand("convert", "print PyTorchJobs as TrainJobs with their runtimes");
  command->add_option("-f,--filename", flags->files, "a file of PyTorchJobs, YAML or JSON; -: stdin")
      ->type_name("FILE")
      ->required()
      ->take_all();
  command->add_option("-o,--output", flags->output, "yaml | json; default yaml")
      ->check(CLI::IsMember({"yaml", "json"}));
  command->add_option("--gang-scheduler-name", flags->convert.gang_scheduler,
                      "training-operator's flag: volcano, or the name of a scheduler with the coscheduling plugin");
  command->callback([flags, run] { *run = [flags] { return Run(*flags); }; });
}

}  // namespace muster::controller
