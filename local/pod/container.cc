// SPDX-License-Identifier: Apache-2.0
#include "local/pod/container.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "controller/plan/pod_fields.h"
#include "local/pod/probe.h"
#include "local/pod/values.h"

namespace muster::local {

using namespace controller;

namespace {

using Restart = ContainerProgram::Restart;

constexpr char kMessagePath[] = "/dev/termination-log", kMessageVariable[] = "MUSTER_TERMINATION_LOG";

// The words of the field command or args, with paths and $(NAME) replaced.
std::vector<std::string> Words(Fields container, const char* field, const Variables& variables, const PodPaths& paths) {
  std::vector<std::string> words;
  for (const std::string& word : container.Texts(field).value_or(std::vector<std::string>())) {
    words.push_back(Expand(paths.In(word), variables));
    IsForPrograms(words.back(), PathOf(container.PathOf(field), words.size() - 1), container.complaints());
  }
  return words;
}

// The command line that replaces the image of `container`; null: there is none.
const std::vector<std::string>* StandInFor(Fields container, const PodPlace& place) {
  const std::string image = container.Text("image");
  std::string_view name = image;  // with its folders
  name.remove_suffix(name.size() - std::min(name.find('@'), name.size()));
  if (const size_t tag = name.rfind(':');
      tag != std::string_view::npos && name.find('/', tag) == std::string_view::npos) {
    name.remove_suffix(name.size() - tag);
  }
  for (const auto& [key, command] : place.entrypoints) {
    if (!command.empty() && (name == key || name.ends_with("/" + key))) return &command;
  }
  return nullptr;
}

std::vector<std::string> CommandOf(Fields container, const Variables& variables, const PodPaths& paths,
                                   const PodPlace& place, const ImageRoot* root) {
  const std::string image = container.Text("image");
  const std::vector<std::string>* stand_in = StandInFor(container, place);
  std::vector<std::string> command = Words(container, "command", variables, paths);
  std::vector<std::string> args = Words(container, "args", variables, paths);
  if (!command.empty()) {
    if (stand_in != nullptr && command.front() == BaseName(stand_in->front())) command.front() = stand_in->front();
  } else if (stand_in != nullptr) {
    command = *stand_in;
  } else {
    if (root != nullptr) command = root->entrypoint;
    if (root != nullptr && args.empty()) args = root->command;
    if (command.empty() && (args.empty() || root == nullptr || root->command.empty())) {
      container.Wrong("command", fmt::format("it is missing, and the entrypoint of image {} is unknown; give "
                                             "`command`, or the image with --oci FILE",
                                             Quoted(image)));
    }
  }
  command.insert(command.end(), args.begin(), args.end());
  return command;
}

// The variables of the place, which the container's own variables override.
std::vector<std::string> EnvironmentOf(const Variables& variables, const std::vector<std::string>& of_place) {
  Variables all;
  for (const std::string& entry : of_place) {
    const size_t end = std::min(entry.find('='), entry.size());
    all.emplace(entry.substr(0, end), entry.substr(std::min(end + 1, entry.size())));
  }
  for (const auto& [name, value] : variables) all[name] = value;
  std::vector<std::string> environment;
  for (const auto& [name, value] : all) environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

// Adds a file of this machine that the container sees at its terminationMessagePath.
void AddMessageFile(Fields container, const PodInput& input, ContainerProgram* program, PodTree* tree) {
  const std::string folder = fmt::format("{}/termination-messages", input.place.folder);
  constexpr int kWritableByAll = 0666;  // as the kubelet does: the program may run as another user
  program->termination_message = fmt::format("{}/{}", folder, program->name);
  tree->Add(PodFolder{.path = folder});
  tree->Add(PodFile{.path = program->termination_message, .text = "", .mode = kWritableByAll});
  const char* field = "terminationMessagePath";
  const std::string target = container.Text(field).empty() ? kMessagePath : TargetOf(container, field);
  program->mounts.push_back(PodMount{.source = program->termination_message, .target = target});
  std::stable_sort(program->mounts.begin(), program->mounts.end(),
                   [](const PodMount& a, const PodMount& b) { return a.target < b.target; });
}

// Replaces the mounts by paths on this machine, for a container that sees this machine's files.
PodPaths PathsInsteadOf(const Fields& container, std::vector<PodMount>* mounts, const PodInput& input) {
  PodPaths paths;
  for (const PodMount& mount : *mounts) paths.Add(mount.target, mount.source);
  if (mounts->size() > 1) {  // one mount is that of the termination message
    input.ignored->OfContainer(container, "volumeMounts",
                               "without bubblewrap nothing is mounted: command, args, env and workingDir get the paths "
                               "of the volumes' folders");
  }
  mounts->clear();
  return paths;
}

std::string NameOf(Fields container) {
  std::string name = container.NeedText("name");
  if (!name.empty() && !IsDnsLabel(name)) {
    container.Wrong("name", name, "is not a name of a container: use only a-z, 0-9 and '-'");
  }
  return name;
}

void ReadRest(Fields container, ContainerKind kind, const PodPaths& paths, const PodInput& input,
              ContainerProgram* program) {
  program->working_directory = paths.In(container.Text("workingDir"));
  IsForPrograms(program->working_directory, container.PathOf("workingDir"), input.complaints);
  if (!program->working_directory.empty() && program->working_directory.front() != '/') {
    container.Wrong("workingDir", program->working_directory, "is not an absolute path");
  }
  program->limits = LimitsOf(container);
  if (kind == ContainerKind::kMain || program->sidecar) {
    program->startup = ProbeOf(container, "startupProbe", paths, input);
    program->liveness = ProbeOf(container, "livenessProbe", paths, input);
    program->readiness = ProbeOf(container, "readinessProbe", paths, input);
  }
  if (!container.Objects("volumeDevices").empty()) {
    container.Wrong("volumeDevices", "block devices are not served here; mount a file system by volumeMounts");
  }
}

// Sets the root folder, in which the folder of --workdir is visible, and the working folder unless the container sets
// one.
void UseRoot(const ImageRoot& root, const PodPlace& place, ContainerProgram* program) {
  program->root = root.folder;
  const std::string& shown = place.shown_folder;
  if (!shown.empty()) program->mounts.push_back(PodMount{.source = shown, .target = shown});
  if (!program->working_directory.empty()) return;
  program->working_directory = !shown.empty() ? shown : root.working_directory.empty() ? "/" : root.working_directory;
}

Restart RestartOfContainer(Fields container, ContainerKind kind, Restart of_pod) {
  // An init container has to succeed once: for it, the pod's policy Always means OnFailure.
  const bool until_done = kind == ContainerKind::kInit && of_pod == Restart::kAlways;
  return RestartOf(std::move(container), until_done ? Restart::kOnFailure : of_pod);
}

}  // namespace

Restart RestartOf(Fields object, Restart otherwise) {
  const std::string policy = object.Word("restartPolicy", {"Always", "OnFailure", "Never"});
  if (policy == "Always") return Restart::kAlways;
  if (policy == "OnFailure") return Restart::kOnFailure;
  return policy == "Never" ? Restart::kNever : otherwise;
}

StatusOr<ContainerProgram> ContainerOf(Fields container, ContainerKind kind, Restart pod_restart,
                                       const PodVolumes& volumes, const PodInput& input, PodTree* tree) {
  ContainerProgram program;
  program.name = NameOf(container);
  program.restart = RestartOfContainer(container, kind, pod_restart);
  program.sidecar = kind == ContainerKind::kInit && program.restart == Restart::kAlways;
  MUSTER_RETURN_IF_ERROR(input.complaints->status());

  // A subPathExpr uses the variables as the job sets them, before container paths in their values are replaced.
  MUSTER_ASSIGN_OR_RETURN(Variables variables, VariablesOf(container, PodPaths(), input));
  MUSTER_ASSIGN_OR_RETURN(program.mounts, MountsOf(container, volumes, variables, tree));
  AddMessageFile(container, input, &program, tree);
  PodPaths paths;
  if (!input.place.own_root) {
    paths = PathsInsteadOf(container, &program.mounts, input);
    MUSTER_ASSIGN_OR_RETURN(variables, VariablesOf(container, paths, input));
    variables.emplace(kMessageVariable, program.termination_message);
  }
  const ImageRoot* root = StandInFor(container, input.place) != nullptr
                              ? nullptr
                              : RootOfImage(input.place.images, container.Text("image"));
  program.command = CommandOf(container, variables, paths, input.place, root);
  program.environment = EnvironmentOf(
      variables, root == nullptr ? input.place.environment : EnvironmentInRoot(input.place.environment, *root));
  ReadRest(container, kind, paths, input, &program);
  if (root != nullptr && !input.place.own_root) {
    container.Wrong("image",
                    "its files need bubblewrap, which is missing or cannot run here; install it, or let it make user "
                    "namespaces, or omit --oci and --image-root");
  } else if (root != nullptr) {
    UseRoot(*root, input.place, &program);
  }
  MUSTER_RETURN_IF_ERROR(input.complaints->status());
  return program;
}

}  // namespace muster::local
