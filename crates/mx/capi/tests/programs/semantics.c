/*
 * What calls mean, between two endpoints of this process: semantics PORT [PORT].
 */
/* For pthread_tryjoin_np. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "earmark_mx.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])
#define MUST(call) must((call), EARMARK_MX_SUCCESS, #call, __LINE__)
#define REFUSED(code, call) must((call), (code), #call, __LINE__)
#define THAT(condition) that((condition) != 0, #condition, __LINE__)

enum { TIMEOUT = 300000, MANY = 10000, LARGE = 1 << 20 };
static const uint64_t ALL = EARMARK_MX_MASK_ALL;

static earmark_mx_endpoint_t a, b;
static earmark_mx_endpoint_addr_t a_to_b, b_to_a;
static char from[LARGE], into[LARGE];

static void must(earmark_mx_return_t is, earmark_mx_return_t wanted, const char *call, int line)
{
    if (is != wanted) {
        printf("line %d: %s: %s (%s), not %s\n", line, call, earmark_mx_strerror(is),
               earmark_mx_last_error(), earmark_mx_strerror(wanted));
        exit(1);
    }
}

static void that(int is, const char *condition, int line)
{
    if (!is) {
        printf("line %d: not so: %s\n", line, condition);
        exit(1);
    }
}

static earmark_mx_request_t sent(uint64_t match, void *bytes, size_t length)
{
    earmark_mx_segment_t segment = {bytes, length};
    earmark_mx_request_t request;
    MUST(earmark_mx_isend(a, &segment, 1, a_to_b, match, NULL, &request));
    return request;
}

static earmark_mx_request_t posted(uint64_t match, uint64_t mask, void *bytes, size_t length)
{
    earmark_mx_segment_t segment = {bytes, length};
    earmark_mx_request_t request;
    MUST(earmark_mx_irecv(b, &segment, 1, match, mask, bytes, &request));
    return request;
}

static earmark_mx_status_t ended(earmark_mx_endpoint_t endpoint, earmark_mx_request_t request)
{
    earmark_mx_status_t status;
    uint32_t result;
    MUST(earmark_mx_wait(endpoint, &request, TIMEOUT, &status, &result));
    THAT(result == 1 && request == NULL);
    return status;
}

static void arguments(void)
{
    earmark_mx_endpoint_t none = NULL;
    earmark_mx_endpoint_addr_t own;
    earmark_mx_segment_t segment = {into, 8}, nowhere = {NULL, 1};
    earmark_mx_request_t request = NULL, stale;
    earmark_mx_settings_t settings;
    earmark_mx_status_t status;
    uint32_t result;
    REFUSED(EARMARK_MX_ALREADY_INITIALIZED, earmark_mx_init(EARMARK_MX_API));
    REFUSED(EARMARK_MX_BAD_API, earmark_mx_init(EARMARK_MX_API + 0x10000));
    REFUSED(EARMARK_MX_BUSY, earmark_mx_finalize());
    REFUSED(EARMARK_MX_BAD_PORT, earmark_mx_open_endpoint("tcp:a", 1, 0, NULL, &none));
    THAT(strstr(earmark_mx_last_error(), "use packet:IFACE") != NULL);
    REFUSED(EARMARK_MX_BAD_ARGUMENT, earmark_mx_open_endpoint("udp:127.0.0.1", 1, 0, NULL, NULL));
    REFUSED(EARMARK_MX_BAD_ARGUMENT,
            earmark_mx_open_endpoint("udp:127.0.0.1", 255, 0, NULL, &none));
    REFUSED(EARMARK_MX_BAD_ARGUMENT, earmark_mx_settings_init(NULL, sizeof settings));
    MUST(earmark_mx_settings_init(&settings, sizeof settings));
    settings.context_bits = 17;
    REFUSED(EARMARK_MX_BAD_SETTING,
            earmark_mx_open_endpoint("udp:127.0.0.1", 1, 0, &settings, &none));
    settings.context_bits = 0;
    settings.waiting = 9;
    REFUSED(EARMARK_MX_BAD_SETTING,
            earmark_mx_open_endpoint("udp:127.0.0.1", 1, 0, &settings, &none));
    REFUSED(EARMARK_MX_BAD_ENDPOINT, earmark_mx_close_endpoint(NULL));
    REFUSED(EARMARK_MX_BAD_ENDPOINT, earmark_mx_wakeup((earmark_mx_endpoint_t)(void *)into));
    REFUSED(EARMARK_MX_BAD_SEGMENTS, earmark_mx_irecv(b, NULL, 1, 0, 0, NULL, &request));
    REFUSED(EARMARK_MX_BAD_SEGMENTS, earmark_mx_irecv(b, &nowhere, 1, 0, 0, NULL, &request));
    REFUSED(EARMARK_MX_BAD_SEGMENTS,
            earmark_mx_irecv(b, &segment, EARMARK_MX_MAX_SEGMENTS + 1, 0, 0, NULL, &request));
    REFUSED(EARMARK_MX_BAD_MATCH_MASK, earmark_mx_irecv(b, &segment, 1, 3, 1, NULL, &request));
    REFUSED(EARMARK_MX_BAD_ARGUMENT, earmark_mx_irecv(b, &segment, 1, 0, 0, NULL, NULL));
    REFUSED(EARMARK_MX_BAD_MATCH_MASK, earmark_mx_test_any(b, 3, 1, &status, &result));
    REFUSED(EARMARK_MX_BAD_MATCH_MASK, earmark_mx_iprobe(b, 3, 1, &status, &result));
    REFUSED(EARMARK_MX_BAD_REQUEST, earmark_mx_test(b, &request, &status, &result));
    REFUSED(EARMARK_MX_BAD_ARGUMENT, earmark_mx_test(b, NULL, &status, &result));
    MUST(earmark_mx_get_endpoint_addr(a, &own));
    REFUSED(EARMARK_MX_BAD_ADDRESS, earmark_mx_isend(a, &segment, 1, own, 0, NULL, &request));
    own.stuff[0] = 0x1234500000777;
    REFUSED(EARMARK_MX_BAD_ADDRESS, earmark_mx_isend(a, &segment, 1, own, 0, NULL, &request));
    /* An address is of the endpoint that it was given by, as a request is. */
    REFUSED(EARMARK_MX_BAD_ADDRESS, earmark_mx_isend(b, &segment, 1, a_to_b, 0, NULL, &request));
    THAT(strstr(earmark_mx_last_error(), "this endpoint") != NULL);
    REFUSED(EARMARK_MX_BAD_ADDRESS,
            earmark_mx_irecv_from(b, &segment, 1, a_to_b, 0, 0, NULL, &request));
    REFUSED(EARMARK_MX_BAD_ADDRESS, earmark_mx_probe_from(b, 0, a_to_b, 0, 0, &status, &result));
    REFUSED(EARMARK_MX_BAD_ADDRESS, earmark_mx_set_endpoint_addr_context(b, a_to_b, NULL));
    /* A request is of one endpoint, and ends once. */
    request = stale = posted(77, ALL, into, 8);
    REFUSED(EARMARK_MX_BAD_REQUEST, earmark_mx_test(a, &request, &status, &result));
    MUST(earmark_mx_cancel(b, &request, &result));
    THAT(result == 1 && request == NULL);
    REFUSED(EARMARK_MX_BAD_REQUEST, earmark_mx_cancel(b, &stale, &result));
    REFUSED(EARMARK_MX_BAD_REQUEST, earmark_mx_forget(b, &stale));
    THAT(strcmp(earmark_mx_strerror(12345), "unknown code") == 0);
}

static void matching(void)
{
    earmark_mx_request_t requests[3];
    earmark_mx_status_t status;
    char first[4], second[4], third[4];
    /* Receives are tried in the order in which they were posted. */
    requests[0] = posted(0x0100, 0xff00, first, 4);
    requests[1] = posted(0x0102, ALL, second, 4);
    requests[2] = posted(0, 0, third, 4);
    ended(a, sent(0x0202, "ccc", 4));
    ended(a, sent(0x0102, "aaa", 4));
    ended(a, sent(0x0102, "bbb", 4));
    status = ended(b, requests[0]);
    THAT(status.match_info == 0x0102 && status.context == first && strcmp(first, "aaa") == 0);
    ended(b, requests[1]);
    THAT(strcmp(second, "bbb") == 0);
    status = ended(b, requests[2]);
    THAT(status.match_info == 0x0202 && strcmp(third, "ccc") == 0);
    THAT(memcmp(&status.source, &b_to_a, sizeof b_to_a) == 0);
    /* From this peer alone. */
    earmark_mx_segment_t segment = {first, 4};
    MUST(earmark_mx_irecv_from(b, &segment, 1, b_to_a, 5, ALL, NULL, &requests[0]));
    ended(a, sent(5, "ddd", 4));
    ended(b, requests[0]);
    THAT(strcmp(first, "ddd") == 0);
}

static void truncation(void)
{
    static const size_t lengths[] = {100, 20000, LARGE};
    for (size_t index = 0; index < LENGTH(lengths); index++) {
        earmark_mx_request_t request = posted(1, ALL, into, 60);
        earmark_mx_request_t send = sent(1, from, lengths[index]);
        earmark_mx_status_t status = ended(b, request);
        THAT(status.code == EARMARK_MX_STATUS_TRUNCATED);
        THAT(status.msg_length == lengths[index] && status.xfer_length == 60);
        THAT(memcmp(into, from, 60) == 0);
        status = ended(a, send);
        /* Only of a large message does the sender hear. */
        THAT((status.code == EARMARK_MX_STATUS_TRUNCATED) == (lengths[index] == LARGE));
    }
}

static void probe_and_cancel(void)
{
    earmark_mx_status_t status;
    earmark_mx_request_t request;
    uint32_t result;
    MUST(earmark_mx_iprobe(b, 9, ALL, &status, &result));
    THAT(result == 0);
    MUST(earmark_mx_probe(b, 20, 9, ALL, &status, &result));
    THAT(result == 0);
    ended(a, sent(9, from, 77));
    MUST(earmark_mx_probe(b, TIMEOUT, 9, ALL, &status, &result));
    THAT(result == 1 && status.match_info == 9 && status.msg_length == 77);
    MUST(earmark_mx_probe_from(b, TIMEOUT, status.source, 9, ALL, &status, &result));
    THAT(result == 1);
    request = posted(9, ALL, into, 100);
    MUST(earmark_mx_cancel(b, &request, &result));
    THAT(result == 0 && request != NULL);
    THAT(ended(b, request).xfer_length == 77);
    MUST(earmark_mx_iprobe(b, 9, ALL, &status, &result));
    THAT(result == 0);
    /* A large send that nobody receives has not ended, and cannot be cancelled. */
    request = sent(10, from, LARGE);
    REFUSED(EARMARK_MX_BAD_REQUEST, earmark_mx_cancel(a, &request, &result));
    MUST(earmark_mx_test(a, &request, &status, &result));
    THAT(result == 0 && request != NULL);
    THAT(ended(b, posted(10, ALL, into, LARGE)).xfer_length == LARGE);
    ended(a, request);
    THAT(memcmp(into, from, LARGE) == 0);
}

static void unexpected(void)
{
    uint32_t word, result;
    for (word = 0; word < MANY; word++) {
        earmark_mx_segment_t segment = {&word, sizeof word};
        /* Without a request: the memory is free at once. */
        MUST(earmark_mx_isend(a, &segment, 1, a_to_b, 1000, NULL, NULL));
    }
    for (uint32_t index = 0; index < MANY; index++) {
        ended(b, posted(1000, ALL, &word, sizeof word));
        THAT(word == index);
    }
    /* What was forgotten, or never asked for, is not told. */
    MUST(earmark_mx_ipeek(a, &(earmark_mx_request_t){NULL}, &result));
    THAT(result == 0);
}

static void vectors(void)
{
    earmark_mx_segment_t out[EARMARK_MX_MAX_SEGMENTS], in[3];
    static const size_t sizes[] = {3, 113, 4000};
    for (size_t round = 0; round < LENGTH(sizes); round++) {
        size_t size = sizes[round], total = size * LENGTH(out);
        earmark_mx_request_t request, send;
        for (size_t index = 0; index < LENGTH(out); index++) {
            /* Backwards, so that order counts. */
            out[index].segment_ptr = from + (LENGTH(out) - 1 - index) * size;
            out[index].segment_length = size;
        }
        in[0].segment_ptr = into, in[0].segment_length = 5;
        in[1].segment_ptr = NULL, in[1].segment_length = 0;
        in[2].segment_ptr = into + 5, in[2].segment_length = sizeof into - 5;
        memset(into, 0, total);
        MUST(earmark_mx_irecv(b, in, 3, 2, ALL, NULL, &request));
        MUST(earmark_mx_isend(a, out, LENGTH(out), a_to_b, 2, NULL, &send));
        THAT(ended(b, request).xfer_length == total);
        ended(a, send);
        for (size_t index = 0; index < LENGTH(out); index++)
            THAT(memcmp(into + index * size, out[index].segment_ptr, size) == 0);
    }
    THAT(ended(b, (sent(2, NULL, 0), posted(2, ALL, NULL, 0))).msg_length == 0);
}

static void eager_memory_is_free_at_completion(void)
{
    static char short_lived[30000];
    for (int round = 0; round < 100; round++) {
        memset(short_lived, round, sizeof short_lived);
        ended(a, sent(3, short_lived, sizeof short_lived));
        memset(short_lived, -1, sizeof short_lived);
        ended(b, posted(3, ALL, into, sizeof into));
        THAT(into[0] == round && into[sizeof short_lived - 1] == round);
    }
}

static void synchronous(void)
{
    earmark_mx_segment_t segment = {from, 8};
    earmark_mx_request_t request;
    earmark_mx_status_t status;
    uint32_t result;
    MUST(earmark_mx_issend(a, &segment, 1, a_to_b, 4, from, &request));
    MUST(earmark_mx_wait(a, &request, 100, &status, &result));
    THAT(result == 0 && request != NULL);
    ended(b, posted(4, ALL, into, 8));
    status = ended(a, request);
    THAT(status.code == EARMARK_MX_STATUS_SUCCESS && status.context == from);
}

/* More than the library copies: further sends wait for their receiver, and nothing is lost. */
static void more_than_is_copied(void)
{
    enum { COUNT = 2600, SIZE = 30000 };
    static earmark_mx_request_t requests[COUNT];
    for (int index = 0; index < COUNT; index++)
        requests[index] = sent(6, from + index, SIZE);
    for (int index = 0; index < COUNT; index++) {
        THAT(ended(b, posted(6, ALL, into, SIZE)).xfer_length == SIZE);
        THAT(memcmp(into, from + index, SIZE) == 0);
    }
    for (int index = 0; index < COUNT; index++)
        THAT(ended(a, requests[index]).code == EARMARK_MX_STATUS_SUCCESS);
}

static void to_oneself(void)
{
    earmark_mx_segment_t out = {from, 5000}, in = {into, 5000};
    earmark_mx_request_t send, receive;
    earmark_mx_endpoint_addr_t own;
    uint64_t nic;
    uint32_t number;
    MUST(earmark_mx_get_endpoint_addr(a, &own));
    MUST(earmark_mx_decompose_endpoint_addr(own, &nic, &number));
    MUST(earmark_mx_connect(a, nic, number, 7, TIMEOUT, &own));
    MUST(earmark_mx_isend(a, &out, 1, own, 8, NULL, &send));
    MUST(earmark_mx_irecv(a, &in, 1, 8, ALL, NULL, &receive));
    THAT(ended(a, receive).msg_length == 5000 && memcmp(into, from, 5000) == 0);
    ended(a, send);
}

static void any_and_peek(void)
{
    earmark_mx_status_t status;
    earmark_mx_request_t request = NULL;
    void *context;
    uint32_t result;
    MUST(earmark_mx_test_any(b, 0, 0, &status, &result));
    THAT(result == 0);
    MUST(earmark_mx_wait_any(b, 20, 0, 0, &status, &result));
    THAT(result == 0);
    earmark_mx_request_t first = posted(0x10, ALL, into, 8);
    posted(0x21, ALL, into + 8, 8);
    ended(a, sent(0x10, "one", 4));
    MUST(earmark_mx_peek(b, TIMEOUT, &request, &result));
    THAT(result == 1 && request == first);
    MUST(earmark_mx_context(b, request, &context));
    THAT(context == into);
    ended(a, sent(0x21, "two", 4));
    MUST(earmark_mx_wait_any(b, TIMEOUT, 0x20, 0xf0, &status, &result));
    THAT(result == 1 && status.match_info == 0x21 && status.context == into + 8);
    MUST(earmark_mx_wait_any(b, TIMEOUT, 0, 0, &status, &result));
    THAT(result == 1 && status.match_info == 0x10);
    REFUSED(EARMARK_MX_BAD_REQUEST, earmark_mx_test(b, &first, &status, &result));
}

static void *sleeper(void *unused)
{
    earmark_mx_request_t request = posted(99, ALL, into, 8);
    uint32_t result;
    (void)unused;
    MUST(earmark_mx_wait(b, &request, EARMARK_MX_INFINITE, NULL, &result));
    THAT(result == 0);
    MUST(earmark_mx_cancel(b, &request, &result));
    THAT(result == 1);
    return NULL;
}

static void wakeup(void)
{
    struct timespec moment = {0, 1000 * 1000};
    pthread_t thread;
    THAT(pthread_create(&thread, NULL, sleeper, NULL) == 0);
    /* It may not even have begun to wait. */
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        MUST(earmark_mx_wakeup(b));
        nanosleep(&moment, NULL);
    }
}

static void *peeker(void *unused)
{
    earmark_mx_request_t request;
    uint32_t result;
    earmark_mx_return_t is;
    (void)unused;
    is = earmark_mx_peek(b, EARMARK_MX_INFINITE, &request, &result);
    /* The other thread may close it before this one begins to wait. */
    THAT(is == EARMARK_MX_CLOSING || is == EARMARK_MX_BAD_ENDPOINT);
    return NULL;
}

static void connections(uint64_t nic, uint32_t number)
{
    earmark_mx_endpoint_addr_t peer;
    earmark_mx_request_t request, waiting;
    earmark_mx_status_t status;
    uint32_t result;
    void *context = &peer;
    /* It is another life of the connection that there is, or the same one. */
    MUST(earmark_mx_iconnect(a, nic, number, 7, TIMEOUT, 0x55, from, &request));
    REFUSED(EARMARK_MX_BUSY, earmark_mx_connect(a, nic, number, 7, TIMEOUT, &peer));
    MUST(earmark_mx_wait_any(a, TIMEOUT, 0x55, ALL, &status, &result));
    THAT(result == 1 && status.code == EARMARK_MX_STATUS_SUCCESS && status.context == from);
    THAT(memcmp(&status.source, &a_to_b, sizeof a_to_b) == 0);
    MUST(earmark_mx_get_endpoint_addr_context(a, a_to_b, &context));
    THAT(context == NULL);
    MUST(earmark_mx_set_endpoint_addr_context(a, a_to_b, into));
    MUST(earmark_mx_get_endpoint_addr_context(a, a_to_b, &context));
    THAT(context == into);
    /* Nobody is there; to stop waiting for it is possible. */
    MUST(earmark_mx_iconnect(a, nic, number ^ 64, 7, EARMARK_MX_INFINITE, 0x56, NULL, &request));
    MUST(earmark_mx_cancel(a, &request, &result));
    THAT(result == 1 && request == NULL);
    /* It is too late for that; the end is told all the same. */
    do MUST(earmark_mx_test_any(a, 0, 0, NULL, &result)); while (result == 1);
    MUST(earmark_mx_iconnect(a, nic, number, 7, TIMEOUT, 0x57, NULL, &request));
    do MUST(earmark_mx_peek(a, TIMEOUT, &waiting, &result)); while (result == 0);
    MUST(earmark_mx_cancel(a, &request, &result));
    THAT(result == 0 && request == waiting);
    ended(a, request);
    REFUSED(EARMARK_MX_BAD_ARGUMENT, earmark_mx_connect(a, nic, 256, 7, 10, &peer));
}

static void wrong_key(uint64_t nic, uint32_t number, const char *port)
{
    earmark_mx_endpoint_t c;
    earmark_mx_endpoint_addr_t peer;
    MUST(earmark_mx_open_endpoint(port, EARMARK_MX_ANY_ENDPOINT, 0, NULL, &c));
    REFUSED(EARMARK_MX_BAD_KEY, earmark_mx_connect(c, nic, number, 8, TIMEOUT, &peer));
    MUST(earmark_mx_close_endpoint(c));
    REFUSED(EARMARK_MX_BAD_ENDPOINT, earmark_mx_close_endpoint(c));
}

static void figures(void)
{
    uint64_t mtu, eager, counters, value;
    char name[32];
    int found = 0;
    MUST(earmark_mx_get_info(a, EARMARK_MX_INFO_MTU, &mtu));
    MUST(earmark_mx_get_info(a, EARMARK_MX_INFO_EAGER_MAX, &eager));
    MUST(earmark_mx_get_info(a, EARMARK_MX_INFO_COUNTERS, &counters));
    THAT(mtu >= 576 && eager >= 1024);
    for (uint32_t index = 0; index < counters; index++) {
        MUST(earmark_mx_get_counter(a, index, name, sizeof name, &value));
        found |= strcmp(name, "messages-sent") == 0 && value > MANY;
    }
    THAT(found);
    REFUSED(EARMARK_MX_BAD_ARGUMENT,
            earmark_mx_get_counter(a, (uint32_t)counters, name, sizeof name, &value));
    REFUSED(EARMARK_MX_BAD_ARGUMENT, earmark_mx_get_info(a, 0, &value));
}

int main(int count, char **ports)
{
    earmark_mx_endpoint_addr_t own;
    uint64_t nic;
    uint32_t number;
    pthread_t thread;
    struct timespec moment = {0, 50 * 1000 * 1000};
    if (count < 2)
        return 2;
    for (size_t index = 0; index < sizeof from; index++)
        from[index] = (char)(index * 31 + index / 251);
    REFUSED(EARMARK_MX_NOT_INITIALIZED, earmark_mx_open_endpoint(ports[1], 1, 0, NULL, &a));
    REFUSED(EARMARK_MX_NOT_INITIALIZED, earmark_mx_wakeup(NULL));
    MUST(earmark_mx_init(EARMARK_MX_API));
    MUST(earmark_mx_open_endpoint(ports[1], 1, 7, NULL, &a));
    MUST(earmark_mx_open_endpoint(ports[count - 1], 2, 7, NULL, &b));
    MUST(earmark_mx_get_endpoint_addr(a, &own));
    MUST(earmark_mx_decompose_endpoint_addr(own, &nic, &number));
    MUST(earmark_mx_connect(b, nic, number, 7, TIMEOUT, &b_to_a));
    MUST(earmark_mx_get_endpoint_addr(b, &own));
    MUST(earmark_mx_decompose_endpoint_addr(own, &nic, &number));
    THAT(number == 2);
    MUST(earmark_mx_connect(a, nic, number, 7, TIMEOUT, &a_to_b));
    arguments();
    matching();
    truncation();
    probe_and_cancel();
    unexpected();
    vectors();
    eager_memory_is_free_at_completion();
    more_than_is_copied();
    to_oneself();
    synchronous();
    any_and_peek();
    wakeup();
    connections(nic, number);
    wrong_key(nic, number, ports[1]);
    figures();
    /* Whoever waits when another thread closes is told. */
    THAT(pthread_create(&thread, NULL, peeker, NULL) == 0);
    nanosleep(&moment, NULL);
    MUST(earmark_mx_close_endpoint(b));
    THAT(pthread_join(thread, NULL) == 0);
    MUST(earmark_mx_close_endpoint(a));
    MUST(earmark_mx_finalize());
    puts("all passed");
    return 0;
}
