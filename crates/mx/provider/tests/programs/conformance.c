/*
 * What MPI promises, on two or more ranks: the parts that a transport has to get right.
 *
 *   conformance [rma] [threads]
 *
 * Prints "ok NAME" for each part on rank 0, and "all passed" at the end; a rank that finds a fault
 * says so and aborts the job.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

#define CHECK(condition) \
    do { if (!(condition)) fault(__LINE__, #condition); } while (0)

static void fault(int line, const char *what)
{
    fprintf(stderr, "rank %d: line %d: %s does not hold\n", rank, line, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void done(const char *name)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) { printf("ok %s\n", name); fflush(stdout); }
}

static unsigned char byte_of(int seed, int index) { return (unsigned char)(seed * 31 + index * 7 + (index >> 8)); }

static void fill(unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++) at[i] = byte_of(seed, i);
}

static int is_filled(const unsigned char *at, int length, int seed)
{
    for (int i = 0; i < length; i++) if (at[i] != byte_of(seed, i)) return 0;
    return 1;
}

/* Rank 0 and the last one talk, so that with two ranks on each host the wire is between them. */
static int peer(void) { return rank == 0 ? size - 1 : 0; }
static int is_pair(void) { return rank == 0 || rank == size - 1; }

static void sizes(void)
{
    static const int lengths[] = { 0, 1, 8, 100, 1000, 1400, 1500, 4096, 16384, 32000, 32768, 33000, 65536, 262144, 1048576, 5000001 };
    unsigned char *out = malloc(5000001), *in = malloc(5000001);
    for (unsigned i = 0; is_pair() && i < sizeof lengths / sizeof *lengths; i++) {
        MPI_Status status;
        int count;
        fill(out, lengths[i], rank + i);
        memset(in, 0xee, lengths[i]);
        MPI_Sendrecv(out, lengths[i], MPI_BYTE, peer(), i, in, lengths[i], MPI_BYTE, peer(), i, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count == lengths[i] && status.MPI_SOURCE == peer() && status.MPI_TAG == (int)i);
        CHECK(is_filled(in, count, peer() + i));
    }
    free(out); free(in);
    done("sizes");
}

static void synchronous(void)
{
    int value = 5, got = 0, flag = 0;
    MPI_Request request;
    if (rank == 0) {
        MPI_Issend(&value, 1, MPI_INT, size - 1, 1, MPI_COMM_WORLD, &request);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
        MPI_Send(&value, 1, MPI_INT, size - 1, 2, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < 20; i++) MPI_Ssend(&i, 1, MPI_INT, size - 1, 3, MPI_COMM_WORLD);
    } else if (rank == size - 1) {
        MPI_Recv(&got, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&got, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(got == 5);
        for (int i = 0; i < 20; i++) {
            MPI_Recv(&got, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(got == i);
        }
    }
    done("ssend");
}

static void probes(int length)
{
    unsigned char *data = malloc(length + 1);
    MPI_Status status;
    int flag = 0, count;
    if (rank == 0) {
        fill(data, length, 1);
        MPI_Request request;
        MPI_Isend(data, length, MPI_BYTE, size - 1, 77, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank == size - 1) {
        MPI_Iprobe(0, 78, MPI_COMM_WORLD, &flag, &status);
        CHECK(!flag);
        while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count == length && status.MPI_SOURCE == 0 && status.MPI_TAG == 77);
        MPI_Probe(0, 77, MPI_COMM_WORLD, &status);
        MPI_Recv(data, length, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
        CHECK(is_filled(data, length, 1));
    }
    free(data);
    done("probe");
}

static void matched_probes(int length)
{
    unsigned char *data = malloc(2 * length);
    MPI_Status status;
    MPI_Message first = MPI_MESSAGE_NULL, second = MPI_MESSAGE_NULL;
    MPI_Request requests[2];
    int flag = 0, count;
    if (rank == 0) {
        fill(data, length, 1);
        fill(data + length, length, 2);
        MPI_Isend(data, length, MPI_BYTE, size - 1, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(data + length, length, MPI_BYTE, size - 1, 5, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    } else if (rank == size - 1) {
        MPI_Mprobe(0, 5, MPI_COMM_WORLD, &first, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count == length);
        while (!flag) MPI_Improbe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, &second, &status);
        /* The second one first: each is its owner's. */
        MPI_Imrecv(data + length, length, MPI_BYTE, &second, &requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Mrecv(data, length, MPI_BYTE, &first, &status);
        CHECK(is_filled(data, length, 1) && is_filled(data + length, length, 2));
        CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 5);
    }
    free(data);
    done("mprobe");
}

static void cancel(void)
{
    int value = 0, flag;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(&value, 1, MPI_INT, peer(), 4242, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag);
    done("cancel");
}

static void truncation(int length)
{
    unsigned char *data = malloc(length);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (rank == 0) {
        fill(data, length, 3);
        MPI_Send(data, length, MPI_BYTE, size - 1, 6, comm);
    } else if (rank == size - 1) {
        int class = MPI_SUCCESS;
        int error = MPI_Recv(data, length / 2, MPI_BYTE, 0, 6, comm, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS) MPI_Error_class(error, &class);
        CHECK(class == MPI_ERR_TRUNCATE);
    }
    MPI_Comm_free(&comm);
    free(data);
    done("truncation");
}

static void self(void)
{
    static const int lengths[] = { 0, 8, 5000, 40000, 1000000 };
    unsigned char *out = malloc(1000000), *in = malloc(1000000);
    for (unsigned i = 0; i < 5; i++) {
        MPI_Request requests[2];
        fill(out, lengths[i], i);
        MPI_Isend(out, lengths[i], MPI_BYTE, rank, i, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(in, lengths[i], MPI_BYTE, rank, i, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(is_filled(in, lengths[i], i));
    }
    int value = 9, got = 0;
    MPI_Send(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
    MPI_Recv(&got, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(got == 9);
    free(out); free(in);
    done("self");
}

static void vectors(void)
{
    enum { ROWS = 300, COLUMNS = 40 };
    static double matrix[ROWS][COLUMNS];
    MPI_Datatype column;
    MPI_Type_vector(ROWS, 3, COLUMNS, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < ROWS; i++) for (int j = 0; j < COLUMNS; j++) matrix[i][j] = rank == 0 ? i * 100 + j : -1;
    if (rank == 0) MPI_Send(&matrix[0][5], 1, column, size - 1, 8, MPI_COMM_WORLD);
    if (rank == size - 1) {
        MPI_Recv(&matrix[0][7], 1, column, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < ROWS; i++) {
            for (int j = 0; j < 3; j++) CHECK(matrix[i][7 + j] == i * 100 + 5 + j);
            CHECK(matrix[i][6] == -1 && matrix[i][10] == -1);
        }
    }
    MPI_Type_free(&column);
    done("vectors");
}

static void unexpected(int count)
{
    if (rank == 0) {
        for (int i = 0; i < count; i++) MPI_Send(&i, 1, MPI_INT, size - 1, i % 100, MPI_COMM_WORLD);
        int go;
        MPI_Recv(&go, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == size - 1) {
        int got;
        /* The last one of each tag is there before the first receive. */
        MPI_Probe(0, (count - 1) % 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int tag = 99; tag >= 0; tag--) {
            for (int i = tag; i < count; i += 100) {
                MPI_Recv(&got, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                CHECK(got == i);
            }
        }
        MPI_Send(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    done("unexpected");
}

static void mixed(int count)
{
    static const int lengths[] = { 0, 4, 64, 700, 3000, 20000, 50000, 200000 };
    unsigned char **out = malloc(count * sizeof *out), **in = malloc(count * sizeof *in);
    MPI_Request *requests = malloc(2 * count * sizeof *requests);
    for (int i = 0; i < count; i++) {
        int length = lengths[i % 8], to = (rank + 1) % size, from = (rank + size - 1) % size;
        out[i] = malloc(length + 1);
        in[i] = malloc(length + 1);
        fill(out[i], length, rank + i);
        MPI_Irecv(in[i], length, MPI_BYTE, i % 3 ? from : MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(out[i], length, MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; i++) {
        CHECK(is_filled(in[i], lengths[i % 8], (rank + size - 1) % size + i));
        free(out[i]); free(in[i]);
    }
    free(out); free(in); free(requests);
    done("mixed");
}

/* A buffer is free when its send has ended, whether or not its message has arrived by then. */
static void reused(int count)
{
    enum { LONGEST = 33000 };
    unsigned char *buffer = malloc(LONGEST);
    for (int i = 0; is_pair() && i < count; i++) {
        int length = 3000 + i * 6151 % (LONGEST - 3000), is_over = 0;
        MPI_Request request;
        if (rank != 0) {
            MPI_Recv(buffer, length, MPI_BYTE, 0, 19, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(is_filled(buffer, length, i));
            continue;
        }
        fill(buffer, length, i);
        if (i % 3 == 0) {
            MPI_Send(buffer, length, MPI_BYTE, peer(), 19, MPI_COMM_WORLD);
        } else {
            MPI_Isend(buffer, length, MPI_BYTE, peer(), 19, MPI_COMM_WORLD, &request);
            while (i % 3 == 1 && !is_over) MPI_Test(&request, &is_over, MPI_STATUS_IGNORE);
            if (!is_over) MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        memset(buffer, 0xee, length);
    }
    free(buffer);
    done("reused");
}

static void collectives(void)
{
    static const int counts[] = { 1, 100, 20000 };
    for (int c = 0; c < 3; c++) {
        int count = counts[c];
        int *mine = malloc(count * size * sizeof(int)), *all = malloc(count * size * sizeof(int));
        for (int i = 0; i < count; i++) mine[i] = rank + i;
        MPI_Allreduce(mine, all, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++) CHECK(all[i] == size * (size - 1) / 2 + size * i);
        MPI_Allgather(mine, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < count * size; i++) CHECK(all[i] == i / count + i % count);
        for (int i = 0; i < count * size; i++) mine[i] = rank * 1000 + i / count;
        MPI_Alltoall(mine, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < count * size; i++) CHECK(all[i] == i / count * 1000 + rank);
        if (rank == 0) for (int i = 0; i < count; i++) mine[i] = 3 * i;
        MPI_Bcast(mine, count, MPI_INT, 0, MPI_COMM_WORLD);
        for (int i = 0; i < count; i++) CHECK(mine[i] == 3 * i);
        free(mine); free(all);
    }
    for (int i = 0; i < 200; i++) MPI_Barrier(MPI_COMM_WORLD);
    done("collectives");
}

static void one_sided(void)
{
    int *shared, n = 1000;
    MPI_Win window;
    MPI_Win_allocate(n * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &window);
    for (int i = 0; i < n; i++) shared[i] = rank;
    MPI_Win_fence(0, window);
    int *values = malloc(n * sizeof(int)), to = (rank + 1) % size;
    for (int i = 0; i < n; i++) values[i] = rank * 10000 + i;
    MPI_Put(values, n, MPI_INT, to, 0, n, MPI_INT, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < n; i++) CHECK(shared[i] == (rank + size - 1) % size * 10000 + i);
    int got[10];
    MPI_Get(got, 10, MPI_INT, to, 5, 10, MPI_INT, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < 10; i++) CHECK(got[i] == rank * 10000 + 5 + i);
    if (rank == 0) shared[0] = 0;
    MPI_Win_fence(0, window);
    int one = 1, old;
    for (int i = 0; i < 50; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 0, MPI_SUM, window);
        MPI_Win_unlock(0, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(&old, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
    MPI_Win_unlock(0, window);
    CHECK(old == 50 * size);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    free(values);
    done("rma");
}

/* Many puts and gets under way at once, of lengths on either side of every limit of ours. */
static void one_sided_blocks(void)
{
    static const int lengths[] = { 1, 8000, 8192, 8193, 16384, 20000, 32768, 40000, 300000, 2000001 };
    enum { KINDS = sizeof lengths / sizeof *lengths, TURNS = 6 };
    int total = 0, to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int k = 0; k < KINDS; k++) total += lengths[k];
    unsigned char *shared, *out = malloc(TURNS * total), *in = malloc(TURNS * total);
    MPI_Win window;
    MPI_Win_allocate(TURNS * total, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &window);
    fill(out, TURNS * total, rank);
    memset(in, 0, TURNS * total);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    memset(shared, 0, TURNS * total);
    MPI_Win_unlock(rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int t = 0, at = 0; t < TURNS; t++)
        for (int k = 0; k < KINDS; at += lengths[k++])
            MPI_Put(out + at, lengths[k], MPI_BYTE, to, at, lengths[k], MPI_BYTE, window);
    MPI_Win_flush(to, window);
    for (int t = 0, at = 0; t < TURNS; t++)
        for (int k = 0; k < KINDS; at += lengths[k++])
            MPI_Get(in + at, lengths[k], MPI_BYTE, to, at, lengths[k], MPI_BYTE, window);
    MPI_Win_flush(to, window);
    CHECK(is_filled(in, TURNS * total, rank));
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    CHECK(is_filled(shared, TURNS * total, from));
    MPI_Win_unlock(rank, window);

    /* Every third block of 100 bytes. */
    MPI_Datatype blocks;
    MPI_Type_vector(2000, 100, 300, MPI_BYTE, &blocks);
    MPI_Type_commit(&blocks);
    MPI_Win_fence(0, window);
    memset(in, 1, 600000);
    MPI_Put(in, 1, blocks, to, 0, 1, blocks, window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < 599800; i++) CHECK(shared[i] == (i % 300 < 100 ? 1 : byte_of(from, i)));
    MPI_Type_free(&blocks);
    MPI_Win_free(&window);
    free(out); free(in);
    done("rma blocks");
}

static void *talk(void *argument)
{
    int number = *(int *)argument;
    for (int i = 0; is_pair() && i < 500; i++) {
        int length = i % 50 == 0 ? 50000 : 4 + i;
        unsigned char *out = malloc(length), *in = malloc(length);
        fill(out, length, number + i);
        MPI_Sendrecv(out, length, MPI_BYTE, peer(), 1000 + number, in, length, MPI_BYTE, peer(), 1000 + number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(is_filled(in, length, number + i));
        free(out); free(in);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t ids[4];
    int numbers[4];
    for (int i = 0; i < 4; i++) { numbers[i] = i; pthread_create(&ids[i], NULL, talk, &numbers[i]); }
    for (int i = 0; i < 4; i++) pthread_join(ids[i], NULL);
    done("threads");
}

static int wants(int argc, char **argv, const char *what)
{
    for (int i = 1; i < argc; i++) if (!strcmp(argv[i], what)) return 1;
    return 0;
}

int main(int argc, char **argv)
{
    int with_threads = wants(argc, argv, "threads"), provided;
    MPI_Init_thread(&argc, &argv, with_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(size > 1);
    sizes();
    synchronous();
    probes(10); probes(20000); probes(100000);
    matched_probes(10); matched_probes(20000); matched_probes(100000);
    cancel();
    truncation(100); truncation(20000); truncation(200000);
    self();
    vectors();
    unexpected(wants(argc, argv, "short") ? 2000 : 20000);
    mixed(wants(argc, argv, "short") ? 100 : 500);
    reused(wants(argc, argv, "short") ? 500 : 5000);
    collectives();
    if (wants(argc, argv, "rma")) {
        one_sided();
        one_sided_blocks();
    }
    if (with_threads) { CHECK(provided == MPI_THREAD_MULTIPLE); threads(); }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("all passed\n");
    MPI_Finalize();
    return 0;
}
