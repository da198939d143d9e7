// SPDX-License-Identifier: Apache-2.0
// Starts a program that is packaged with its shared libraries. It is bin/NAME of a package; NAME is the program's name:
//
//   bin/NAME            this file, static
//   lib/NAME/NAME       the program
//   lib/NAME/ld-*.so.*  the loader of the libc beside it
//   lib/NAME/lib*.so.*  its libraries
//
// So the program uses no library of the machine: it runs where the libc is older, or where there is none. The package
// may be unpacked anywhere, and links may lead to bin/NAME. Arguments, environment and descriptors are passed on
// unchanged. Exit code: the program's; 127 if a file of the package is missing, 126 if one cannot be executed.
// The program finds bin/NAME by base/own_program.h.

#include <glob.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace {

constexpr int kCannotExecute = 126, kNotFound = 127;

int Fail(const std::string& name, const std::string& what, int error) {
  std::fprintf(stderr, "%s: %s: %s; unpack the whole package, whose folders bin and lib stay side by side\n",
               name.c_str(), what.c_str(), std::strerror(error));
  return error == ENOENT ? kNotFound : kCannotExecute;
}

std::string LoaderIn(const std::string& folder) {
  glob_t found{};
  const bool is_there = glob((folder + "/ld-*.so.*").c_str(), 0, nullptr, &found) == 0;
  std::string loader = is_there ? found.gl_pathv[0] : folder + "/ld.so";
  globfree(&found);
  return loader;
}

}  // namespace

int main(int argc, char** argv) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Fail(argc > 0 ? argv[0] : "muster", "/proc/self/exe", error.value());
  const std::string name = self.filename(), folder = self.parent_path().parent_path() / "lib" / name;
  const std::string program = folder + "/" + name, loader = LoaderIn(folder);
  if (access(program.c_str(), X_OK) != 0) return Fail(name, program, errno);

  // The cache of the machine's loader lists the machine's libraries.
  std::vector<const char*> words = {loader.c_str(), "--inhibit-cache", "--library-path",
                                    folder.c_str(), "--argv0",         argc > 0 ? argv[0] : name.c_str(),
                                    program.c_str()};
  for (int i = 1; i < argc; ++i) words.push_back(argv[i]);
  words.push_back(nullptr);
  execv(loader.c_str(), const_cast<char* const*>(words.data()));
  return Fail(name, loader, errno);
}
