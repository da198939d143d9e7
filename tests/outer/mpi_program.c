// SPDX-License-Identifier: Apache-2.0
/* The program of the MPI tests: a ring and a sum over all ranks, then what the arguments say.
 *
 * Before a rank ends or dies, it waits until no other rank expects anything from it. A rank that is inside MPI at that
 * moment would take the closed socket for an error of its own (14 in Open MPI 5), and the two codes would race.
 *
 *   (nothing)         ends
 *   exit RANK CODE    that rank ends with the code
 *   abort RANK CODE   that rank calls MPI_Abort with the code
 *   signal RANK NUM   that rank kills itself
 *   once FILE CODE    as abort 1 CODE if FILE does not exist, and makes it
 *   hang              every rank prints its process id and waits
 *   firsthangs FILE   as hang if FILE does not exist, and makes it
 */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns at `leaver` when all others have sent their last message; a message is on its way when its send returns. */
static void part(int leaver, int rank, int size) {
  int word = 0, i;
  if (rank != leaver) {
    MPI_Recv(&word, 1, MPI_INT, leaver, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&word, 1, MPI_INT, leaver, 2, MPI_COMM_WORLD);
    return;
  }
  for (i = 0; i < size; ++i) /* makes the connections; a send without one would wait for it */
    if (i != leaver) MPI_Send(&word, 1, MPI_INT, i, 1, MPI_COMM_WORLD);
  for (i = 0; i < size; ++i)
    if (i != leaver) MPI_Recv(&word, 1, MPI_INT, i, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
  int rank, size, sum = 0, token = 0;
  char host[256] = "";
  const char *mode = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  gethostname(host, sizeof host - 1);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank > 0) MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  token += 1;
  MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Recv(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("ring %d\n", token);
  }
  printf("rank %d of %d on %s sum %d\n", rank, size, host, sum);
  fflush(stdout);
  int ends = strcmp(mode, "exit") == 0 || strcmp(mode, "abort") == 0 || strcmp(mode, "signal") == 0;
  const int leaver = ends ? atoi(argv[2]) : 1;
  if (strcmp(mode, "once") == 0) {
    ends = rank == leaver && open(argv[2], O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0;
    MPI_Bcast(&ends, 1, MPI_INT, leaver, MPI_COMM_WORLD);
  }
  if (ends) {
    const int code = atoi(argv[3]);
    part(leaver, rank, size);
    if (rank == leaver && strcmp(mode, "exit") == 0) exit(code);
    if (rank == leaver && strcmp(mode, "signal") == 0) kill(getpid(), code); /* another thread may get it: no abort meanwhile */
    if (rank == leaver && strcmp(mode, "signal") != 0) MPI_Abort(MPI_COMM_WORLD, code);
    sleep(1000); /* until the runtime ends it */
  }
  int hangs = strcmp(mode, "hang") == 0;
  if (strcmp(mode, "firsthangs") == 0) {
    hangs = rank == 0 && open(argv[2], O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0;
    MPI_Bcast(&hangs, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  if (hangs) {
    printf("pid %d\n", getpid());
    fflush(stdout);
    for (;;) pause();
  }
  MPI_Finalize();
  return 0;
}
