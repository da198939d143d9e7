// SPDX-License-Identifier: Apache-2.0
#include "initializers/archives/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/quoted.h"
#include "base/text.h"
#include "initializers/archives/decompress.h"
#include "initializers/archives/zip_window.h"
#include "initializers/facts/entry_path.h"

namespace muster::initializers {
namespace {

constexpr size_t kReadAtOnce = size_t{256} << 10;  // bytes
constexpr std::array<std::string_view, 6> kEndings = {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst", ".zip"};

// "./a/b/" -> "a/b": a tar of "." has such paths. Other paths are not corrected.
std::string_view Plain(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  if (path.ends_with('/')) path.remove_suffix(1);
  return path == "." ? std::string_view() : path;
}

// The path in the archive of `link`, relative to the folder of `path`; nullopt: it leads out of the archive.
std::optional<std::string> TargetOf(std::string_view path, std::string_view link) {
  if (link.starts_with('/')) return std::nullopt;
  std::vector<std::string> elements;
  const size_t slash = path.rfind('/');
  const std::string whole =
      slash == std::string_view::npos ? std::string(link) : fmt::format("{}/{}", path.substr(0, slash), link);
  for (std::string_view element : Split(whole, '/')) {
    if (element.empty() || element == ".") continue;
    if (element != "..") {
      elements.emplace_back(element);
    } else if (elements.empty()) {
      return std::nullopt;
    } else {
      elements.pop_back();
    }
  }
  return Join(elements, "/");
}

// Sets a UTF-8 locale for this thread: libarchive converts names to the thread's character set, and drops others.
class InUtf8 {
 public:
  InUtf8() : before_(uselocale(Utf8())) {}
  ~InUtf8() { uselocale(before_); }
  InUtf8(const InUtf8&) = delete;
  InUtf8& operator=(const InUtf8&) = delete;

 private:
  static locale_t Utf8() {
    static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    return utf8;
  }
  const locale_t before_;
};

// The text in UTF-8 if the archive declares that, else its raw bytes. Nullopt: there is none.
template <typename Utf8, typename Bytes>
std::optional<std::string> TextOf(archive_entry* entry, Utf8 utf8, Bytes bytes) {
  const char* text = utf8(entry);
  if (text == nullptr) text = bytes(entry);
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

}  // namespace

bool IsArchiveName(std::string_view path) {
  const std::string name = Lower(path.substr(path.rfind('/') + 1));
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return name.size() > ending.size() && name.ends_with(ending); });
}

bool IsZstdName(std::string_view path) { return IsArchiveName(path) && Lower(path.substr(path.size() - 3)) == "zst"; }

class ArchiveReader::Impl {
 public:
  Impl(Descriptor file, std::string name, WindowLimits& windows)
      : windows_(windows),
        file_(std::move(file)),
        name_(std::move(name)),
        archive_(archive_read_new(), &archive_read_free) {}

  Status Open() {
    InUtf8 names;
    archive* const reader = archive_.get();
    char magic[2] = {};
    if (pread(file_.get(), magic, sizeof magic, 0) == 2 && std::string_view(magic, 2) == "PK") {
      archive_read_support_format_zip_seekable(reader);
      return archive_read_open_fd(reader, file_.get(), kReadAtOnce) == ARCHIVE_OK ? absl::OkStatus() : Broken();
    }
    MUSTER_ASSIGN_OR_RETURN(content_, Decompressor::Make(file_.get(), windows_));
    archive_read_support_format_tar(reader);
    const int code = archive_read_open(reader, this, nullptr, &Impl::OnRead, nullptr);
    return code == ARCHIVE_OK ? absl::OkStatus() : Broken();
  }

  StatusOr<std::optional<Member>> Next(const std::function<bool(std::string_view)>& wanted) {
    InUtf8 names;
    while (true) {
      archive_entry* entry = nullptr;
      const int code = archive_read_next_header(archive_.get(), &entry);
      if (code == ARCHIVE_EOF) return ReadToTheEnd();
      if (code != ARCHIVE_OK && code != ARCHIVE_WARN) return Broken();
      const auto raw = TextOf(entry, archive_entry_pathname_utf8, archive_entry_pathname);
      if (!raw) return Bad("a member without a name");
      Member member;
      member.path = Plain(*raw);
      if (member.path.empty() || !wanted(member.path)) continue;  // empty: the top of the archive
      MUSTER_RETURN_IF_ERROR(Annotate(CheckEntryPath(member.path), name_));
      MUSTER_RETURN_IF_ERROR(Describe(entry, &member));
      if (!content_) MUSTER_RETURN_IF_ERROR(Annotate(EnterZip(member), name_));
      return member;
    }
  }

  StatusOr<size_t> Read(char* bytes, size_t length) {
    const la_ssize_t got = archive_read_data(archive_.get(), bytes, length);
    if (got < 0) return Broken();
    return static_cast<size_t>(got);
  }

 private:
  static la_ssize_t OnRead(archive* reader, void* data, const void** buffer) {
    auto& self = *static_cast<Impl*>(data);
    auto bytes = self.content_->Next();
    if (!bytes.ok()) {
      self.failed_ = bytes.status();
      archive_set_error(reader, EIO, "%s", std::string(Message(bytes.status())).c_str());
      return -1;
    }
    *buffer = bytes->data();
    return static_cast<la_ssize_t>(bytes->size());
  }
  // Reads on after the end of the tar: the checksum of the compressed stream comes last.
  StatusOr<std::optional<Member>> ReadToTheEnd() {
    while (content_) {
      auto bytes = content_->Next();
      if (!bytes.ok()) {
        failed_ = bytes.status();
        return Broken(Message(failed_));
      }
      if (bytes->empty()) break;
    }
    return std::nullopt;
  }
  Status Describe(archive_entry* entry, Member* member) const {
    if (archive_entry_is_encrypted(entry) != 0) return Bad(fmt::format("{} is encrypted", Quoted(member->path)));
    if (auto link = TextOf(entry, archive_entry_hardlink_utf8, archive_entry_hardlink)) {
      return Lead("", *link, member);
    }
    switch (archive_entry_filetype(entry)) {
      case AE_IFDIR:
        member->kind = Member::Kind::kFolder;
        return absl::OkStatus();
      case AE_IFLNK: {
        auto link = TextOf(entry, archive_entry_symlink_utf8, archive_entry_symlink);
        return Lead(member->path, link.value_or(""), member);
      }
      case AE_IFREG:
        if (archive_entry_size_is_set(entry) == 0 || archive_entry_size(entry) < 0) {
          return Bad(fmt::format("{} has no size in the archive", Quoted(member->path)));
        }
        member->size = static_cast<uint64_t>(archive_entry_size(entry));
        return absl::OkStatus();
      default:
        return Bad(fmt::format("{} is a device, a pipe or a socket", Quoted(member->path)));
    }
  }
  // Call it before the member is decompressed: libarchive bounds no window. It has read the file up to the content.
  Status EnterZip(const Member& member) {
    std::string_view method = archive_format_name(archive_.get());  // "ZIP 6.3 (lzma)"
    method.remove_prefix(std::min(method.rfind('(') + 1, method.size()));
    method = method.substr(0, method.find(')'));
    std::string header(kMemberHeader, '\0');
    const ssize_t got = pread(file_.get(), header.data(), header.size(), archive_filter_bytes(archive_.get(), 0));
    if (got < 0) return ErrnoStatus(errno, "reading");
    header.resize(static_cast<size_t>(got));
    const uint64_t window = WindowOfMember(method, header, member.size);
    return TakeWindow(window, fmt::format("{}: {}: its window", Quoted(member.path), method),
                      std::min(windows_.beside, windows_.of_zip), windows_, &alone_);
  }
  Status Lead(std::string_view from, std::string_view link, Member* member) const {
    member->kind = Member::Kind::kLink;
    auto target = TargetOf(from, link);
    if (!target || target->empty()) {
      return Bad(fmt::format("{} is a link to {}, out of the archive", Quoted(member->path), Quoted(link)));
    }
    member->target = *std::move(target);
    return absl::OkStatus();
  }
  Status Bad(std::string_view what) const {
    return absl::InvalidArgumentError(fmt::format("{}: {}; leave it out with --ignore", name_, what));
  }
  Status Broken() const {
    const char* text = archive_error_string(archive_.get());
    return Broken(text == nullptr ? "it cannot be read" : text);
  }
  Status Broken(std::string_view what) const {
    if (absl::IsResourceExhausted(failed_)) return Annotate(failed_, name_);
    return absl::DataLossError(fmt::format(
        "{}: {}; it is broken, or not a tar, tar.gz, tar.zst or zip: leave it out with --ignore, or bring it "
        "in without --extract",
        name_, what));
  }

  WindowLimits& windows_;
  std::unique_lock<std::mutex> alone_;  // held from the first large window of a zip member on
  const Descriptor file_;
  const std::string name_;
  std::unique_ptr<Decompressor> content_;  // decompressed bytes of a tar; null: a zip
  Status failed_;                          // error of content_
  const std::unique_ptr<archive, int (*)(archive*)> archive_;
};

StatusOr<std::unique_ptr<ArchiveReader>> ArchiveReader::Open(Descriptor file, std::string name, WindowLimits& windows) {
  auto impl = std::make_unique<Impl>(std::move(file), std::move(name), windows);
  MUSTER_RETURN_IF_ERROR(impl->Open());
  return std::unique_ptr<ArchiveReader>(new ArchiveReader(std::move(impl)));
}

ArchiveReader::ArchiveReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ArchiveReader::~ArchiveReader() = default;
StatusOr<std::optional<Member>> ArchiveReader::Next(const std::function<bool(std::string_view)>& wanted) {
  return impl_->Next(wanted);
}
StatusOr<size_t> ArchiveReader::Read(char* bytes, size_t length) { return impl_->Read(bytes, length); }

}  // namespace muster::initializers
