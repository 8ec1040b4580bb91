/* What an MPI's messages cost between two ranks: figures as lines of JSON, of medians.
 *
 *     figures latency BYTES...      one-way time of a ping-pong, half of the median round trip
 *     figures bw BYTES...           64 messages from one rank to the other, then an answer: MB/s
 *     figures bibw BYTES...         the same in both directions at once: MB/s of both
 *     figures rate BYTES...         64 messages under way: messages a second
 *     figures allreduce BYTES...    time of an MPI_Allreduce
 *     figures alltoall BYTES...     time of an MPI_Alltoall, with so many bytes to each rank
 *     figures line 0                nothing but what is said below
 *
 * What is measured is that of the OSU micro-benchmarks of these names (rate: osu_mbw_mr).
 *
 * Before and after each figure the ranks pass a cache line to and fro, in a file beside the
 * program that both map, and each figure says what that took: "line_ns", of one way. On a machine
 * that runs beside others this may change within a run, and every stack gets slower with it, so
 * only figures with the same are comparable.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WINDOW = 64, LARGEST = 4 << 20, TAG = 7, REPEATS = 31 };

static int rank;
/* What is sent, and where it arrives. */
static char *data, *room;

/* The line that passes from rank to rank. */
static atomic_uint *line;

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count) {
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

/* What it takes until the other core has a cache line, in ns: the median of many short spells. */
static double line_ns(void) {
    enum { SPELLS = 101, PASSES = 200 };
    double spells[SPELLS];
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) atomic_store(line, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    for (unsigned spell = 0, pass = 0; spell < SPELLS; spell++) {
        double begun = MPI_Wtime();
        for (unsigned last = pass + 2 * PASSES; pass < last; pass += 2)
            if (rank == 0) {
                atomic_store(line, pass + 1);
                while (atomic_load(line) != pass + 2);
            } else {
                while (atomic_load(line) != pass + 1);
                atomic_store(line, pass + 2);
            }
        spells[spell] = (MPI_Wtime() - begun) * 1e9 / (2 * PASSES);
    }
    return median(spells, SPELLS);
}

static atomic_uint *mapped_line(const char *program) {
    char path[4096];
    snprintf(path, sizeof path, "%s.line", program);
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096)) return NULL;
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

static void ping(int bytes) {
    int other = !rank;
    if (rank == 0) MPI_Send(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
    MPI_Recv(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(data, bytes, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
}

/* The median time of `action`, in us, which takes part of it at rank 0. */
static void timed(const char *what, void (*action)(int), int bytes, double part) {
    int count = bytes <= 4096 ? 20000 : bytes <= 65536 ? 3000 : 300;
    double *spans = malloc(count * sizeof *spans);
    for (int i = 0; i < count / 10 + 10; i++) action(bytes);
    for (int i = 0; i < count; i++) {
        double begun = MPI_Wtime();
        action(bytes);
        spans[i] = (MPI_Wtime() - begun) * 1e6 * part;
    }
    double middle = median(spans, count);
    if (rank == 0)
        printf("{\"what\":\"%s\",\"bytes\":%d,\"median\":%.3f,\"min\":%.3f,\"p99\":%.3f,",
               what, bytes, middle, spans[0], spans[count * 99 / 100]);
    free(spans);
}

static void allreduce(int bytes) {
    MPI_Allreduce(data, room, bytes / sizeof(float), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(int bytes) {
    MPI_Alltoall(data, bytes, MPI_BYTE, room, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* Windows of messages from rank 0 to rank 1, or in both directions, and an answer. */
static void windows(int bytes, int count, int both) {
    MPI_Request requests[2 * WINDOW];
    for (int done = 0; done < count; done += WINDOW) {
        int begun = 0;
        for (int i = 0; i < WINDOW; i++)
            if (rank == 1 || both)
                MPI_Irecv(room, bytes, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, &requests[begun++]);
        for (int i = 0; i < WINDOW; i++)
            if (rank == 0 || both)
                MPI_Isend(data, bytes, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, &requests[begun++]);
        MPI_Waitall(begun, requests, MPI_STATUSES_IGNORE);
    }
    char answer = 0;
    if (rank == 0)
        MPI_Recv(&answer, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(&answer, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

/* What passes in a second, if each message counts as `each`. */
static void flow(const char *what, int bytes, int count, int both, double each) {
    double spans[REPEATS];
    for (int i = 0; i < 5; i++) windows(bytes, count, both);
    for (int i = 0; i < REPEATS; i++) {
        double begun = MPI_Wtime();
        windows(bytes, count, both);
        spans[i] = MPI_Wtime() - begun;
    }
    double span = median(spans, REPEATS);
    if (rank == 0)
        printf("{\"what\":\"%s\",\"bytes\":%d,\"median\":%.3f,\"best\":%.3f,", what, bytes,
               count * each / span, count * each / spans[0]);
}

/* Whether there is such a figure; for one size. */
static int measure(const char *what, int bytes) {
    double before = line_ns();
    if (!strcmp(what, "latency"))
        timed(what, ping, bytes, 0.5);
    else if (!strcmp(what, "allreduce"))
        timed(what, allreduce, bytes, 1);
    else if (!strcmp(what, "alltoall"))
        timed(what, alltoall, bytes, 1);
    else if (!strcmp(what, "bw"))
        flow(what, bytes, WINDOW, 0, bytes / 1e6);
    else if (!strcmp(what, "bibw"))
        flow(what, bytes, WINDOW, 1, 2 * bytes / 1e6);
    else if (!strcmp(what, "rate"))
        flow(what, bytes, 100 * WINDOW, 0, 1);
    else if (strcmp(what, "line"))
        return 0;
    else if (rank == 0)
        printf("{\"what\":\"line\",");
    double after = line_ns();
    if (rank == 0) printf("\"line_ns\":[%.1f,%.1f]}\n", before, after);
    return 1;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Of MPI_Alltoall each rank has a part. */
    data = calloc(2, LARGEST);
    room = calloc(2, LARGEST);
    line = mapped_line(argv[0]);
    int is_known = size == 2 && argc > 2 && line;
    for (int i = 2; i < argc && is_known; i++) {
        int bytes = atoi(argv[i]);
        is_known = bytes >= 0 && bytes <= LARGEST && measure(argv[1], bytes);
    }
    if (!is_known) {
        if (rank == 0) fprintf(stderr, "use: two ranks; figures WHAT BYTES..., 4 MiB at most\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return 0;
}
