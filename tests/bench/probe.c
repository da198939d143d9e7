// SPDX-License-Identifier: Apache-2.0
// The worker of the launcher's benchmarks: reports its start time and its rank, then sleeps.
//
// Reads the monotonic clock first, then writes one line into the pipe $PROBE_PIPE. The line is shorter than PIPE_BUF,
// so lines never mix. SIGTERM kills it at once, SIGUSR1 makes it end with 3. Plain C and static: it starts very fast.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void end_with_3(int number) {
  (void)number;
  _exit(3);
}

static const char* value(const char* name) {
  const char* text = getenv(name);
  return text && *text ? text : "-";
}

int main(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  signal(SIGUSR1, end_with_3);
  char line[512];
  int length = snprintf(line, sizeof line, "%lld %d %d %s %s %s %s %s\n", now.tv_sec * 1000000000LL + now.tv_nsec, getpid(),
                        getppid(), value("RANK"), value("WORLD_SIZE"), value("GROUP_RANK"), value("MASTER_PORT"),
                        value("MUSTER_ROUND"));
  int pipe = open(value("PROBE_PIPE"), O_WRONLY);
  if (pipe < 0 || write(pipe, line, (size_t)length) != length) return 1;
  close(pipe);
  for (;;) pause();
}
