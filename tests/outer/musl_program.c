// SPDX-License-Identifier: Apache-2.0
/* A program of an image whose libc is musl: prints its rank and the user's home folder, ends with the code argv[1]. */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const char* rank = getenv("RANK");
  struct passwd* user = getpwuid(getuid());
  printf("rank %s, home %s\n", rank ? rank : "none", user ? user->pw_dir : "none");
  return argc > 1 ? atoi(argv[1]) : 0;
}
