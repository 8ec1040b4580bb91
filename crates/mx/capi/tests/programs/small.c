/*
 * A short and a long message to oneself, for tools that look at every access to memory.
 */
#include <earmark_mx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call) \
    do { \
        earmark_mx_return_t code = (call); \
        if (code != EARMARK_MX_SUCCESS) { \
            printf("line %d: %s\n", __LINE__, earmark_mx_last_error()); \
            exit(1); \
        } \
    } while (0)

enum { LONG = 40000, TIMEOUT = 30000 };

static earmark_mx_endpoint_t endpoint;

static void ended(earmark_mx_request_t request)
{
    earmark_mx_status_t status;
    uint32_t result;
    MUST(earmark_mx_wait(endpoint, &request, TIMEOUT, &status, &result));
    if (result != 1 || status.code != EARMARK_MX_STATUS_SUCCESS) exit(2);
}

int main(int count, char **ports)
{
    static char from[LONG];
    char *into = malloc(LONG);
    earmark_mx_endpoint_addr_t self;
    uint64_t nic;
    uint32_t number, length;
    if (count < 2 || into == NULL) return 3;
    MUST(earmark_mx_init(EARMARK_MX_API));
    MUST(earmark_mx_open_endpoint(ports[1], EARMARK_MX_ANY_ENDPOINT, 7, NULL, &endpoint));
    MUST(earmark_mx_get_endpoint_addr(endpoint, &self));
    MUST(earmark_mx_decompose_endpoint_addr(self, &nic, &number));
    MUST(earmark_mx_connect(endpoint, nic, number, 7, TIMEOUT, &self));
    memset(from, 5, LONG);
    for (length = 100; length <= LONG; length += LONG - 100) {
        earmark_mx_segment_t out = {from, length}, in = {into, length};
        earmark_mx_request_t sent, received;
        MUST(earmark_mx_irecv(endpoint, &in, 1, 1, ~(uint64_t)0, NULL, &received));
        MUST(earmark_mx_isend(endpoint, &out, 1, self, 1, NULL, &sent));
        ended(received);
        ended(sent);
        if (memcmp(from, into, length) != 0) return 4;
    }
    MUST(earmark_mx_close_endpoint(endpoint));
    MUST(earmark_mx_finalize());
    free(into);
    printf("all passed\n");
    return 0;
}
