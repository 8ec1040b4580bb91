/*
 * A message back and forth, and how long that takes.
 *
 *   b$ pingpong packet:eth0                       waits for peers on endpoint 3
 *   a$ pingpong packet:eth0 02000000000b:3        measures against that one
 *   $  pingpong udp:127.0.0.1                     both ends in one process
 *
 * cc -std=c99 -o pingpong pingpong.c $(pkg-config --cflags --libs earmark)
 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "earmark_mx.h"

enum { ROUNDS = 100, LARGEST = 1 << 20, PING = 1, PONG = 2, STOP = 3, TIMEOUT = 30000 };

static char out[LARGEST], in[LARGEST];

static void check(earmark_mx_return_t code, const char *what)
{
    if (code != EARMARK_MX_SUCCESS) {
        fprintf(stderr, "%s: %s\n", what, earmark_mx_last_error());
        exit(1);
    }
}

/* Waits for the end of a request, which has to be a good one. */
static earmark_mx_status_t finish(earmark_mx_endpoint_t endpoint, earmark_mx_request_t request)
{
    earmark_mx_status_t status;
    uint32_t ended;
    check(earmark_mx_wait(endpoint, &request, TIMEOUT, &status, &ended), "wait");
    if (!ended || status.code != EARMARK_MX_STATUS_SUCCESS) {
        fprintf(stderr, "wait: %s\n", ended ? earmark_mx_strstatus(status.code) : "timeout");
        exit(1);
    }
    return status;
}

static earmark_mx_request_t receive(earmark_mx_endpoint_t endpoint, void *into, uint64_t match,
                                    uint64_t mask)
{
    earmark_mx_segment_t segment = {into, LARGEST};
    earmark_mx_request_t request;
    check(earmark_mx_irecv(endpoint, &segment, 1, match, mask, NULL, &request), "irecv");
    return request;
}

static void send_to(earmark_mx_endpoint_t endpoint, earmark_mx_endpoint_addr_t peer, size_t size,
                    uint64_t match)
{
    earmark_mx_segment_t segment = {out, size};
    earmark_mx_request_t request;
    check(earmark_mx_isend(endpoint, &segment, 1, peer, match, NULL, &request), "isend");
    finish(endpoint, request);
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Sends everything back until a peer has enough. Peers are known by what they send. */
static int serve(earmark_mx_endpoint_t endpoint)
{
    for (;;) {
        earmark_mx_segment_t segment = {in, LARGEST};
        earmark_mx_request_t request;
        earmark_mx_status_t status;
        uint32_t ended;
        check(earmark_mx_irecv(endpoint, &segment, 1, 0, 0, NULL, &request), "irecv");
        check(earmark_mx_wait(endpoint, &request, EARMARK_MX_INFINITE, &status, &ended), "wait");
        if (status.match_info == STOP)
            return 0;
        memcpy(out, in, status.xfer_length);
        send_to(endpoint, status.source, status.xfer_length, PONG);
    }
}

static int measure(earmark_mx_endpoint_t endpoint, earmark_mx_endpoint_addr_t peer)
{
    for (size_t size = 1; size <= LARGEST; size *= 32) {
        double start = now_us();
        for (size_t index = 0; index < size; index++)
            out[index] = (char)(index * 7 + size);
        for (int round = 0; round < ROUNDS; round++) {
            earmark_mx_request_t request = receive(endpoint, in, PONG, EARMARK_MX_MASK_ALL);
            send_to(endpoint, peer, size, PING);
            if (finish(endpoint, request).msg_length != size || memcmp(out, in, size) != 0) {
                fprintf(stderr, "%zu bytes came back otherwise\n", size);
                return 1;
            }
        }
        printf("%8zu bytes: %10.1f us one way\n", size, (now_us() - start) / ROUNDS / 2);
    }
    send_to(endpoint, peer, 0, STOP);
    return 0;
}

/* Both ends in one process, driven in turns. */
static int both(earmark_mx_endpoint_t a, const char *port)
{
    static char there[LARGEST];
    earmark_mx_endpoint_t b;
    earmark_mx_endpoint_addr_t addr, to_b;
    uint64_t nic;
    uint32_t number;
    check(earmark_mx_open_endpoint(port, EARMARK_MX_ANY_ENDPOINT, 0, NULL, &b), "open");
    check(earmark_mx_get_endpoint_addr(b, &addr), "address");
    check(earmark_mx_decompose_endpoint_addr(addr, &nic, &number), "decompose");
    check(earmark_mx_connect(a, nic, number, 0, TIMEOUT, &to_b), "connect");
    for (size_t size = 1; size <= LARGEST; size *= 32) {
        double start = now_us();
        for (int round = 0; round < ROUNDS; round++) {
            earmark_mx_segment_t segment = {out, size}, back = {there, size};
            earmark_mx_request_t at_b = receive(b, there, PING, EARMARK_MX_MASK_ALL);
            earmark_mx_request_t at_a = receive(a, in, PONG, EARMARK_MX_MASK_ALL);
            earmark_mx_request_t ping, pong;
            check(earmark_mx_isend(a, &segment, 1, to_b, PING, NULL, &ping), "isend");
            earmark_mx_endpoint_addr_t to_a = finish(b, at_b).source;
            check(earmark_mx_isend(b, &back, 1, to_a, PONG, NULL, &pong), "isend");
            finish(a, at_a);
            finish(a, ping);
            finish(b, pong);
        }
        printf("%8zu bytes: %10.1f us one way\n", size, (now_us() - start) / ROUNDS / 2);
    }
    check(earmark_mx_close_endpoint(b), "close");
    return 0;
}

int main(int count, char **words)
{
    earmark_mx_endpoint_t endpoint;
    earmark_mx_endpoint_addr_t peer;
    uint64_t nic;
    uint32_t number;
    int result;
    if (count < 2 || count > 3) {
        fprintf(stderr, "usage: %s PORT [NIC:ENDPOINT]\n", words[0]);
        return 2;
    }
    check(earmark_mx_init(EARMARK_MX_API), "init");
    if (count == 3) {
        if (sscanf(words[2], "%" SCNx64 ":%" SCNu32, &nic, &number) != 2) {
            fprintf(stderr, "%s: not NIC:ENDPOINT, such as 02000000000b:3\n", words[2]);
            return 2;
        }
        check(earmark_mx_open_endpoint(words[1], EARMARK_MX_ANY_ENDPOINT, 0, NULL, &endpoint),
              "open");
        check(earmark_mx_connect(endpoint, nic, number, 0, TIMEOUT, &peer), "connect");
        result = measure(endpoint, peer);
    } else {
        check(earmark_mx_open_endpoint(words[1], 3, 0, NULL, &endpoint), "open");
        check(earmark_mx_get_info(endpoint, EARMARK_MX_INFO_NIC_ID, &nic), "info");
        if (strncmp(words[1], "udp:127.", 8) == 0) {
            result = both(endpoint, words[1]);
        } else {
            printf("waiting at %012" PRIx64 ":3\n", nic);
            fflush(stdout);
            result = serve(endpoint);
        }
    }
    check(earmark_mx_close_endpoint(endpoint), "close");
    check(earmark_mx_finalize(), "finalize");
    return result;
}
