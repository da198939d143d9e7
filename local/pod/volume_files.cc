// SPDX-License-Identifier: Apache-2.0
#include "local/pod/volume_files.h"

#include <algorithm>

#include "base/quoted.h"
#include "base/text.h"
#include "local/pod/objects.h"
#include "local/pod/values.h"
#include "local/pod/volumes.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr int kMostMode = 0777, kUsualMode = 0644;
constexpr int kOfSecrets = 0700;  // the copies on this machine's disk are for the user alone

void Put(const std::string& path, std::string text, int mode, VolumeFiles* files) {
  if (!path.empty()) (*files)[path] = VolumeFile{std::move(text), mode};
}

// The path of an item's file below the volume; empty: it is wrong.
std::string PathOfItem(Fields item) {
  const std::string given = item.NeedText("path");
  std::string path = PathBelow(item, "path", given);
  if (path == ".") item.Wrong("path", given, "is the volume itself; name a file below it");
  if (path.starts_with("..")) item.Wrong("path", given, "must not start with '..'");
  return path;
}

// Without items, each key becomes the name of a file. The API server allows letters, digits, '-', '_', '.' in keys.
bool IsKey(std::string_view key) {
  constexpr size_t kLongestKey = 253;
  return !key.empty() && key.size() <= kLongestKey && key != "." && !key.starts_with("..") &&
         std::all_of(key.begin(), key.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                  c == '.';
         });
}

void AllKeys(const Fields& source, const ObjectData& data, int mode, VolumeFiles* files) {
  for (const auto* values : {&data.bytes, &data.texts}) {
    for (const auto& [key, value] : *values) {
      if (!IsKey(key)) {
        source.complaints()->Wrong(source.path(), std::string_view(key),
                                   fmt::format("is not a key that {} {} can have: it has letters, digits, '-', '_' and "
                                               "'.', and does not begin with '..'",
                                               data.kind, Quoted(data.name)));
      }
      Put(key, value, mode, files);
    }
  }
}

StatusOr<VolumeFiles> OfObject(Fields source, const char* name_field, std::string_view kind, int mode,
                               const PodInput& input) {
  VolumeFiles files;
  MUSTER_ASSIGN_OR_RETURN(const auto data, DataOf(source, name_field, kind, input.find));
  const auto items = source.Objects("items");
  if (data && items.empty()) AllKeys(source, *data, mode, &files);
  for (Fields item : items) {
    const std::string key = item.NeedText("key");
    const std::string path = PathOfItem(item);
    const int own_mode = item.Int("mode", 0, kMostMode).value_or(mode);
    const std::string* value = data ? data->Find(key) : nullptr;
    if (value != nullptr) {
      Put(path, *value, own_mode, &files);
    } else if (!source.Flag("optional", false)) {
      MUSTER_RETURN_IF_ERROR(input.complaints->status());
      return NoSuchKey(item.PathOf("key"), key, *data);
    }
  }
  return files;
}

StatusOr<VolumeFiles> OfSecret(Fields source, const char* name_field, int mode, const PodInput& input) {
  auto files = OfObject(std::move(source), name_field, "Secret", mode, input);
  if (!files.ok()) return files;
  for (auto& [path, file] : *files) file.mode &= kOfSecrets;
  return files;
}

VolumeFiles OfPod(Fields source, int mode, const PodInput& input) {
  VolumeFiles files;
  for (Fields item : source.Objects("items")) {
    const std::string path = PathOfItem(item);
    const int own_mode = item.Int("mode", 0, kMostMode).value_or(mode);
    Fields field = item.Object("fieldRef"), resource = item.Object("resourceFieldRef");
    if (static_cast<bool>(field) == static_cast<bool>(resource)) {
      input.complaints->Wrong(item.path(), "it needs one of fieldRef and resourceFieldRef");
    } else {
      Put(path, field ? FieldValue(field, FieldUse::kFile, input) : ResourceValue(resource, nullptr, input), own_mode,
          &files);
    }
  }
  return files;
}

StatusOr<VolumeFiles> OfSource(Fields source, int mode, const PodInput& input) {
  if (Fields secret = source.Object("secret")) return OfSecret(secret, "name", mode, input);
  if (Fields map = source.Object("configMap")) return OfObject(map, "name", "ConfigMap", mode, input);
  if (Fields pod = source.Object("downwardAPI")) return OfPod(pod, mode, input);
  for (const char* cluster : {"serviceAccountToken", "clusterTrustBundle", "podCertificate"}) {
    if (source.Find(cluster) == nullptr) continue;
    input.ignored->Say(source.PathOf(cluster), "only a cluster can give it: its files are left out");
    return VolumeFiles();
  }
  input.complaints->Wrong(source.path(), "it has none of secret, configMap, downwardAPI; no other source is served");
  return VolumeFiles();
}

}  // namespace

std::string PathBelow(Fields object, const char* name, std::string_view path) {
  if (path.empty() || IsTooLong(object, name, path)) return "";
  const auto parts = Split(path, '/');
  if (path.front() == '/') {
    object.Wrong(name, path, "is an absolute path; give one below the volume");
  } else if (std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    object.Wrong(name, path, "must not contain '..'");
  } else if (path.find('\0') != std::string_view::npos) {
    object.Wrong(name, path, "has a byte 0, which no path can have");
  } else {
    return TidyPath(path);
  }
  return "";
}

StatusOr<VolumeFiles> FilesOfVolume(Fields source, std::string_view type, const PodInput& input) {
  const int mode = source.Int("defaultMode", 0, kMostMode).value_or(kUsualMode);
  if (type == "secret") return OfSecret(source, "secretName", mode, input);
  if (type == "configMap") return OfObject(source, "name", "ConfigMap", mode, input);
  if (type == "downwardAPI") return OfPod(source, mode, input);
  VolumeFiles files;
  for (const Fields& part : source.Objects("sources")) {
    MUSTER_ASSIGN_OR_RETURN(const VolumeFiles more, OfSource(part, mode, input));
    for (const auto& [path, file] : more) files[path] = file;
  }
  return files;
}

}  // namespace muster::local
