// Where an object lands: a relative path below the target that leaves it in no way, and does not collide with another.
//
// Object names are outside bytes: "..", a leading slash, "//", NUL, backslashes that some systems take for slashes,
// names beyond the file system's limits, two that are one on disk ("a" and "a/b"; equal names). Such an object is an
// error that names it and the remedy (--ignore), never skipped in silence and never renamed. Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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
  // A tree: each element's name is held once, however deep the paths are; packed, as there are as many as files.
  using Id = uint64_t;  // where its name is: 0 the target itself
  struct Name {
    Id folder = 0;  // that it is in
    bool is_folder = false;
    std::string_view text;
  };
  Name At(Id id) const;
  Id Append(const Name& name);
  // Of the name in that folder, in table_: its place, or the free one where it would be.
  size_t PlaceOf(Id folder, std::string_view text) const;
  void Grow();
  std::string PathBelow(Id folder, std::string path) const;

  std::vector<std::unique_ptr<char[]>> pieces_;  // of names
  size_t used_ = 0;                              // bytes of the last
  std::vector<uint32_t> table_;                  // of ids in units of kUnit; 0: free
  size_t count_ = 0;                             // of names
};

// fnmatch as Python's fnmatchcase, which every peer uses: `*` and `?` match '/' too, `[seq]`, `[!seq]`; a backslash is
// an ordinary character; a character is one of UTF-8. As the hub's client has it, a '/' at the end means everything
// below.
bool MatchesPattern(std::string_view pattern, std::string_view path);

// An entry is wanted: some `include` matches (or there is none), and no `ignore` does.
bool IsWanted(std::string_view path, const std::vector<std::string>& include, const std::vector<std::string>& ignore);

// Some pattern matches.
bool MatchesAny(const std::vector<std::string>& patterns, std::string_view path);

// Whether the folder "a/b/", or anything that can be below it, may be wanted. False: none of it is, whatever its name,
// so that the folder need not be read.
bool MayHoldWanted(std::string_view folder, const std::vector<std::string>& include,
                   const std::vector<std::string>& ignore);

}  // namespace muster::initializers
