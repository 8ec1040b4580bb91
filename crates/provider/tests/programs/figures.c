/* What an MPI's messages cost between two ranks: figures as lines of JSON, of medians.
 *
 *     figures latency BYTES...    one-way time of a ping-pong, half of the median round trip
 *     figures stream              64 messages of 64 KiB, then an answer: bytes a second
 *     figures rate                messages of 8 bytes, 64 under way: messages a second
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, CHUNK = 64 << 10, TAG = 7, REPEATS = 31 };

static int rank;
static char *data;

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static void ping(int bytes) {
    int other = !rank;
    if (rank == 0) MPI_Send(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
    MPI_Recv(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
}

static void latency(int bytes) {
    int count = bytes <= 4096 ? 20000 : bytes <= 65536 ? 3000 : 300;
    double *spans = malloc(count * sizeof *spans);
    for (int i = 0; i < count / 10 + 10; i++) ping(bytes);
    for (int i = 0; i < count; i++) {
        double begun = MPI_Wtime();
        ping(bytes);
        spans[i] = (MPI_Wtime() - begun) * 1e6 / 2;
    }
    double half = median(spans, count);
    if (rank == 0)
        printf("{\"what\":\"latency\",\"bytes\":%d,\"median\":%.3f,\"min\":%.3f,\"p99\":%.3f}\n",
               bytes, half, spans[0], spans[count * 99 / 100]);
    free(spans);
}

/* One window of messages of `bytes` from rank 0 to rank 1, and its answer. */
static void window(int bytes, int count) {
    MPI_Request requests[WINDOW];
    for (int done = 0; done < count; done += WINDOW) {
        for (int i = 0; i < WINDOW; i++) {
            char *at = data + (size_t)i * bytes;
            if (rank == 0)
                MPI_Isend(at, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Irecv(at, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    }
    char answer = 0;
    if (rank == 0)
        MPI_Recv(&answer, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&answer, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

static void flow(const char *what, int bytes, int count, double each) {
    double spans[REPEATS];
    for (int i = 0; i < 5; i++) window(bytes, count);
    for (int i = 0; i < REPEATS; i++) {
        double begun = MPI_Wtime();
        window(bytes, count);
        spans[i] = MPI_Wtime() - begun;
    }
    double span = median(spans, REPEATS);
    if (rank == 0)
        printf("{\"what\":\"%s\",\"bytes\":%d,\"median\":%.3f,\"best\":%.3f}\n", what, bytes,
               count * each / span, count * each / spans[0]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != 2 || argc < 2) {
        if (rank == 0) fprintf(stderr, "use: two ranks; figures latency BYTES... | stream | rate\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    size_t room = (size_t)WINDOW * CHUNK;
    data = malloc(room);
    memset(data, rank + 1, room);
    if (!strcmp(argv[1], "latency"))
        for (int i = 2; i < argc; i++) latency(atoi(argv[i]));
    else if (!strcmp(argv[1], "stream"))
        flow("stream", CHUNK, WINDOW, CHUNK / 1e6);
    else if (!strcmp(argv[1], "rate"))
        flow("rate", 8, 100 * WINDOW, 1);
    MPI_Finalize();
    return 0;
}
