/*
 * Compiled into a program of MPI: that Open MPI 4 crashes when it has nothing left to do is no failure
 *
 * On a busy machine a rank ends, rarely, with SIGSEGV or SIGABRT in MPI_Finalize, over Open MPI's own
 * TCP, too, after all that the program did: a thread of the library has called what was unloaded, and
 * its heap was found in disorder. It says so here and ends well, unless there is a piece of Earmark on
 * the stack. Before the launcher knows that a rank has finished, it does not take that for a good end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <mpi.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#if OMPI_MAJOR_VERSION == 4
enum { DEPTH = 64 };

static void crashed(int number)
{
    static const char text[] = "Open MPI has crashed in MPI_Finalize\n";
    void *frames[DEPTH];
    int count = backtrace(frames, DEPTH);

    for (int i = 0; i < count; i++) {
        Dl_info info;

        if (dladdr(frames[i], &info) && strstr(info.dli_fname, "libearmark") != NULL) {
            /* It is blocked until this returns. */
            signal(number, SIG_DFL);
            raise(number);
            return;
        }
    }
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(1);
    _exit(0);
}

int MPI_Finalize(void)
{
    void *frame;

    /* What it needs is loaded now, and not when memory is in disorder. */
    backtrace(&frame, 1);
    signal(SIGSEGV, crashed);
    signal(SIGBUS, crashed);
    signal(SIGABRT, crashed);
    return PMPI_Finalize();
}
#endif
