// SPDX-License-Identifier: Apache-2.0
#include "initializers/target/manifest_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace muster::initializers {
namespace {

constexpr size_t kPieceBytes = size_t{256} << 10;  // returned to the kernel when it is freed (initializer_main.cc)

enum Flag : char { kVerified = 1, kUnpacked = 2, kStaged = 4 };

// The layout of a file: time of change and flags (both can be set later), size, texts with their lengths.
constexpr size_t kFlagsAt = sizeof(int64_t);
constexpr size_t kSizeAt = kFlagsAt + 1;
constexpr size_t kTextsAt = kSizeAt + sizeof(uint64_t);
constexpr size_t kMostLength = 5;  // bytes of an encoded length

// Seven bits in a byte; the eighth bit is clear in the last byte.
char* PutLength(size_t length, char* to) {
  for (; length >= 0x80; length >>= 7) *to++ = static_cast<char>(length | 0x80);
  *to++ = static_cast<char>(length);
  return to;
}

char* PutText(std::string_view text, char* to) {
  to = PutLength(text.size(), to);
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

std::string_view TakeText(const char** from) {
  size_t length = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*(*from)++);
    length |= size_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) break;
  }
  return {std::exchange(*from, *from + length), length};
}

template <typename Number>
Number NumberAt(const char* from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

std::string_view PathAt(const char* file) {
  const char* texts = file + kTextsAt;
  return TakeText(&texts);
}

}  // namespace

ManifestFiles::ManifestFiles(std::initializer_list<ManifestFile> files) {
  for (const ManifestFile& file : files) push_back(file);
}

ManifestFiles::ManifestFiles(const ManifestFiles& other) {
  for (const ManifestFile& file : other) push_back(file);
}

ManifestFiles& ManifestFiles::operator=(ManifestFiles other) noexcept {
  std::swap(pieces_, other.pieces_);
  std::swap(used_, other.used_);
  std::swap(room_, other.room_);
  std::swap(files_, other.files_);
  std::swap(as_added_, other.as_added_);
  return *this;
}

void ManifestFiles::push_back(const ManifestFile& file) {
  const size_t texts = file.path.size() + file.hash.size() + file.version.size() + file.archive.size();
  const size_t most = kTextsAt + 4 * kMostLength + texts;
  if (pieces_.empty() || room_ - used_ < most) {
    room_ = std::max(kPieceBytes, most);
    used_ = 0;
    pieces_.push_back({std::unique_ptr<char[]>(new char[room_])});
  }
  char* const begin = pieces_.back().bytes.get() + used_;
  std::memcpy(begin, &file.modified_ns, sizeof file.modified_ns);
  begin[kFlagsAt] = static_cast<char>((file.verified ? kVerified : 0) | (file.unpacked ? kUnpacked : 0) |
                                      (file.staged ? kStaged : 0));
  std::memcpy(begin + kSizeAt, &file.size, sizeof file.size);
  char* end = begin + kTextsAt;
  for (const std::string* text : {&file.path, &file.hash, &file.version, &file.archive}) end = PutText(*text, end);
  used_ += static_cast<size_t>(end - begin);
  ++pieces_.back().files;
  files_.push_back(begin);
}

ManifestFile ManifestFiles::operator[](size_t at) const {
  const char* const begin = files_[at];
  const char flags = begin[kFlagsAt];
  ManifestFile file;
  file.modified_ns = NumberAt<int64_t>(begin);
  file.verified = (flags & kVerified) != 0;
  file.unpacked = (flags & kUnpacked) != 0;
  file.staged = (flags & kStaged) != 0;
  file.size = NumberAt<uint64_t>(begin + kSizeAt);
  const char* texts = begin + kTextsAt;
  for (std::string* text : {&file.path, &file.hash, &file.version, &file.archive}) *text = TakeText(&texts);
  return file;
}

bool ManifestFiles::operator==(const ManifestFiles& other) const {
  if (size() != other.size()) return false;
  for (size_t at = 0; at < size(); ++at) {
    if ((*this)[at] != other[at]) return false;
  }
  return true;
}

std::string_view ManifestFiles::PathOf(size_t at) const { return PathAt(files_[at]); }

void ManifestFiles::SetModified(size_t at, int64_t modified_ns) {
  std::memcpy(files_[at], &modified_ns, sizeof modified_ns);
}

void ManifestFiles::SetStaged(size_t at, bool staged) {
  char& flags = files_[at][kFlagsAt];
  flags = static_cast<char>(staged ? flags | kStaged : flags & ~kStaged);
}

ManifestFile ManifestFiles::PopFront() {
  ManifestFile file = (*this)[0];
  files_.pop_front();
  if (as_added_ && --pieces_.front().files == 0) pieces_.pop_front();
  return file;
}

void ManifestFiles::Sort() {
  as_added_ = false;
  std::sort(files_.begin(), files_.end(), [](const char* a, const char* b) {
    const int order = PathAt(a).compare(PathAt(b));
    return order != 0 ? order < 0 : (a[kFlagsAt] & kStaged) > (b[kFlagsAt] & kStaged);
  });
  files_.erase(
      std::unique(files_.begin(), files_.end(), [](const char* a, const char* b) { return PathAt(a) == PathAt(b); }),
      files_.end());
}

bool ManifestFiles::sorted() const {
  return std::is_sorted(files_.begin(), files_.end(),
                        [](const char* a, const char* b) { return PathAt(a) < PathAt(b); });
}

std::optional<size_t> ManifestFiles::Find(std::string_view path) const {
  const auto found = std::lower_bound(files_.begin(), files_.end(), path,
                                      [](const char* file, std::string_view wanted) { return PathAt(file) < wanted; });
  if (found == files_.end() || PathAt(*found) != path) return std::nullopt;
  return static_cast<size_t>(found - files_.begin());
}

}  // namespace muster::initializers
