// Where an object lands: a relative path below the target that leaves it in no way, and does not collide with another.
//
// Object names are outside bytes: "..", a leading slash, "//", NUL, backslashes that some systems take for slashes,
// names beyond the file system's limits, two that are one on disk ("a" and "a/b"; equal names). Such an object is an
// error that names it and the remedy (--ignore), never skipped in silence and never renamed. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace muster::initializers {

inline constexpr size_t kLongestPathElement = 255;         // bytes; ext4's, xfs's
inline constexpr size_t kLongestPath = 3072;               // bytes below the target; PATH_MAX less room for the target
inline constexpr std::string_view kOwnFolder = ".muster";  // at the top of the target: ours alone

// OK where `path` may be written below a target: not empty, no empty, "." or ".." element, no NUL, within the limits,
// not inside kOwnFolder, UTF-8 (as every store's names are; the manifest is JSON). A '/' at its end says that it is a
// folder. A backslash is an ordinary character. InvalidArgument says what is wrong with which object, and what to do.
Status CheckEntryPath(std::string_view path);

// The paths of one listing, against each other. Each has passed CheckEntryPath.
class EntryPaths {
 public:
  // AlreadyExists names both objects: the same file twice, or one a file where the other needs a folder. After an error
  // the object is of no more use. A folder may be named again.
  Status Add(std::string_view path);

 private:
  // A tree: each element's name is held once, however deep the paths are.
  using Id = uint32_t;
  struct Entry {
    Id id = 0;
    bool folder = false;
  };
  std::string PathBelow(Id folder, std::string path) const;

  std::unordered_map<std::string, Entry> entries_;  // the folder's id in four bytes, then the name
};

// fnmatch as Python's fnmatchcase, which every peer uses: `*` and `?` match '/' too, `[seq]`, `[!seq]`; a backslash is
// an ordinary character; a character is one of UTF-8. As the hub's client has it, a '/' at the end means everything
// below.
bool MatchesPattern(std::string_view pattern, std::string_view path);

// An entry is wanted: some `include` matches (or there is none), and no `ignore` does.
bool IsWanted(std::string_view path, const std::vector<std::string>& include, const std::vector<std::string>& ignore);

}  // namespace muster::initializers
