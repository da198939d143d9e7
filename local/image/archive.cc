// SPDX-License-Identifier: Apache-2.0
#include "local/image/archive.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/descriptors.h"
#include "base/quoted.h"
#include "base/replace_file.h"
#include "base/text.h"
#include "controller/plan/names.h"
#include "local/image/layer.h"
#include "local/image/parts.h"
#include "local/image/root_files.h"

namespace muster::local {

using namespace controller;

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostJson = size_t{4} << 20;  // bytes of an index, a manifest or a configuration
constexpr size_t kReadAtOnce = size_t{256} << 10;
constexpr char kUnfinished[] = ".part";

// This machine's architecture, by the name that images use.
std::string Architecture() {
  utsname machine{};
  uname(&machine);
  const std::string_view name = machine.machine;
  return name == "x86_64" ? "amd64" : name == "aarch64" ? "arm64" : std::string(name);
}

Status ReadPieces(int file, const std::string& name, const std::function<Status(std::string_view)>& take) {
  const auto bytes = std::make_unique<char[]>(kReadAtOnce);
  for (;;) {
    const ssize_t count = read(file, bytes.get(), kReadAtOnce);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, name);
    if (count == 0) return absl::OkStatus();
    MUSTER_RETURN_IF_ERROR(take({bytes.get(), static_cast<size_t>(count)}));
  }
}

StatusOr<std::string> SmallFile(int folder, const std::string& path) {
  MUSTER_ASSIGN_OR_RETURN(const Descriptor file, OpenInRoot(folder, path, O_RDONLY | O_NONBLOCK));
  std::string text;
  MUSTER_RETURN_IF_ERROR(ReadPieces(file.get(), path, [&](std::string_view piece) -> Status {
    text += piece;
    if (text.size() <= kMostJson) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("{}: it has more than {} MiB", path, kMostJson >> 20));
  }));
  return text;
}

StatusOr<std::string> Sha256OfFile(int file, const std::string& name) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) != 1)
    return absl::UnavailableError("OpenSSL has no SHA-256");
  MUSTER_RETURN_IF_ERROR(ReadPieces(file, name, [&hash](std::string_view piece) -> Status {
    EVP_DigestUpdate(hash.get(), piece.data(), piece.size());
    return absl::OkStatus();
  }));
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  EVP_DigestFinal_ex(hash.get(), bytes, &length);
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return hex;
}

StatusOr<Descriptor> OpenFolder(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.ok()) return ErrnoStatus(errno, path);
  return folder;
}

StatusOr<Descriptor> MadeFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return absl::UnavailableError(fmt::format("{}: it cannot be made: {}", path, error.message()));
  return OpenFolder(path);
}

// The digest of the image's index, which names the other parts.
StatusOr<std::string> KeyOf(const Descriptor& image, const std::string& path, bool is_folder) {
  for (const char* name : {"index.json", "manifest.json"}) {
    const auto text = is_folder ? SmallFile(image.get(), name) : FileInTar(image.get(), path, name, kMostJson);
    if (!is_folder && lseek(image.get(), 0, SEEK_SET) != 0) return ErrnoStatus(errno, path);
    if (text.ok()) return Sha256Hex(*text);
    if (!absl::IsNotFound(text.status())) return text.status();
  }
  return Sha256Hex("");  // ReadImageParts says what is wrong
}

class Unpacker {
 public:
  Unpacker(const std::string& path, const std::string& images, const std::function<void(const std::string&)>& say)
      : path_(path), images_(images), say_(say) {}

  StatusOr<ImageRoot> Run() {
    const Descriptor image(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat kind {};
    if (!image.ok() || fstat(image.get(), &kind) != 0) return ErrnoStatus(errno, Quoted(path_));
    if (!S_ISREG(kind.st_mode) && !S_ISDIR(kind.st_mode)) {
      return absl::InvalidArgumentError(fmt::format("{}: it is neither a file nor a folder", Quoted(path_)));
    }
    MUSTER_ASSIGN_OR_RETURN(const std::string key, KeyOf(image, Quoted(path_), S_ISDIR(kind.st_mode)));
    folder_ = fmt::format("{}/{}", images_, key);
    MUSTER_RETURN_IF_ERROR(MadeFolder(images_).status());
    const Descriptor lock(open((images_ + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!lock.ok()) return ErrnoStatus(errno, images_ + "/lock");
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      say_("waits for another `muster local`, which unpacks an image");
      if (flock(lock.get(), LOCK_EX) != 0) return ErrnoStatus(errno, images_ + "/lock");
    }
    std::error_code ignored;
    if (!fs::exists(folder_, ignored)) {
      const Status made = Annotate(Make(image, S_ISDIR(kind.st_mode)), Quoted(path_));
      if (!made.ok()) fs::remove_all(folder_ + kUnfinished, ignored);
      MUSTER_RETURN_IF_ERROR(made);
    }
    return Known();
  }

 private:
  // The unpacked root. Its settings come from the image's JSON files, which are kept beside it.
  StatusOr<ImageRoot> Known() {
    MUSTER_ASSIGN_OR_RETURN(const Descriptor kept, OpenFolder(folder_ + "/image"));
    MUSTER_ASSIGN_OR_RETURN(ImageParts parts, Parts(kept.get()));
    parts.settings.folder = folder_ + "/root";
    return std::move(parts.settings);
  }

  StatusOr<ImageParts> Parts(int folder) {
    const ReadImageFile read = [folder](const std::string& path) { return SmallFile(folder, path); };
    return ReadImageParts(read, Architecture());
  }

  Status Make(const Descriptor& image, bool is_folder) {
    RemoveUnfinished();
    say_(fmt::format("{}: unpacks it; later runs use the unpacked files", Quoted(path_)));
    const std::string part = folder_ + kUnfinished;
    MUSTER_ASSIGN_OR_RETURN(const Descriptor kept, MadeFolder(part + "/image"));
    MUSTER_ASSIGN_OR_RETURN(const Descriptor root, MadeFolder(part + "/root"));
    uint64_t left_out = 0;
    if (!is_folder) MUSTER_RETURN_IF_ERROR(UnpackTar(image.get(), "the file", kept.get(), {}, &left_out));
    const int from = is_folder ? image.get() : kept.get();
    MUSTER_ASSIGN_OR_RETURN(const ImageParts parts, Parts(from));
    left_out = 0;
    for (const std::string& layer : parts.layers) {
      MUSTER_ASSIGN_OR_RETURN(const Descriptor file, OpenInRoot(from, layer, O_RDONLY));
      if (const std::string_view digest = DigestOfPath(layer); !digest.empty()) {
        MUSTER_ASSIGN_OR_RETURN(const std::string is, Sha256OfFile(file.get(), layer));
        if (is != digest)
          return absl::DataLossError(
              fmt::format("{}: its content does not match its digest: the file is damaged", layer));
        if (lseek(file.get(), 0, SEEK_SET) != 0) return ErrnoStatus(errno, layer);
      }
      MUSTER_RETURN_IF_ERROR(UnpackTar(file.get(), layer, root.get(), {.whiteouts = true}, &left_out));
    }
    if (left_out > 0) say_(fmt::format("{}: {} devices, pipes and sockets are left out", Quoted(path_), left_out));
    MUSTER_RETURN_IF_ERROR(KeepWhatItSays(from, part));
    std::error_code error;
    fs::rename(part, folder_, error);
    return error ? absl::UnavailableError(fmt::format("{}: {}", folder_, error.message())) : absl::OkStatus();
  }

  // Keeps the JSON files alone: the layers are not needed again.
  static Status KeepWhatItSays(int from, const std::string& part) {
    const std::string kept = part + "/image", said = part + "/said";
    Status wrong;
    const ReadImageFile read = [&](const std::string& path) -> StatusOr<std::string> {
      MUSTER_ASSIGN_OR_RETURN(std::string text, SmallFile(from, path));
      const std::string target = fs::path(said + "/" + path).lexically_normal().string();
      if (!target.starts_with(said + "/"))
        return absl::InvalidArgumentError(fmt::format("{}: it leads out of the image", path));
      std::error_code error;
      fs::create_directories(fs::path(target).parent_path(), error);
      if (wrong.ok()) wrong = ReplaceFile(target, text);
      return text;
    };
    MUSTER_RETURN_IF_ERROR(ReadImageParts(read, Architecture()).status());
    MUSTER_RETURN_IF_ERROR(wrong);
    std::error_code error;
    fs::remove_all(kept, error);
    if (!error) fs::rename(said, kept, error);
    return error ? absl::UnavailableError(fmt::format("{}: {}", kept, error.message())) : absl::OkStatus();
  }

  void RemoveUnfinished() {
    std::error_code error;
    std::vector<fs::path> unfinished;
    for (fs::directory_iterator it(images_, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() == kUnfinished) unfinished.push_back(it->path());
    }
    for (const fs::path& one : unfinished) fs::remove_all(one, error);
  }

  const std::string& path_;
  const std::string& images_;
  const std::function<void(const std::string&)>& say_;
  std::string folder_;
};

}  // namespace

StatusOr<ImageRoot> UnpackImage(const std::string& path, const std::string& images,
                                const std::function<void(const std::string&)>& say) {
  return Unpacker(path, images, say).Run();
}

}  // namespace muster::local
