// SPDX-License-Identifier: Apache-2.0
// libFuzzer: what `muster local --oci` is given. The first byte chooses: `t` a tar as the image's own file has it, `l`
// one as a layer has it, with whiteouts; else the JSON of an image, as a list of texts. The first is index.json, or
// manifest.json where the first byte is `m`. In a text, "@N" is the digest of the N-th text, which has to come later.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#include "base/descriptors.h"
#include "base/text.h"
#include "controller/api/lenient.h"
#include "controller/plan/names.h"
#include "local/image/layer.h"
#include "local/image/parts.h"
#include "local/image/root_files.h"
#include "tests/fuzz/input.h"

namespace muster::local {

using namespace controller;

namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 4;
constexpr size_t kMostTexts = 10;
constexpr uint64_t kMostMembers = 100;

std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

void Parts(std::string_view text, bool of_docker) {
  const auto list = ReadJson(text, kDeepest);
  if (!list.ok() || !list->is_array() || list->empty() || list->size() > kMostTexts) return;
  std::vector<std::string> texts;
  for (const Json& one : *list) texts.push_back(one.is_string() ? one.get<std::string>() : "");
  std::map<std::string, std::string> files;
  for (size_t i = texts.size(); i-- > 0;) {
    const std::string digest = Sha256Hex(texts[i]);
    files["blobs/sha256/" + digest] = texts[i];
    for (size_t before = 0; before < i; ++before)
      texts[before] = Replaced(texts[before], fmt::format("@{}", i), digest);
  }
  files[of_docker ? "manifest.json" : "index.json"] = texts[0];
  const ReadImageFile read = [&files](const std::string& path) -> StatusOr<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return absl::NotFoundError(fmt::format("no file {}", path));
    return found->second;
  };
  const auto parts = ReadImageParts(read, "amd64");
  MustBeTold(parts.status());
  if (!parts.ok()) return;
  Must(!parts->layers.empty() && parts->layers.size() <= kMostLayers);
  Must(parts->settings.working_directory.starts_with('/'));
  for (const std::string& entry : parts->settings.environment) Must(entry.find('=') != std::string::npos);
}

// A folder in memory, removed at the end of the process.
struct MemoryFolder {
  MemoryFolder() {
    char name[] = "/dev/shm/muster-image-fuzz-XXXXXX";
    path = mkdtemp(name);
  }
  ~MemoryFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

// Nothing lands beside the root, and all in it may be removed.
void Unpack(std::string_view bytes, bool is_layer) {
  static const MemoryFolder memory;
  const fs::path& around = memory.path;
  const Descriptor file(memfd_create("fuzz", MFD_CLOEXEC));
  if (write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) return;
  Must(lseek(file.get(), 0, SEEK_SET) == 0);
  fs::create_directory(around / "root");
  {
    const Descriptor root(open((around / "root").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    uint64_t left_out = 0;
    MustBeTold(UnpackTar(file.get(), "fuzz.tar", root.get(),
                         {.whiteouts = is_layer, .limits = {.members = kMostMembers, .free = 0}}, &left_out));
  }
  size_t beside = 0;
  for (fs::directory_iterator it(around), end; it != end; ++it) ++beside;
  Must(beside == 1);
  fs::remove_all(around / "root");
  Must(lseek(file.get(), 0, SEEK_SET) == 0);
  const auto found = FileInTar(file.get(), "fuzz.tar", "index.json", 1 << 20);
  MustBeTold(found.status());
}

}  // namespace
}  // namespace muster::local

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::local;
  const auto [choice, text] = Choose(data, size);
  if (choice == 't' || choice == 'l') {
    Unpack(text, choice == 'l');
  } else {
    Parts(text, choice == 'm');
  }
  return 0;
}
