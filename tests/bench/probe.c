// The worker of the launcher's benchmarks: says when it started and who it is, then waits to be told.
//
// One line into the pipe $PROBE_PIPE (shorter than PIPE_BUF, so lines never mix), with the monotonic clock read first thing;
// then it sleeps. SIGTERM kills it at once, SIGUSR1 makes it end with 3. Plain C and static: its own start costs nothing.
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
