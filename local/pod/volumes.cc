// SPDX-License-Identifier: Apache-2.0
#include "local/pod/volumes.h"

#include <algorithm>
#include <filesystem>

#include "base/args_from_env.h"
#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/lenient.h"
#include "controller/api/quantity.h"
#include "controller/plan/agent.h"
#include "local/pod/volume_files.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr char kTypes[] = "emptyDir, hostPath, persistentVolumeClaim, configMap, secret, downwardAPI, projected";

// The type of the volume. Without one it is "emptyDir", the API server's default. Empty: the volume has several.
std::string TypeOf(const Fields& volume) {
  std::string type;
  for (const auto& [field, value] : volume.Whole()->items()) {
    if (field == "name" || value.is_null()) continue;
    if (!type.empty()) {
      volume.complaints()->Wrong(
          volume.path(), fmt::format("it has both {} and {}; take one of them out", Quoted(type), Quoted(field)));
      return "";
    }
    type = field;
  }
  return type.empty() ? "emptyDir" : type;
}

std::optional<int64_t> SizeLimit(Fields source) {
  const Json* value = source.Find("sizeLimit");
  if (value == nullptr) return std::nullopt;
  const auto size = ReadQuantity(*value);
  if (!size.ok() || *size < Quantity()) {
    source.Wrong("sizeLimit", size.ok() ? fmt::format("{} is less than 0", size->Text()) : Message(size.status()));
    return std::nullopt;
  }
  return size->IsZero() ? std::nullopt : std::optional(size->Units());
}

// Why the volume cannot be a tmpfs, which belongs to one container; empty: it can.
std::string WhyOnDisk(const PodInput& input, std::string_view name) {
  if (!input.place.own_root) return "without bubblewrap nothing is mounted";
  int mounts = 0;
  for (const char* list : {"initContainers", "containers"}) {
    for (const Json& container : ListField(PartOf(input.pod, "spec"), list)) {
      for (const Json& mount : ListField(container, "volumeMounts")) {
        if (TextField(mount, "name") != name) continue;
        ++mounts;
        if (FindField(mount, "subPath") != nullptr || FindField(mount, "subPathExpr") != nullptr) {
          return "it is mounted by a subPath";
        }
      }
    }
  }
  return mounts > 1 ? "it is mounted several times" : "";
}

PodVolume EmptyDir(Fields source, const std::string& name, const PodInput& input, PodTree* tree) {
  const std::string folder = fmt::format("{}/volumes/{}", input.place.folder, name);
  const std::string medium = source.Text("medium");
  if (medium.starts_with("HugePages")) {
    input.ignored->Say(source.PathOf("medium"), "huge pages are not mounted: the volume is a folder");
  } else if (!medium.empty() && medium != "Memory") {
    source.Wrong("medium", medium, "is not one of Memory, HugePages, HugePages-SIZE");
  }
  const std::optional<int64_t> bytes = SizeLimit(source);
  if (medium == "Memory") {
    const std::string why = WhyOnDisk(input, name);
    if (why.empty()) return PodVolume{.source = "", .bytes = bytes};
    input.ignored->Say(source.PathOf("medium"), fmt::format("{}: the volume is a folder on this machine's disk", why));
  }
  if (bytes) input.ignored->Say(source.PathOf("sizeLimit"), "the volume is a folder, whose size is not limited");
  tree->Add(PodFolder{.path = folder, .of_agent = name == kAgentContainer});
  return PodVolume{.source = folder};
}

PodVolume OfThisMachine(Fields source, PodTree* tree) {
  const std::string path = source.NeedText("path");
  if (IsTooLong(source, "path", path)) return {};
  const std::string type = source.Word(
      "type", {"DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"});
  const auto parts = Split(path, '/');
  if (!path.empty() && path.front() != '/') source.Wrong("path", path, "is not an absolute path");
  if (std::find(parts.begin(), parts.end(), "..") != parts.end()) source.Wrong("path", path, "must not contain '..'");
  if (!IsForPrograms(path, source.PathOf("path"), source.complaints())) return {};
  PodVolume volume{.source = TidyPath(path)};
  if (type == "DirectoryOrCreate") tree->AddBelow("", volume.source);
  tree->Add(HostPath{.where = source.path(), .path = volume.source, .type = type});
  return volume;
}

PodVolume Claim(Fields source, const PodInput& input, PodTree* tree) {
  const std::string name = source.NeedText("claimName");
  if (!name.empty() && !IsDnsName(name)) {
    source.Wrong("claimName", name, "is not a name of a claim: use only a-z, 0-9, '-' and '.'");
    return {};
  }
  PodVolume volume{.source = fmt::format("{}/{}", input.place.claims, name),
                   .read_only = source.Flag("readOnly", false)};
  tree->Add(PodFolder{.path = input.place.claims});
  tree->Add(PodFolder{.path = volume.source});
  return volume;
}

StatusOr<PodVolume> Make(Fields volume, const std::string& name, const PodInput& input, PodTree* tree) {
  const std::string type = TypeOf(volume);
  MUSTER_RETURN_IF_ERROR(input.complaints->status());
  Fields source = volume.Object(type.c_str());
  if (type == "hostPath") return OfThisMachine(source, tree);
  if (type == "persistentVolumeClaim") return Claim(source, input, tree);

  const std::string folder = fmt::format("{}/volumes/{}", input.place.folder, name);
  if (type == "emptyDir") return EmptyDir(source, name, input, tree);
  if (type != "configMap" && type != "secret" && type != "downwardAPI" && type != "projected") {
    volume.Wrong(type.c_str(),
                 fmt::format("volumes of this type are not served here; {} are: give the folder by hostPath, or by a "
                             "claim",
                             kTypes));
    return PodVolume();
  }
  MUSTER_ASSIGN_OR_RETURN(const VolumeFiles files, FilesOfVolume(source, type, input));
  tree->Add(PodFolder{.path = folder});
  for (const auto& [path, file] : files) {
    if (const size_t slash = path.rfind('/'); slash != std::string::npos) tree->AddBelow(folder, path.substr(0, slash));
    tree->Add(PodFile{.path = fmt::format("{}/{}", folder, path), .text = file.text, .mode = file.mode});
  }
  return PodVolume{.source = folder, .read_only = true};
}

// The path of the mount below the volume; ".": the whole volume.
std::string SubPath(Fields mount, const Variables& variables) {
  const std::string path = mount.Text("subPath"), expression = mount.Text("subPathExpr");
  if (expression.empty()) return PathBelow(mount, "subPath", path.empty() ? "." : path);
  if (!path.empty()) mount.Wrong("subPathExpr", "there is a subPath, too; take one of them out");
  std::string missing;
  const std::string expanded = ExpandReferences(expression, [&](std::string_view name) {
    const auto found = variables.find(name);
    if (found != variables.end() && !found->second.empty()) return found->second;
    missing = name;
    return std::string();
  });
  if (!missing.empty()) mount.Wrong("subPathExpr", expression, fmt::format("needs a value of {}", Quoted(missing)));
  return PathBelow(mount, "subPathExpr", expanded);
}

}  // namespace

void PodTree::Add(PodFolder folder) {
  if (known_.insert(folder.path).second) folders_.push_back(std::move(folder));
}

void PodTree::AddBelow(const std::string& folder, std::string_view relative) {
  std::string path = folder == "/" ? "" : folder;
  for (std::string_view part : Split(relative, '/')) {
    if (part.empty()) continue;
    path += fmt::format("/{}", part);
    Add(PodFolder{.path = path});
  }
}

Status PodTree::Check(std::string_view where) const {
  for (const auto& [path, file] : files_) {
    if (!known_.contains(path)) continue;
    return absl::InvalidArgumentError(fmt::format(
        "{}: {} would be both a file and a folder; give the files of a volume, and subPath, paths that fit together",
        where, Quoted(path)));
  }
  return absl::OkStatus();
}

std::vector<PodFile> PodTree::Files() const {
  std::vector<PodFile> files;
  for (const auto& [path, file] : files_) files.push_back(file);
  return files;
}

StatusOr<PodVolumes> VolumesOf(Fields spec, const PodInput& input, PodTree* tree) {
  PodVolumes volumes;
  for (Fields volume : spec.Objects("volumes")) {
    const std::string name = volume.NeedText("name");
    if (!name.empty() && !IsDnsLabel(name))
      volume.Wrong("name", name, "is not a name of a volume: use only a-z, 0-9 and '-'");
    if (volumes.contains(name)) volume.Wrong("name", name, "is the name of another volume, too");
    MUSTER_RETURN_IF_ERROR(input.complaints->status());
    MUSTER_ASSIGN_OR_RETURN(volumes[name], Make(volume, name, input, tree));
  }
  MUSTER_RETURN_IF_ERROR(input.complaints->status());
  return volumes;
}

StatusOr<std::vector<PodMount>> MountsOf(Fields container, const PodVolumes& volumes, const Variables& variables,
                                         PodTree* tree) {
  std::vector<PodMount> mounts;
  std::set<std::string> targets;
  for (Fields mount : container.Objects("volumeMounts")) {
    const std::string name = mount.NeedText("name"), target = TargetOf(mount, "mountPath"),
                      below = SubPath(mount, variables);
    const auto volume = volumes.find(name);
    if (volume == volumes.end()) mount.Wrong("name", name, "is not a volume of the pod");
    if (!targets.insert(target).second) mount.Wrong("mountPath", target, "is the place of another mount, too");
    MUSTER_RETURN_IF_ERROR(mount.complaints()->status());

    PodMount made{.source = volume->second.source,
                  .target = target,
                  .read_only = volume->second.read_only || mount.Flag("readOnly", false),
                  .in_memory = volume->second.source.empty(),
                  .bytes = volume->second.bytes};
    if (below != ".") made.source = TidyPath(fmt::format("{}/{}", made.source, below));
    if (below != "." && !tree->HasFile(made.source)) tree->AddBelow(volume->second.source, below);
    mounts.push_back(std::move(made));
  }
  MUSTER_RETURN_IF_ERROR(container.complaints()->status());
  std::sort(mounts.begin(), mounts.end(), [](const PodMount& a, const PodMount& b) { return a.target < b.target; });
  return mounts;
}

bool IsTooLong(Fields object, const char* field, std::string_view path) {
  constexpr size_t kLongest = 4095;  // PATH_MAX without the NUL
  if (path.size() <= kLongest) return false;
  object.Wrong(field, fmt::format("it has more than {} bytes, the most that a path of Linux has", kLongest));
  return true;
}

std::string TargetOf(Fields object, const char* field) {
  const std::string path = object.NeedText(field);
  if (IsTooLong(object, field, path)) return "";
  std::string target = TidyPath(fmt::format("/{}", path));
  const auto parts = Split(path, '/');
  if (std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    object.Wrong(field, path, "must not contain '..'");
  } else if (!path.empty() && target == "/") {
    object.Wrong(field, path, "is the container's root; give a path below it");
  }
  IsForPrograms(path, object.PathOf(field), object.complaints());
  return target;
}

std::string TidyPath(std::string_view path) {
  std::string tidy = std::filesystem::path(path).lexically_normal().string();
  while (tidy.size() > 1 && tidy.back() == '/') tidy.pop_back();
  return tidy;
}

}  // namespace muster::local
