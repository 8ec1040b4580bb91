/*
 * Compiled into a program of MPI: what Open MPI 4 calls after it was unloaded stays loaded
 *
 * MPI_Finalize unloads mca_pmix_ext3x while the library's own thread may have an event of PMIx before
 * it, whose callback is there. On a busy machine a rank then ends, rarely, with a segmentation fault.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <stddef.h>
#include <string.h>

int MPI_Finalize(void)
{
    struct link_map *object = NULL;
    dlinfo(dlopen(NULL, RTLD_NOW), RTLD_DI_LINKMAP, &object);
    for (; object != NULL; object = object->l_next)
        if (strstr(object->l_name, "/mca_pmix_") != NULL)
            dlopen(object->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    return PMPI_Finalize();
}
