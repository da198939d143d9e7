// SPDX-License-Identifier: Apache-2.0
// libFuzzer: `muster local` with a user's objects. The first byte chooses. `f`: flags that change a job; the field
// `sets` has those of --set. Else a pod as processes, with mounts, or without them (`h`): `pod` is the pod, and `data`
// is the content of every ConfigMap and Secret.
#include "base/text.h"
#include "controller/api/lenient.h"
#include "local/container/sandbox.h"
#include "local/overrides.h"
#include "local/pod/program.h"
#include "tests/fuzz/input.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr int kDeepest = 100;

bool IsBelow(const std::string& path, std::string_view folder) {
  return path.starts_with(folder) && path.find("/../") == std::string::npos && !path.ends_with("/..");
}

void APod(const Json& object, bool own_root) {
  const PodPlace place{.folder = "/state/pod",
                       .claims = "/state/claims",
                       .address = "127.0.0.2",
                       .machine = "here",
                       .own_root = own_root,
                       .milli_cpus = 2000,
                       .memory_bytes = 1 << 30,
                       .entrypoints = {{"muster", {"/bin/muster"}}}};
  const Json& data = PartOf(object, "data");
  const auto find = [&data](std::string_view, std::string_view) { return data.is_object() ? &data : nullptr; };
  const auto program = ProgramOf(PartOf(object, "pod"), place, find);
  MustBeTold(program.status());
  if (!program.ok()) return;
  for (const PodFile& file : program->files) Must(IsBelow(file.path, "/state/pod/"));
  for (const auto* containers : {&program->init_containers, &program->containers}) {
    for (const ContainerProgram& container : *containers) {
      Must(!container.command.empty());
      Must(own_root || container.mounts.empty());
      for (const PodMount& mount : container.mounts) {
        Must(mount.target.starts_with("/") && (mount.in_memory ? mount.source.empty() : mount.source.starts_with("/")));
      }
      const auto list = [](const std::string& path) {
        return path == "/"
                   ? std::vector<FolderEntry>{{.name = "usr", .is_folder = true}, {.name = "bin", .link = "usr/bin"}}
                   : std::vector<FolderEntry>();
      };
      Must(!SandboxWords({.bwrap = "bwrap",
                          .hostname = "h",
                          .files = {{"/hosts", "/etc/hosts", true}},
                          .mounts = container.mounts},
                         list)
                .empty());
    }
  }
}

void Flags(const Json& object) {
  Overrides overrides{.nodes = CountField(object, "nodes"), .processes = CountField(object, "procs")};
  for (const Json& set : ListField(object, "sets")) {
    if (set.is_string()) overrides.sets.push_back(set.get<std::string>());
  }
  Json job = PartOf(object, "job");
  if (job.is_object()) MustBeTold(Override(overrides, &job));
}

}  // namespace
}  // namespace muster::local

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::local;
  const auto [choice, text] = Choose(data, size);
  const auto object = muster::ReadJson(text, kDeepest);
  if (!object.ok()) return 0;
  if (choice == 'f') {
    Flags(*object);
  } else {
    APod(*object, choice != 'h');
  }
  return 0;
}
