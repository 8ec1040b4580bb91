/*
 * Ranks that send short and long messages around and check what comes: ring [TURNS]
 *
 * Rank 0 says `busy` once all have done so, and `all passed` after so many turns. Without TURNS they
 * go on until they are killed.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT 100
#define LONG 200000

int main(int count, char **words)
{
    static char block[LONG];
    int rank, ranks, turns = count > 1 ? atoi(words[1]) : 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    for (int turn = 0; turns == 0 || turn < turns; turn++) {
        int length = turn % 2 ? LONG : SHORT;
        memset(block, rank + turn, length);
        MPI_Sendrecv_replace(block, length, MPI_CHAR, right, 7, left, 7, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
        for (int at = 0; at < length; at++)
            if (block[at] != (char)(left + turn)) {
                printf("rank %d, turn %d: byte %d of %d from %d is %d, not %d\n", rank, turn, at,
                       length, left, block[at], (char)(left + turn));
                fflush(stdout);
                MPI_Abort(MPI_COMM_WORLD, 9);
            }
        if (turn != 10) continue;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) { printf("busy\n"); fflush(stdout); }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("all passed\n");
    MPI_Finalize();
    return 0;
}
