/*
 * Remote memory, as fi_rma(3) has it, between two endpoints of this process: writes and reads of all
 * lengths, counters, remote CQ data, and memory that is not there.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

enum { ROOM = 200000, KEY = 77, SEALED = 78 };

struct side { struct fid_ep *ep; struct fid_cq *cq; struct fid_cntr *cntr; fi_addr_t self; };

static struct fid_domain *domain;
static struct fid_av *av;
static struct side a, b;

static void open_side(struct side *side, struct fi_info *info)
{
    struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_DATA };
    struct fi_cntr_attr cntr = { .events = FI_CNTR_EVENTS_COMP };
    char name[64];
    size_t length = sizeof name;
    CHECK(fi_endpoint(domain, info, &side->ep, NULL) == 0);
    CHECK(fi_cq_open(domain, &cq, &side->cq, NULL) == 0);
    CHECK(fi_cntr_open(domain, &cntr, &side->cntr, NULL) == 0);
    CHECK(fi_ep_bind(side->ep, &av->fid, 0) == 0);
    CHECK(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
    CHECK(fi_ep_bind(side->ep, &side->cntr->fid, FI_WRITE | FI_READ) == 0);
    CHECK(fi_enable(side->ep) == 0);
    CHECK(fi_getname(&side->ep->fid, name, &length) == 0);
    CHECK(fi_av_insert(av, name, 1, &side->self, 0, NULL) == 1);
}

/* What ends at a, while b attends to it: 1, or a number of libfabric. */
static ssize_t end_of(struct fi_cq_data_entry *entry)
{
    struct fi_cq_data_entry other;
    for (;;) {
        ssize_t ended = fi_cq_read(a.cq, entry, 1);
        if (ended != -FI_EAGAIN) return ended;
        ssize_t seen = fi_cq_read(b.cq, &other, 1);
        CHECK(seen == -FI_EAGAIN);
    }
}

static void ends_well(void *context, uint64_t flags)
{
    struct fi_cq_data_entry entry;
    CHECK(end_of(&entry) == 1);
    CHECK(entry.op_context == context && entry.flags == (FI_RMA | flags));
}

static void ends_badly(void *context, int error)
{
    struct fi_cq_data_entry entry;
    struct fi_cq_err_entry failure = { 0 };
    CHECK(end_of(&entry) == -FI_EAVAIL);
    CHECK(fi_cq_readerr(a.cq, &failure, 0) == 1);
    CHECK(failure.op_context == context && failure.err == error);
}

int main(void)
{
    static const size_t lengths[] = { 0, 1, 8, 4096, 8192, 8193, 20000, 32768, 100000, ROOM };
    static unsigned char mine[ROOM], theirs[ROOM], sealed[ROOM];
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fid_fabric *fabric;
    struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
    struct fid_mr *mr, *mr_sealed, *twice;
    hints->caps = FI_MSG | FI_RMA;
    hints->fabric_attr->prov_name = strdup("earmark");
    CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) == 0);
    CHECK(info->domain_attr->mr_mode == 0);
    CHECK((info->caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)) != 0);
    CHECK(fi_fabric(info->fabric_attr, &fabric, NULL) == 0);
    CHECK(fi_domain(fabric, info, &domain, NULL) == 0);
    CHECK(fi_av_open(domain, &av_attr, &av, NULL) == 0);
    open_side(&a, info);
    open_side(&b, info);

    uint64_t all = FI_REMOTE_READ | FI_REMOTE_WRITE;
    CHECK(fi_mr_reg(domain, theirs, ROOM, all, 0, KEY, 0, &mr, NULL) == 0);
    CHECK(fi_mr_reg(domain, mine, ROOM, all, 0, KEY, 0, &twice, NULL) == -FI_ENOKEY);
    CHECK(fi_mr_reg(domain, sealed, ROOM, FI_REMOTE_READ, 0, SEALED, 0, &mr_sealed, NULL) == 0);
    CHECK(fi_mr_key(mr) == KEY);

    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t length = lengths[k], at = ROOM - length;
        for (size_t i = 0; i < length; i++) mine[i] = (unsigned char)(i * 7 + (i >> 8) + k);
        CHECK(fi_write(a.ep, mine, length, NULL, b.self, at, KEY, &k) == 0);
        ends_well(&k, FI_WRITE);
        CHECK(memcmp(theirs + at, mine, length) == 0);
        memset(mine, 0xee, length);
        CHECK(fi_read(a.ep, mine, length, NULL, b.self, at, KEY, mine) == 0);
        ends_well(mine, FI_READ);
        CHECK(memcmp(theirs + at, mine, length) == 0);
    }
    uint64_t so_far = 2 * sizeof lengths / sizeof *lengths;
    CHECK(fi_cntr_read(a.cntr) == so_far);

    /* Bytes at NULL are nobody's memory, and as many as that are none. */
    struct iovec whole[] = { { mine, SIZE_MAX }, { mine, 2 } };
    CHECK(fi_send(a.ep, NULL, 8, NULL, b.self, NULL) == -FI_EFAULT);
    CHECK(fi_sendv(a.ep, whole, NULL, 2, b.self, NULL) == -FI_EFAULT);
    CHECK(fi_inject(a.ep, NULL, 8, b.self) == -FI_EFAULT);
    CHECK(fi_recv(b.ep, NULL, 8, NULL, FI_ADDR_UNSPEC, NULL) == -FI_EFAULT);
    CHECK(fi_write(a.ep, NULL, 8, NULL, b.self, 0, KEY, NULL) == -FI_EFAULT);
    CHECK(fi_read(a.ep, NULL, 8, NULL, b.self, 0, KEY, NULL) == -FI_EFAULT);
    CHECK(fi_write(a.ep, NULL, 0, NULL, b.self, 0, KEY, mine) == 0);
    ends_well(mine, FI_WRITE);
    so_far++;

    /* One's own memory is as good as anybody's. */
    CHECK(fi_write(a.ep, mine, 9000, NULL, a.self, 5, KEY, mine) == 0);
    ends_well(mine, FI_WRITE);
    CHECK(fi_read(a.ep, theirs + 100000, 9000, NULL, a.self, 5, KEY, mine) == 0);
    ends_well(mine, FI_READ);
    CHECK(memcmp(theirs + 5, mine, 9000) == 0 && memcmp(theirs + 100000, mine, 9000) == 0);
    so_far += 2;

    /* Its memory is free at once, and nobody hears of it but the counter. */
    memset(mine, 5, 10000);
    CHECK(fi_inject_write(a.ep, mine, 10000, b.self, 3, KEY) == 0);
    memset(mine, 6, 10000);
    struct fi_cq_data_entry entry;
    while (fi_cntr_read(a.cntr) == so_far) CHECK(fi_cq_read(b.cq, &entry, 1) == -FI_EAGAIN);
    CHECK(theirs[3] == 5 && theirs[10002] == 5 && theirs[10003] != 5);

    /* The one who has the memory is told, if the one who writes wants that. */
    for (size_t length = 10; length <= 50000; length += 49990) {
        CHECK(fi_writedata(a.ep, mine, length, NULL, 4711, b.self, 0, KEY, &entry) == 0);
        ssize_t seen;
        while ((seen = fi_cq_read(b.cq, &entry, 1)) == -FI_EAGAIN) fi_cntr_read(a.cntr);
        CHECK(seen == 1 && entry.data == 4711 && entry.len == length);
        CHECK(entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
        ends_well(&entry, FI_WRITE);
    }

    CHECK(fi_write(a.ep, mine, 8, NULL, b.self, 0, 1, mine) == 0);
    ends_badly(mine, FI_ENOKEY);
    CHECK(fi_read(a.ep, mine, 8, NULL, b.self, ROOM - 7, KEY, mine) == 0);
    ends_badly(mine, FI_EACCES);
    CHECK(fi_write(a.ep, mine, 8, NULL, b.self, 0, SEALED, mine) == 0);
    ends_badly(mine, FI_EACCES);
    CHECK(fi_write(a.ep, mine, 100000, NULL, b.self, 0, SEALED, mine) == 0);
    ends_badly(mine, FI_EACCES);
    CHECK(fi_write(a.ep, mine, 100000, NULL, b.self, 150000, KEY, mine) == 0);
    ends_badly(mine, FI_EACCES);
    CHECK(fi_read(a.ep, mine, 8, NULL, b.self, 0, SEALED, mine) == 0);
    ends_well(mine, FI_READ);
    CHECK(fi_cntr_readerr(a.cntr) == 5);

    CHECK(fi_close(&mr->fid) == 0);
    CHECK(fi_write(a.ep, mine, 8, NULL, b.self, 0, KEY, mine) == 0);
    ends_badly(mine, FI_ENOKEY);

    CHECK(fi_close(&mr_sealed->fid) == 0);
    CHECK(fi_close(&a.ep->fid) == 0 && fi_close(&b.ep->fid) == 0);
    CHECK(fi_close(&a.cq->fid) == 0 && fi_close(&b.cq->fid) == 0);
    CHECK(fi_close(&a.cntr->fid) == 0 && fi_close(&b.cntr->fid) == 0);
    CHECK(fi_close(&av->fid) == 0 && fi_close(&domain->fid) == 0 && fi_close(&fabric->fid) == 0);
    fi_freeinfo(info);
    fi_freeinfo(hints);
    printf("all passed\n");
    return 0;
}
