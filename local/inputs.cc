// SPDX-License-Identifier: Apache-2.0
#include "local/inputs.h"

#include <filesystem>

#include "base/path_search.h"
#include "base/print.h"
#include "base/quoted.h"
#include "base/settings_file.h"
#include "base/text.h"
#include "local/image/archive.h"
#include "local/state/state_check.h"

namespace muster::local {

using namespace controller;

namespace {

namespace fs = std::filesystem;

// Makes the object of --secret or --config-map: each file of the folder is a key.
StatusOr<Json> ObjectOfFolder(const char* kind, const char* flag, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return absl::InvalidArgumentError(fmt::format("{} {}: want NAME=FOLDER", flag, Quoted(text)));
  }
  const std::string folder = text.substr(equals + 1);
  Json data = Json::object();
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file()) continue;
    const auto content = ReadSettingsFile(it->path().string());
    if (!content.ok()) return Annotate(content.status(), flag);
    data[it->path().filename().string()] = *content;
  }
  if (error)
    return absl::InvalidArgumentError(fmt::format("{} {}: {}: {}", flag, Quoted(text), folder, error.message()));
  return Json{{"apiVersion", "v1"},
              {"kind", kind},
              {"metadata", {{"name", text.substr(0, equals)}}},
              {std::string_view(kind) == "Secret" ? "stringData" : "data", std::move(data)}};
}

std::string Program(const std::string& name, const Environment& environment) {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path() / name;
  const HostFs files;
  if (files.IsExecutable(own.string())) return own.string();
  return FindOnPath(name, environment.Get("PATH").value_or(""), files);
}

}  // namespace

const std::set<std::string_view>& ObjectsOfPods() {
  static const std::set<std::string_view> kKinds = {"ConfigMap", "Secret", "PersistentVolumeClaim"};
  return kKinds;
}

Status PutObjects(const LocalFlags& flags, const std::vector<InputFile>& files, World* world) {
  for (const std::string& text : flags.secrets) {
    MUSTER_ASSIGN_OR_RETURN(Json object, ObjectOfFolder("Secret", "--secret", text));
    MUSTER_RETURN_IF_ERROR(world->Create(std::move(object), WallNow()).status());
  }
  for (const std::string& text : flags.config_maps) {
    MUSTER_ASSIGN_OR_RETURN(Json object, ObjectOfFolder("ConfigMap", "--config-map", text));
    MUSTER_RETURN_IF_ERROR(world->Create(std::move(object), WallNow()).status());
  }
  MUSTER_ASSIGN_OR_RETURN(const std::vector<FileObject> objects, ReadFileObjects(files));
  for (const FileObject& object : objects) {
    if (!ObjectsOfPods().contains(object.kind)) continue;
    const auto made = world->Create(object.document.object, WallNow());
    if (!made.ok()) return object.Wrong(Message(made.status()));
  }
  return absl::OkStatus();
}

LocalPrograms FindPrograms(const Environment& environment) {
  return {.bwrap = Program("bwrap", environment),
          .muster = Program("muster", environment),
          .initializer = Program("muster-initializer", environment)};
}

StatusOr<LocalRunOptions> OptionsOf(const LocalFlags& flags, const Environment& environment,
                                    const LocalPrograms& programs, const std::string& state, const std::string& folder,
                                    const std::string& agent) {
  LocalRunOptions options{.folder = folder, .claims = state + "/claims"};
  MUSTER_ASSIGN_OR_RETURN(options.work_folder, WorkFolder(flags.work_folder));
  if (!flags.work_folder.empty()) options.shown_folder = options.work_folder;
  for (const std::string& text : flags.image_roots) {
    const ImageFlag flag = ReadImageFlag(text);
    MUSTER_ASSIGN_OR_RETURN(options.images[flag.image], ReadImageRoot(flag.path));
  }
  for (const std::string& text : flags.image_files) {
    const ImageFlag flag = ReadImageFlag(text);
    const auto tell = [](const std::string& what) { PrintTo(stderr, "muster local: --oci {}\n", what); };
    auto root = UnpackImage(flag.path, state + "/images", tell);
    if (!root.ok()) return Annotate(root.status(), "--oci");
    options.images[flag.image] = *std::move(root);
  }
  options.entrypoints["muster"] = {agent};
  if (!programs.initializer.empty()) {
    options.entrypoints["muster-initializer"] = {programs.initializer};
    for (const char* kind : {"dataset", "model"}) {  // upstream's images do the same
      for (const char* place : {"kubeflow", "kubeflow/trainer"}) {
        options.entrypoints[fmt::format("{}/{}-initializer", place, kind)] = {programs.initializer, kind};
      }
    }
  }
  for (const char* name : {"PATH", "HOME", "LANG", "TERM"}) {
    const std::string value = environment.Get(name).value_or("");
    if (!value.empty()) options.environment.push_back(fmt::format("{}={}", name, value));
  }
  for (const std::string& text : flags.drills) {
    MUSTER_ASSIGN_OR_RETURN(Drill drill, ParseDrill(text));
    options.drills.push_back(std::move(drill));
  }
  return options;
}

}  // namespace muster::local
