// SPDX-License-Identifier: Apache-2.0
// Checks the path below the target at which an object is stored: it must not leave the target or collide with another.
//
// Object names are untrusted input: "..", a leading slash, "//", NUL, names beyond the file system's limits, two names
// that collide on disk ("a" and "a/b"; equal names). Such an object is an error that names it and the remedy
// (--ignore); it is never skipped in silence and never renamed. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::initializers {

inline constexpr size_t kLongestPathElement = 255;  // bytes; the limit of ext4 and xfs
inline constexpr size_t kLongestPath = 3072;  // bytes below the target; PATH_MAX minus room for the path of the target
inline constexpr std::string_view kOwnFolder = ".muster";  // at the top of the target; only Muster writes there

// OK if `path` may be written below a target: not empty, no empty, "." or ".." element, no NUL, within the limits, not
// inside kOwnFolder, UTF-8 (as in all stores; the manifest is JSON). A trailing '/' marks a folder. A backslash is an
// ordinary character, though some systems take it for a slash. InvalidArgument names object, fault and remedy.
Status CheckEntryPath(std::string_view path);

// Finds collisions among the paths of one listing. Each path has passed CheckEntryPath.
class EntryPaths {
 public:
  // AlreadyExists names both objects: the same file twice, or a file where another object needs a folder. After an
  // error, EntryPaths must not be used any more. A folder may be added again.
  Status Add(std::string_view path);

 private:
  // A tree that holds each element's name once, however deep the paths are; packed, as there is one for each file.
  using Id = uint64_t;  // position of the name in pieces_; 0: the target itself
  struct Name {
    Id folder = 0;  // that contains the name
    bool is_folder = false;
    std::string_view text;
  };
  Name At(Id id) const;
  Id Append(const Name& name);
  // The index in table_ of the name in that folder, or the free index at which to insert it.
  size_t PlaceOf(Id folder, std::string_view text) const;
  void Grow();
  std::string PathBelow(Id folder, std::string path) const;

  std::vector<std::unique_ptr<char[]>> pieces_;  // the packed names
  size_t used_ = 0;                              // bytes used of the last piece
  std::vector<uint32_t> table_;                  // hash table of ids, in units of kUnit; 0: free
  size_t count_ = 0;                             // number of names
};

// Matches as Python's fnmatchcase does, which the other clients use: `*` and `?` also match '/'; `[seq]`, `[!seq]`; a
// backslash is an ordinary character; a character is a UTF-8 character. A trailing '/' means everything below, as in
// the client of the Hugging Face hub.
bool MatchesPattern(std::string_view pattern, std::string_view path);

// True if some `include` matches (or there is none), and no `ignore` does.
bool IsWanted(std::string_view path, const std::vector<std::string>& include, const std::vector<std::string>& ignore);

bool MatchesAny(const std::vector<std::string>& patterns, std::string_view path);

// Finds `ignore` patterns such as ".pth", the end of a name without a wildcard: they match only a file of that name.
class BareEndings {
 public:
  explicit BareEndings(const std::vector<std::string>& ignore);
  void Add(std::string_view wanted);       // the path of a file that no pattern leaves out
  std::vector<std::string> Texts() const;  // for people: a text for each pattern with which such files end

 private:
  std::map<std::string, size_t> counts_;
};

// True if the folder "a/b/", or anything that can be below it, may be wanted. False: nothing below it is wanted,
// whatever its name, so the folder need not be read.
bool MayHoldWanted(std::string_view folder, const std::vector<std::string>& include,
                   const std::vector<std::string>& ignore);

}  // namespace muster::initializers
