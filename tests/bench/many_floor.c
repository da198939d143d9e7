// SPDX-License-Identifier: Apache-2.0
// What 128 launchers cost at least: each of 128 processes has one worker (probe.c) and a socket to this process.
//
// A restart: a byte to each ends its worker; it answers when the worker has ended. After the last answer another byte
// to each starts its new worker. The end: a byte ends the worker and the process. No log, no record, no variables but
// those that the probe reports. Usage: PROBE_PIPE=FIFO many_floor PROBE. Prints the milliseconds of a restart and of
// the end.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMany = 128 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static pid_t start_worker(char* probe, int rank, char* pipe_variable) {
  char rank_variable[32];
  snprintf(rank_variable, sizeof rank_variable, "RANK=%d", rank);
  char* environment[] = {rank_variable, "WORLD_SIZE=128", pipe_variable, NULL};
  char* arguments[] = {probe, NULL};
  pid_t pid = vfork();
  if (pid == 0) {
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execve(probe, arguments, environment);
    _exit(1);
  }
  return pid;
}

static void launch(int peer, char* probe, int rank, char* pipe_variable) {
  pid_t worker = start_worker(probe, rank, pipe_variable);
  for (char order; read(peer, &order, 1) == 1;) {
    if (order == 'g') worker = start_worker(probe, rank, pipe_variable);
    if (order == 'g') continue;
    kill(-worker, SIGTERM);
    waitpid(worker, NULL, 0);
    if (order == 'e' || write(peer, &order, 1) != 1) _exit(0);
  }
  _exit(1);
}

// Waits for one line of each worker.
static void await_workers(int reports) {
  for (int lines = 0; lines < kMany;) {
    char text[4096];
    ssize_t got = read(reports, text, sizeof text);
    if (got <= 0) exit(1);
    for (ssize_t i = 0; i < got; ++i) lines += text[i] == '\n';
  }
}

static void order_all(const int* peers, char order) {
  for (int i = 0; i < kMany; ++i) {
    if (write(peers[i], &order, 1) != 1) exit(1);
  }
}

int main(int count, char** arguments) {
  if (count != 2 || getenv("PROBE_PIPE") == NULL) return 64;
  char pipe_variable[512];
  snprintf(pipe_variable, sizeof pipe_variable, "PROBE_PIPE=%s", getenv("PROBE_PIPE"));
  int reports = open(getenv("PROBE_PIPE"), O_RDWR | O_CLOEXEC);
  int peers[kMany];
  for (int i = 0; i < kMany; ++i) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 1;
    if (fork() == 0) {
      close(ends[0]);
      launch(ends[1], arguments[1], i, pipe_variable);
    }
    close(ends[1]);
    peers[i] = ends[0];
  }
  await_workers(reports);
  double began = now();
  order_all(peers, 's');
  for (int i = 0; i < kMany; ++i) {
    char answer;
    if (read(peers[i], &answer, 1) != 1) return 1;
  }
  order_all(peers, 'g');
  await_workers(reports);
  double restarted = now();
  printf("%.1f ", restarted - began);
  usleep(500000);
  began = now();
  order_all(peers, 'e');
  while (wait(NULL) > 0) continue;
  printf("%.1f\n", now() - began);
  return 0;
}
