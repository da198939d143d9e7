// SPDX-License-Identifier: Apache-2.0
#include "local/image/parts.h"

#include <algorithm>

#include "base/json_fields.h"
#include "base/quoted.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/names.h"

namespace muster::local {

using namespace controller;

namespace {

constexpr int kDeepest = 30;       // of JSON
constexpr int kMostIndexes = 4;    // one inside another
constexpr size_t kHexDigits = 64;  // of a SHA-256
constexpr std::string_view kBlobs = "blobs/sha256/";

Status Wrong(std::string_view path, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", path, why));
}

class Reader {
 public:
  Reader(const ReadImageFile& read, std::string_view architecture) : read_(read), architecture_(architecture) {}

  StatusOr<ImageParts> Read() {
    auto index = read_("index.json");
    if (index.ok()) return OfLayout(*index);
    auto manifest = read_("manifest.json");
    if (manifest.ok()) return OfDocker(*manifest);
    return absl::InvalidArgumentError(
        "it has neither index.json nor manifest.json, and so is not an image; make one by `docker save IMAGE`, or by "
        "`skopeo copy docker://IMAGE oci-archive:FILE`");
  }

 private:
  StatusOr<Json> Parse(std::string_view path, std::string_view text) {
    auto json = ReadJson(text, kDeepest);
    if (!json.ok()) return Wrong(path, Message(json.status()));
    return json;
  }

  StatusOr<std::string> PathOfBlob(std::string_view path, const Json& descriptor) {
    const std::string digest = TextField(descriptor, "digest");
    constexpr std::string_view kKind = "sha256:";
    const std::string hex = digest.starts_with(kKind) ? digest.substr(kKind.size()) : "";
    if (hex.size() != kHexDigits || hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return Wrong(path, fmt::format("digest {} is not a sha256:<64 hexadecimal digits>", Quoted(digest)));
    }
    return fmt::format("{}{}", kBlobs, hex);
  }

  StatusOr<Json> Blob(std::string_view path, const Json& descriptor) {
    MUSTER_ASSIGN_OR_RETURN(const std::string blob, PathOfBlob(path, descriptor));
    MUSTER_ASSIGN_OR_RETURN(const std::string text, read_(blob));
    if (Sha256Hex(text) != DigestOfPath(blob))
      return Wrong(blob, "its content does not match its digest: the file is damaged");
    return Parse(blob, text);
  }

  bool IsForThisMachine(const Json& descriptor) const {
    const Json* platform = FindField(descriptor, "platform");
    return platform == nullptr ||
           (TextField(*platform, "os") == "linux" && TextField(*platform, "architecture") == architecture_);
  }

  StatusOr<ImageParts> OfLayout(std::string_view text) {
    std::string path = "index.json";
    MUSTER_ASSIGN_OR_RETURN(Json index, Parse(path, text));
    for (int depth = 0; depth < kMostIndexes; ++depth) {
      std::vector<const Json*> fit;
      for (const Json& one : ListField(index, "manifests")) {
        if (IsForThisMachine(one)) fit.push_back(&one);
      }
      if (fit.empty()) return Wrong(path, fmt::format("it has no image for linux/{}", architecture_));
      if (fit.size() > 1)
        return Wrong(path, fmt::format("it has {} images for this machine; give a file with one", fit.size()));
      MUSTER_ASSIGN_OR_RETURN(path, PathOfBlob(path, *fit[0]));
      MUSTER_ASSIGN_OR_RETURN(Json next, Blob(path, *fit[0]));
      if (FindField(next, "manifests") == nullptr) return OfManifest(path, next);
      index = std::move(next);
    }
    return Wrong(path, "its indexes are nested too deeply");
  }

  StatusOr<ImageParts> OfManifest(std::string_view path, const Json& manifest) {
    MUSTER_ASSIGN_OR_RETURN(const Json config, Blob(path, PartOf(manifest, "config")));
    ImageParts parts{.layers = {}, .settings = Settings(config)};
    for (const Json& layer : ListField(manifest, "layers")) {
      MUSTER_ASSIGN_OR_RETURN(std::string blob, PathOfBlob(path, layer));
      parts.layers.push_back(std::move(blob));
    }
    return Checked(path, std::move(parts));
  }

  StatusOr<ImageParts> OfDocker(std::string_view text) {
    constexpr std::string_view kPath = "manifest.json";
    MUSTER_ASSIGN_OR_RETURN(const Json manifests, Parse(kPath, text));
    if (!manifests.is_array() || manifests.empty()) return Wrong(kPath, "it has no image");
    if (manifests.size() > 1) return Wrong(kPath, fmt::format("it has {} images; save one alone", manifests.size()));
    const std::string path = TextField(manifests[0], "Config");
    if (path.empty()) return Wrong(kPath, "it names no Config");
    MUSTER_ASSIGN_OR_RETURN(const std::string config_text, read_(path));
    MUSTER_ASSIGN_OR_RETURN(const Json config, Parse(path, config_text));
    ImageParts parts{.layers = {}, .settings = Settings(config)};
    for (const Json& layer : ListField(manifests[0], "Layers")) {
      if (layer.is_string()) parts.layers.push_back(layer.get<std::string>());
    }
    return Checked(kPath, std::move(parts));
  }

  static StatusOr<ImageParts> Checked(std::string_view path, ImageParts parts) {
    if (parts.layers.empty() || parts.layers.size() > kMostLayers) {
      return Wrong(path, fmt::format("it has {} layers; 1 to {} are read", parts.layers.size(), kMostLayers));
    }
    return parts;
  }

  static std::vector<std::string> Texts(const Json& object, const char* field) {
    std::vector<std::string> texts;
    for (const Json& text : ListField(object, field)) {
      if (text.is_string()) texts.push_back(text.get<std::string>());
    }
    return texts;
  }

  static ImageRoot Settings(const Json& config) {
    const Json& settings = PartOf(config, "config");
    ImageRoot root{.folder = "",
                   .entrypoint = Texts(settings, "Entrypoint"),
                   .command = Texts(settings, "Cmd"),
                   .environment = Texts(settings, "Env"),
                   .working_directory = TextField(settings, "WorkingDir")};
    std::erase_if(root.environment, [](const std::string& entry) {
      const size_t equals = entry.find('=');
      return equals == std::string::npos || equals == 0 || entry.find('\0') != std::string::npos;
    });
    if (!root.working_directory.starts_with('/')) root.working_directory = fmt::format("/{}", root.working_directory);
    return root;
  }

  const ReadImageFile& read_;
  const std::string_view architecture_;
};

}  // namespace

StatusOr<ImageParts> ReadImageParts(const ReadImageFile& read, std::string_view architecture) {
  return Reader(read, architecture).Read();
}

std::string_view DigestOfPath(std::string_view path) {
  return path.starts_with(kBlobs) ? path.substr(kBlobs.size()) : std::string_view();
}

}  // namespace muster::local
