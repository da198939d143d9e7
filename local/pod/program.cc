// SPDX-License-Identifier: Apache-2.0
#include "local/pod/program.h"

#include <set>

#include "base/text.h"
#include "controller/api/fields.h"
#include "local/pod/container.h"
#include "local/pod/input.h"
#include "local/pod/values.h"
#include "local/pod/volumes.h"

namespace muster::local {

using namespace controller;

namespace {

// spec.hostname, else the pod's name, cut to the length of a host name.
std::string HostNameOf(Fields pod, Fields spec) {
  std::string given = spec.Text("hostname");
  if (!given.empty() && !IsDnsLabel(given))
    spec.Wrong("hostname", given, "is not a name of a host: use only a-z, 0-9 and '-'");
  if (!given.empty()) return given;
  std::string name = pod.Object("metadata").NeedText("name");
  if (!name.empty() && !IsDnsName(name)) {
    pod.Object("metadata").Wrong("name", name, "is not a name of a pod: use only a-z, 0-9, '-' and '.'");
  }
  if (name.size() > kLongestLabel) name.resize(kLongestLabel);
  while (name.ends_with('-') || name.ends_with('.')) name.pop_back();
  return name;
}

std::string SubdomainOf(Fields spec) {
  std::string name = spec.Text("subdomain");
  if (!name.empty() && !IsDnsLabel(name))
    spec.Wrong("subdomain", name, "is not a name of a domain: use only a-z, 0-9 and '-'");
  return name;
}

void ReadTimes(Fields spec, PodProgram* program) {
  if (const auto grace = spec.Int("terminationGracePeriodSeconds", 0)) program->grace = std::chrono::seconds(*grace);
  if (const auto deadline = spec.Int("activeDeadlineSeconds", 1)) program->deadline = std::chrono::seconds(*deadline);
}

Status ReadContainers(Fields spec, const PodInput& input, PodTree* tree, PodProgram* program) {
  MUSTER_ASSIGN_OR_RETURN(const PodVolumes volumes, VolumesOf(spec, input, tree));
  const auto restart = RestartOf(spec, ContainerProgram::Restart::kAlways);
  std::set<std::string> names;
  struct List {
    const char* field;
    ContainerKind kind;
    std::vector<ContainerProgram>* programs;
  };
  for (const List& list : {List{"initContainers", ContainerKind::kInit, &program->init_containers},
                           List{"containers", ContainerKind::kMain, &program->containers}}) {
    for (Fields container : spec.Objects(list.field)) {
      MUSTER_ASSIGN_OR_RETURN(ContainerProgram made, ContainerOf(container, list.kind, restart, volumes, input, tree));
      if (!names.insert(made.name).second) container.Wrong("name", made.name, "is the name of another container, too");
      list.programs->push_back(std::move(made));
    }
  }
  if (program->containers.empty()) spec.Wrong("containers", "it is missing");
  return input.complaints->status();
}

}  // namespace

StatusOr<PodProgram> ProgramOf(const Json& pod, const PodPlace& place, const FindObject& find) {
  Complaints complaints;
  IgnoredFields ignored;
  const PodInput input{pod, place, find, &complaints, &ignored};
  Fields whole(&pod, "", &complaints);
  Fields spec = whole.Object("spec");
  if (!spec) whole.Wrong("spec", "it is missing");
  MUSTER_RETURN_IF_ERROR(complaints.status());

  PodProgram program;
  program.hostname = HostNameOf(whole, spec);
  program.subdomain = SubdomainOf(spec);
  ReadTimes(spec, &program);
  program.limits = LimitsOf(spec);
  PodTree tree;
  tree.Add(PodFolder{.path = place.folder});
  tree.Add(PodFolder{.path = fmt::format("{}/volumes", place.folder), .is_private = true});
  MUSTER_RETURN_IF_ERROR(ReadContainers(spec, input, &tree, &program));
  MUSTER_RETURN_IF_ERROR(tree.Check(spec.PathOf("volumes")));
  NoteIgnored(spec, place.gpus, &ignored);
  program.folders = tree.TakeFolders();
  program.files = tree.Files();
  program.host_paths = tree.TakeHostPaths();
  program.ignored = ignored.Take();
  return program;
}

}  // namespace muster::local
