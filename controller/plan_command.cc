// SPDX-License-Identifier: Apache-2.0
#include "controller/commands.h"

#include <memory>
#include <string>
#include <vector>

#include "base/exit_codes.h"
#include "base/print.h"
#include "base/version.h"
#include "controller/admission/validate_files.h"
#include "controller/command_line.h"
#include "controller/input_file.h"
#include "controller/plan/plan_files.h"

namespace muster::controller {
namespace {

struct Flags {
  std::vector<std::string> files;
  std::string output = "yaml";
  PlanOptions plan;
};

StatusOr<std::string> PlannedText(const Flags& flags) {
  MUSTER_ASSIGN_OR_RETURN(const std::vector<InputFile> files, ReadInputs(flags.files));
  MUSTER_RETURN_IF_ERROR(ValidatePyTorchJobs(files));
  const auto name = [](FileObject* job) -> Status {
    GiveName(kSomeLetters, job);
    return absl::OkStatus();
  };
  MUSTER_ASSIGN_OR_RETURN(const PlannedFiles planned,
                          PlanFiles(files, flags.plan, {.edit = name, .check = ValidateTrainJob}));
  for (const std::string& remark : planned.remarks) PrintTo(stderr, "{}\n", remark);
  const std::vector<Json> objects = PlannedObjects(planned);
  return flags.output == "json" ? ObjectsAsJson(objects) : ObjectsAsYaml(objects);
}

int Run(const Flags& flags) {
  const auto text = PlannedText(flags);
  if (!text.ok()) {
    PrintTo(stderr, "muster-controller: {}\n", Message(text.status()));
    return kExitBadConfiguration;
  }
  PrintTo(stdout, "{}", *text);
  return 0;
}

}  // namespace

void AddPlanCommand(CLI::App* app, std::function<int()>* run) {
  auto flags = std::make_shared<Flags>();
  flags->plan.version = Version();
  flags->plan.agent_image = UsualAgentImage();
  auto* command = app->add_subcommand(
      "plan", "print the Service and the Jobs of a TrainJob, or the Services and the pods of a PyTorchJob");
  command
      ->add_option("-f,--filename", flags->files,
                   "a file of TrainJobs, runtimes and PyTorchJobs, YAML or JSON; -: stdin")
      ->type_name("FILE")
      ->required()
      ->take_all();
  command->add_option("-o,--output", flags->output, "yaml | json; default yaml")
      ->check(CLI::IsMember({"yaml", "json"}));
  command->add_option("--agent-image", flags->plan.agent_image, "the image that brings the agent into the pods")
      ->envname("MUSTER_AGENT_IMAGE")
      ->capture_default_str();
  command->callback([flags, run] { *run = [flags] { return Run(*flags); }; });
}

}  // namespace muster::controller
