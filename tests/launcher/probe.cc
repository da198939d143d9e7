// SPDX-License-Identifier: Apache-2.0
// A worker that reports what it was given, and misbehaves on demand. It links no library, so every descriptor that it
// sees was inherited.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

int Descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  std::vector<int> numbers;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder)) numbers.push_back(atoi(entry->d_name));
  }
  closedir(folder);
  std::sort(numbers.begin(), numbers.end());
  for (int number : numbers) printf("%d ", number);
  printf("\n");
  return 0;
}

int Signals() {
  FILE* status = fopen("/proc/self/status", "r");
  char line[256];
  while (fgets(line, sizeof line, status) != nullptr) {
    if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0) fputs(line, stdout);
  }
  return 0;
}

int Identity() {
  int death_signal = 0;
  prctl(PR_GET_PDEATHSIG, &death_signal);
  printf("leader=%d session=%d death_signal=%d\n", getpid() == getpgrp(), getpid() == getsid(0), death_signal);
  return 0;
}

int Lines(int count) {
  for (int i = 0; i < count; ++i) printf("line %d\n", i);
  return 0;
}

// Makes a process in its own session, whose parent ends. It writes its pid to the file.
int Daemon(const char* file) {
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    for (int i = 0; i < 3; ++i) close(i);
    std::string next = std::string(file) + ".new";
    FILE* out = fopen(next.c_str(), "w");
    fprintf(out, "%d\n", getpid());
    fclose(out);
    rename(next.c_str(), file);
    for (;;) pause();
  }
  for (;;) pause();
}

int Work() {
  std::vector<char> memory(64 << 20, 1);
  unsigned sum = 0;
  for (int round = 0; round < 20; ++round) {
    for (char byte : memory) sum = sum * 31 + byte;
  }
  return sum == 1 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "descriptors") return Descriptors();
  if (what == "signals") return Signals();
  if (what == "identity") return Identity();
  if (what == "lines") return Lines(atoi(argv[2]));
  if (what == "daemon") return Daemon(argv[2]);
  if (what == "work") return Work();
  if (what == "usr1") {  // ends with 9 on SIGUSR1
    signal(SIGUSR1, [](int) { _exit(9); });
    printf("up\n");
    fflush(stdout);
    for (;;) pause();
  }
  if (what == "core") {
    rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &unlimited);
    abort();
  }
  if (what == "fill") {  // one byte after the other, without end of line
    for (long left = atol(argv[2]); left > 0; --left) putchar('x');
    return 0;
  }
  return 64;
}
