// SPDX-License-Identifier: Apache-2.0
// The files of a manifest (manifest.h), packed. There may be millions; a struct takes three times its text.
//
// Elements are returned as copies. Only const calls are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace muster::initializers {

struct ManifestFile {
  std::string path;  // relative; a trailing slash ("dir/") marks an empty folder
  uint64_t size = 0;
  std::string hash;         // "sha256:...": computed while it was written (digest.h, Describe); empty for a folder, and
                            // where none was computed (--verify=size)
  bool verified = false;    // the store published that hash; false: only we computed it
  std::string version;      // the version in the store: ETag, generation, git id
  int64_t modified_ns = 0;  // time of change of the file on disk: a later change is seen without reading the file
  bool unpacked = false;    // an archive (--extract): its members are in the target, the archive itself is not
  std::string archive;      // path of the archive that it was unpacked from; empty: none
  bool staged = false;      // it is still in the staging folder; not in the text
  bool operator==(const ManifestFile&) const = default;
};

class ManifestFiles {
 public:
  class Iterator;

  ManifestFiles() = default;
  ManifestFiles(std::initializer_list<ManifestFile> files);
  ManifestFiles(const ManifestFiles& other);
  ManifestFiles(ManifestFiles&&) = default;
  ManifestFiles& operator=(ManifestFiles other) noexcept;

  void push_back(const ManifestFile& file);
  size_t size() const { return files_.size(); }
  bool empty() const { return files_.empty(); }
  ManifestFile operator[](size_t at) const;
  Iterator begin() const;
  Iterator end() const;
  bool operator==(const ManifestFiles& other) const;

  std::string_view PathOf(size_t at) const;  // valid until the file is removed
  void SetModified(size_t at, int64_t modified_ns);
  void SetStaged(size_t at, bool staged);

  // Removes and returns the first file. Frees its memory too if the files are still in the order of insertion.
  ManifestFile PopFront();
  // Sorts by the bytes of the paths. Of several files with one path it keeps one, a staged one if there is any.
  void Sort();
  bool sorted() const;
  // The files must be sorted.
  std::optional<size_t> Find(std::string_view path) const;

 private:
  struct Piece {
    std::unique_ptr<char[]> bytes;
    size_t files = 0;
  };

  std::deque<Piece> pieces_;
  size_t used_ = 0, room_ = 0;  // bytes used of the last piece, and its size
  std::deque<char*> files_;
  bool as_added_ = true;
};

class ManifestFiles::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = ManifestFile;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = ManifestFile;

  Iterator(const ManifestFiles* files, size_t at) : files_(files), at_(at) {}
  ManifestFile operator*() const { return (*files_)[at_]; }
  Iterator& operator++() {
    ++at_;
    return *this;
  }
  bool operator==(const Iterator&) const = default;

 private:
  const ManifestFiles* files_;
  size_t at_;
};

inline ManifestFiles::Iterator ManifestFiles::begin() const { return {this, 0}; }
inline ManifestFiles::Iterator ManifestFiles::end() const { return {this, size()}; }

}  // namespace muster::initializers
