/*
 * Waiting for completions asleep, as fi_cq(3) and fi_poll(3) have it: on a descriptor, in fi_cq_sread,
 * and until somebody signals; and who has sent what was received.
 */
#include <poll.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

enum { TURNS = 200, LONG_MS = 300000 };

struct side { struct fid_ep *ep; struct fid_cq *cq; fi_addr_t self; };

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct side a, b;

static void open_side(struct side *side, struct fi_info *info, enum fi_wait_obj wait)
{
    struct fi_cq_attr cq = { .format = FI_CQ_FORMAT_CONTEXT, .wait_obj = wait };
    char name[64];
    size_t length = sizeof name;
    CHECK(fi_endpoint(domain, info, &side->ep, NULL) == 0);
    CHECK(fi_cq_open(domain, &cq, &side->cq, NULL) == 0);
    CHECK(fi_ep_bind(side->ep, &av->fid, 0) == 0);
    CHECK(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV) == 0);
    CHECK(fi_enable(side->ep) == 0);
    CHECK(fi_getname(&side->ep->fid, name, &length) == 0);
    CHECK(fi_av_insert(av, name, 1, &side->self, 0, NULL) == 1);
}

/* Sleeps on the descriptor until an operation has ended. */
static void await_on_descriptor(void)
{
    struct fid *fids[] = { &b.cq->fid };
    struct fi_cq_entry entry;
    struct pollfd descriptor = { .events = POLLIN };
    fi_addr_t source;
    CHECK(fi_control(&b.cq->fid, FI_GETWAIT, &descriptor.fd) == 0);
    for (;;) {
        ssize_t ended = fi_cq_readfrom(b.cq, &entry, 1, &source);
        if (ended == 1) {
            CHECK(source == a.self);
            return;
        }
        CHECK(ended == -FI_EAGAIN);
        if (fi_trywait(fabric, fids, 1) == 0) CHECK(poll(&descriptor, 1, LONG_MS) == 1);
    }
}

static void *sender(void *unused)
{
    struct fi_cq_entry entry;
    (void)unused;
    for (int i = 0; i < 2 * TURNS; i++) {
        /* Mostly the other side sleeps by then, and sometimes it is about to. */
        usleep(i % 7 * 300);
        CHECK(fi_inject(a.ep, &i, sizeof i, b.self) == 0);
        (void)fi_cq_read(a.cq, &entry, 1);
    }
    return NULL;
}

static void *signaller(void *unused)
{
    (void)unused;
    usleep(50000);
    CHECK(fi_cq_signal(b.cq) == 0);
    return NULL;
}

int main(void)
{
    struct fi_info *hints = fi_allocinfo(), *info;
    struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
    struct fi_cq_entry entry;
    pthread_t thread;
    int got, descriptor;
    hints->caps = FI_MSG | FI_SOURCE;
    hints->fabric_attr->prov_name = strdup("earmark");
    CHECK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) == 0);
    CHECK(fi_fabric(info->fabric_attr, &fabric, NULL) == 0);
    CHECK(fi_domain(fabric, info, &domain, NULL) == 0);
    CHECK(fi_av_open(domain, &av_attr, &av, NULL) == 0);
    open_side(&a, info, FI_WAIT_NONE);
    open_side(&b, info, FI_WAIT_FD);
    CHECK(fi_control(&a.cq->fid, FI_GETWAIT, &descriptor) != 0);

    CHECK(pthread_create(&thread, NULL, sender, NULL) == 0);
    for (int i = 0; i < 2 * TURNS; i++) {
        CHECK(fi_recv(b.ep, &got, sizeof got, NULL, FI_ADDR_UNSPEC, NULL) == 0);
        if (i < TURNS) await_on_descriptor();
        else CHECK(fi_cq_sread(b.cq, &entry, 1, NULL, LONG_MS) == 1);
        CHECK(got == i);
    }
    CHECK(pthread_join(thread, NULL) == 0);

    CHECK(fi_cq_sread(b.cq, &entry, 1, NULL, 10) == -FI_EAGAIN);
    CHECK(pthread_create(&thread, NULL, signaller, NULL) == 0);
    CHECK(fi_cq_sread(b.cq, &entry, 1, NULL, -1) == -FI_EAGAIN);
    CHECK(pthread_join(thread, NULL) == 0);

    CHECK(fi_close(&a.ep->fid) == 0 && fi_close(&b.ep->fid) == 0);
    CHECK(fi_close(&a.cq->fid) == 0 && fi_close(&b.cq->fid) == 0);
    CHECK(fi_close(&av->fid) == 0 && fi_close(&domain->fid) == 0 && fi_close(&fabric->fid) == 0);
    fi_freeinfo(info);
    fi_freeinfo(hints);
    printf("all passed\n");
    return 0;
}
