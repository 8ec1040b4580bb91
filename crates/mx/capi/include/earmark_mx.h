/* MX for C: message passing over plain Ethernet. See earmark_mx(3).
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */

#ifndef EARMARK_MX_H
#define EARMARK_MX_H

/* Written by `cargo xtask header` from the crate earmark-capi; do not change it by hand. */

#include <stddef.h>
#include <stdint.h>

/**
 * The version of this interface: the upper 16 bits change when programs have to be compiled anew.
 */
#define EARMARK_MX_API 65536

/**
 * A timeout that is never over.
 */
#define EARMARK_MX_INFINITE 4294967295

/**
 * The first number of an endpoint that is free.
 */
#define EARMARK_MX_ANY_ENDPOINT 4294967295

/**
 * As match information and mask together: any message, any request.
 */
#define EARMARK_MX_MATCH_ALL 0

/**
 * A mask in which all bits count.
 */
#define EARMARK_MX_MASK_ALL 18446744073709551615ull

/**
 * The most segments that a message may have.
 */
#define EARMARK_MX_MAX_SEGMENTS 256

/**
 * A thread of the endpoint's own acknowledges, resends and pulls.
 */
#define EARMARK_MX_PROGRESS_THREAD 0

/**
 * No thread does while no call is made; the program calls earmark_mx_progress() often enough.
 */
#define EARMARK_MX_PROGRESS_MANUAL 1

/**
 * A thread that waits sleeps.
 */
#define EARMARK_MX_WAIT_SLEEP 0

/**
 * A thread that waits looks again and again.
 */
#define EARMARK_MX_WAIT_SPIN 1

/**
 * A thread that waits looks for spin_us microseconds, and then sleeps.
 */
#define EARMARK_MX_WAIT_HYBRID 2

/**
 * The interface of an endpoint, 48 bits.
 */
#define EARMARK_MX_INFO_NIC_ID 1

/**
 * The number of an endpoint.
 */
#define EARMARK_MX_INFO_ENDPOINT_ID 2

/**
 * Bytes of its largest frame, without the Ethernet header.
 */
#define EARMARK_MX_INFO_MTU 3

/**
 * Bytes of the longest message that is copied and sent before anybody asks for it.
 */
#define EARMARK_MX_INFO_EAGER_MAX 4

/**
 * The most segments that a message may have.
 */
#define EARMARK_MX_INFO_MAX_SEGMENTS 5

/**
 * How many peers are connected.
 */
#define EARMARK_MX_INFO_PEERS 6

/**
 * How many counters there are.
 */
#define EARMARK_MX_INFO_COUNTERS 7

/**
 * What a call returns. Values are only ever added.
 */
typedef enum {
    /**
     * It did what was asked; whether a request has ended is another matter.
     */
    EARMARK_MX_SUCCESS = 0,
    /**
     * earmark_mx_init() was not called.
     */
    EARMARK_MX_NOT_INITIALIZED = 1,
    /**
     * earmark_mx_init() was called before.
     */
    EARMARK_MX_ALREADY_INITIALIZED = 2,
    /**
     * The program was compiled for a version that this library is not.
     */
    EARMARK_MX_BAD_API = 3,
    /**
     * An argument is NULL, or is none of its values.
     */
    EARMARK_MX_BAD_ARGUMENT = 4,
    /**
     * There is no such endpoint, or not any more.
     */
    EARMARK_MX_BAD_ENDPOINT = 5,
    /**
     * There is no such request, or not any more; or the call is not for its kind.
     */
    EARMARK_MX_BAD_REQUEST = 6,
    /**
     * The address is not one that connecting, or a status, has given.
     */
    EARMARK_MX_BAD_ADDRESS = 7,
    /**
     * There is no such port.
     */
    EARMARK_MX_BAD_PORT = 8,
    /**
     * A setting is out of its range.
     */
    EARMARK_MX_BAD_SETTING = 9,
    /**
     * Too many segments, too long ones, or one without memory.
     */
    EARMARK_MX_BAD_SEGMENTS = 10,
    /**
     * The match information has bits outside the mask.
     */
    EARMARK_MX_BAD_MATCH_MASK = 11,
    /**
     * The mask does not cover the bits of the context.
     */
    EARMARK_MX_BAD_CONTEXT_MASK = 12,
    /**
     * The endpoint number is taken.
     */
    EARMARK_MX_TAKEN = 13,
    /**
     * The system does not permit it.
     */
    EARMARK_MX_NOT_ALLOWED = 14,
    /**
     * The port does not work any more.
     */
    EARMARK_MX_PORT_FAILED = 15,
    /**
     * The system has no more of something.
     */
    EARMARK_MX_NO_RESOURCES = 16,
    /**
     * Somebody is at it already, or a peer has as many peers as it can.
     */
    EARMARK_MX_BUSY = 17,
    /**
     * The endpoint is being closed.
     */
    EARMARK_MX_CLOSING = 18,
    /**
     * The endpoint is closed, but messages are lost.
     */
    EARMARK_MX_UNFINISHED = 19,
    /**
     * The peer is lost; connect again.
     */
    EARMARK_MX_PEER_LOST = 20,
    /**
     * The time is over. Only connecting returns this.
     */
    EARMARK_MX_TIMEOUT = 21,
    /**
     * There is no such endpoint at this interface.
     */
    EARMARK_MX_NO_ENDPOINT = 22,
    /**
     * The key is not the peer's.
     */
    EARMARK_MX_BAD_KEY = 23,
    /**
     * The peer speaks another version of the protocol.
     */
    EARMARK_MX_BAD_VERSION = 24,
    /**
     * No host of that name has answered.
     */
    EARMARK_MX_HOST_NOT_FOUND = 25,
    /**
     * A fault of the library.
     */
    EARMARK_MX_INTERNAL = 26,
} earmark_mx_return_t;

/**
 * How a request ended. Values are only ever added.
 */
typedef enum {
    /**
     * It did what was asked.
     */
    EARMARK_MX_STATUS_SUCCESS = 0,
    /**
     * The message was longer than the receive; what fitted was delivered.
     */
    EARMARK_MX_STATUS_TRUNCATED = 1,
    /**
     * It was cancelled.
     */
    EARMARK_MX_STATUS_CANCELLED = 2,
    /**
     * The peer does not answer.
     */
    EARMARK_MX_STATUS_UNREACHABLE = 3,
    /**
     * The peer was restarted.
     */
    EARMARK_MX_STATUS_RESTARTED = 4,
    /**
     * The peer closed its endpoint.
     */
    EARMARK_MX_STATUS_CLOSED = 5,
    /**
     * There is no such endpoint at this interface.
     */
    EARMARK_MX_STATUS_NO_ENDPOINT = 6,
    /**
     * The key is not the peer's.
     */
    EARMARK_MX_STATUS_BAD_KEY = 7,
    /**
     * The peer speaks another version of the protocol.
     */
    EARMARK_MX_STATUS_BAD_VERSION = 8,
    /**
     * The peer has as many peers as it can.
     */
    EARMARK_MX_STATUS_BUSY = 9,
    /**
     * The time is over.
     */
    EARMARK_MX_STATUS_TIMEOUT = 10,
    /**
     * The peer broke the protocol.
     */
    EARMARK_MX_STATUS_PROTOCOL = 11,
    /**
     * This endpoint was closed.
     */
    EARMARK_MX_STATUS_ABORTED = 12,
} earmark_mx_status_code_t;

/**
 * What an endpoint handle points to; never followed.
 */
typedef struct earmark_mx_endpoint earmark_mx_endpoint;

/**
 * What a request handle points to; never followed.
 */
typedef struct earmark_mx_request earmark_mx_request;

/**
 * An endpoint that is open; NULL is none.
 */
typedef earmark_mx_endpoint *earmark_mx_endpoint_t;

/**
 * A request whose end has not been reported; NULL is none.
 */
typedef earmark_mx_request *earmark_mx_request_t;

/**
 * An endpoint, as another one knows it. Its content is private; copy it as you like.
 */
typedef struct {
    /**
     * Private to the library.
     */
    uint64_t stuff[2];
} earmark_mx_endpoint_addr_t;

/**
 * How a request ended, or what a probe has found.
 */
typedef struct {
    /**
     * Whether it did what was asked.
     */
    earmark_mx_status_code_t code;
    /**
     * Reserved; always 0.
     */
    uint32_t flags;
    /**
     * The sender of a message that came, the receiver of one that was sent.
     */
    earmark_mx_endpoint_addr_t source;
    /**
     * The match information of the message; of the request, if there is no message.
     */
    uint64_t match_info;
    /**
     * Bytes of the message.
     */
    uint64_t msg_length;
    /**
     * Bytes of it that were delivered; for an eager send, that were accepted.
     */
    uint64_t xfer_length;
    /**
     * What the request was given.
     */
    void *context;
    /**
     * Room for more; 0.
     */
    uint64_t reserved[4];
} earmark_mx_status_t;

/**
 * How an endpoint lives. earmark_mx_settings_init() fills it in.
 */
typedef struct {
    /**
     * Bytes of this structure, as the program knows it.
     */
    size_t size;
    /**
     * Who makes progress: EARMARK_MX_PROGRESS_THREAD or EARMARK_MX_PROGRESS_MANUAL.
     */
    uint32_t progress;
    /**
     * How threads wait: EARMARK_MX_WAIT_SLEEP, EARMARK_MX_WAIT_SPIN or EARMARK_MX_WAIT_HYBRID.
     */
    uint32_t waiting;
    /**
     * For EARMARK_MX_WAIT_HYBRID: how long to spin, in microseconds.
     */
    uint32_t spin_us;
    /**
     * How long a peer may owe an answer before it counts as gone, in milliseconds.
     */
    uint32_t peer_timeout_ms;
    /**
     * How long closing waits for peers to have everything, in milliseconds.
     */
    uint32_t close_timeout_ms;
    /**
     * So many bits of the match information name a context with queues of its own, up to 16.
     */
    uint32_t context_bits;
    /**
     * The lowest of these bits.
     */
    uint32_t context_shift;
    /**
     * 1: frames bear a CRC32C from end to end.
     */
    uint32_t crc;
} earmark_mx_settings_t;

/**
 * A part of the memory of a message.
 */
typedef struct {
    /**
     * Where it begins; NULL if it is empty.
     */
    void *segment_ptr;
    /**
     * Its length in bytes.
     */
    size_t segment_length;
} earmark_mx_segment_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * What a value of earmark_mx_return_t means. The text is for the life of the process.
 */
const char *earmark_mx_strerror(uint32_t code);

/**
 * What a value of earmark_mx_status_code_t means. The text is for the life of the process.
 */
const char *earmark_mx_strstatus(uint32_t code);

/**
 * Whether a request has ended. If so, result is 1, the status is filled in, and the request is
 * NULL from then on; otherwise result is 0.
 */
earmark_mx_return_t earmark_mx_test(earmark_mx_endpoint_t endpoint,
                                    earmark_mx_request_t *request,
                                    earmark_mx_status_t *status,
                                    uint32_t *result);

/**
 * Waits until a request has ended, for so many milliseconds, or EARMARK_MX_INFINITE. Otherwise as
 * earmark_mx_test(): a timeout is no error, and neither is earmark_mx_wakeup().
 */
earmark_mx_return_t earmark_mx_wait(earmark_mx_endpoint_t endpoint,
                                    earmark_mx_request_t *request,
                                    uint32_t timeout,
                                    earmark_mx_status_t *status,
                                    uint32_t *result);

/**
 * Whether any request has ended whose match information, as far as the mask has bits, is this:
 * that of the message, or for connecting that of the request.
 */
earmark_mx_return_t earmark_mx_test_any(earmark_mx_endpoint_t endpoint,
                                        uint64_t match_info,
                                        uint64_t match_mask,
                                        earmark_mx_status_t *status,
                                        uint32_t *result);

/**
 * Waits until any request has ended that fits, as for earmark_mx_test_any(), with a timeout as for
 * earmark_mx_wait().
 */
earmark_mx_return_t earmark_mx_wait_any(earmark_mx_endpoint_t endpoint,
                                        uint32_t timeout,
                                        uint64_t match_info,
                                        uint64_t match_mask,
                                        earmark_mx_status_t *status,
                                        uint32_t *result);

/**
 * The request that has ended first, of those whose end has not been reported; its end is still to
 * be tested. Result is 0 if there is none.
 */
earmark_mx_return_t earmark_mx_ipeek(earmark_mx_endpoint_t endpoint,
                                     earmark_mx_request_t *request,
                                     uint32_t *result);

/**
 * Waits until any request has ended, and tells which as earmark_mx_ipeek(), with a timeout as for
 * earmark_mx_wait().
 */
earmark_mx_return_t earmark_mx_peek(earmark_mx_endpoint_t endpoint,
                                    uint32_t timeout,
                                    earmark_mx_request_t *request,
                                    uint32_t *result);

/**
 * The context that a request was given.
 */
earmark_mx_return_t earmark_mx_context(earmark_mx_endpoint_t endpoint,
                                       earmark_mx_request_t request,
                                       void **context);

/**
 * Takes back a receive that no message has come for, or stops waiting for a connection. If that is
 * done, result is 1 and the request is NULL: its end is not reported. If it is too late, result
 * is 0, and the request will end. A send cannot be cancelled.
 */
earmark_mx_return_t earmark_mx_cancel(earmark_mx_endpoint_t endpoint,
                                      earmark_mx_request_t *request,
                                      uint32_t *result);

/**
 * The end of this request is not reported. Its memory has to stay until the endpoint is closed.
 */
earmark_mx_return_t earmark_mx_forget(earmark_mx_endpoint_t endpoint,
                                      earmark_mx_request_t *request);

/**
 * Lets all threads that wait on this endpoint return, with result 0.
 */
earmark_mx_return_t earmark_mx_wakeup(earmark_mx_endpoint_t endpoint);

/**
 * Receives and sends what there is. Only an endpoint with EARMARK_MX_PROGRESS_MANUAL needs it.
 */
earmark_mx_return_t earmark_mx_progress(earmark_mx_endpoint_t endpoint);

/**
 * A figure of an endpoint: one of EARMARK_MX_INFO_NIC_ID and so on.
 */
earmark_mx_return_t earmark_mx_get_info(earmark_mx_endpoint_t endpoint,
                                        uint32_t key,
                                        uint64_t *value);

/**
 * A counter by its index, 0 to EARMARK_MX_INFO_COUNTERS - 1, with its name, which is cut off where
 * there is no room.
 *
 * Up to the caller:
 * `name` is NULL or has room for `size` bytes.
 */
earmark_mx_return_t earmark_mx_get_counter(earmark_mx_endpoint_t endpoint,
                                           uint32_t index,
                                           char *name,
                                           size_t size,
                                           uint64_t *value);

/**
 * Begins to use the library. Pass EARMARK_MX_API, the version of the header.
 */
earmark_mx_return_t earmark_mx_init(uint32_t api);

/**
 * Ends the use of the library. All endpoints have to be closed.
 */
earmark_mx_return_t earmark_mx_finalize(void);

/**
 * The version of the interface that this library has, as EARMARK_MX_API.
 */
uint32_t earmark_mx_api(void);

/**
 * What went wrong in the latest call of this thread that failed: operation, object, what to do.
 * The text is valid until another call of this thread fails.
 */
const char *earmark_mx_last_error(void);

/**
 * Fills in the usual settings. Pass the size of the structure, as the program knows it.
 *
 * Up to the caller:
 * `settings` is NULL, or has so many bytes.
 */
earmark_mx_return_t earmark_mx_settings_init(earmark_mx_settings_t *settings, size_t size);

/**
 * Opens an endpoint on a port, such as packet:eth0, udp:10.0.0.1 or udp:eth0, with this number, or
 * EARMARK_MX_ANY_ENDPOINT; peers have to present the key. Without a port it is the one that the
 * variable EARMARK_PORT names, without settings these are the usual ones.
 *
 * Up to the caller:
 * `port` is NULL or a string, `settings` is NULL or has as many bytes as it says.
 */
earmark_mx_return_t earmark_mx_open_endpoint(const char *port,
                                             uint32_t endpoint_id,
                                             uint32_t key,
                                             const earmark_mx_settings_t *settings,
                                             earmark_mx_endpoint_t *endpoint);

/**
 * Closes an endpoint: waits until peers have all messages, as long as the settings say, and ends
 * what is left. Its handle, its requests and their memory are free then, whatever this returns.
 */
earmark_mx_return_t earmark_mx_close_endpoint(earmark_mx_endpoint_t endpoint);

/**
 * Connects to the endpoint with this number at this interface, which has to have this key. The
 * timeout is in milliseconds. Connecting to a peer that there is already finds out whether it
 * still is.
 */
earmark_mx_return_t earmark_mx_connect(earmark_mx_endpoint_t endpoint,
                                       uint64_t nic_id,
                                       uint32_t endpoint_id,
                                       uint32_t key,
                                       uint32_t timeout,
                                       earmark_mx_endpoint_addr_t *addr);

/**
 * Begins to connect; the request ends when that is done, after the timeout at the latest, and its
 * status has the address of the peer. EARMARK_MX_STATUS_RESTARTED: there was a connection to an
 * earlier life of the peer, begin again.
 */
earmark_mx_return_t earmark_mx_iconnect(earmark_mx_endpoint_t endpoint,
                                        uint64_t nic_id,
                                        uint32_t endpoint_id,
                                        uint32_t key,
                                        uint32_t timeout,
                                        uint64_t match_info,
                                        void *context,
                                        earmark_mx_request_t *request);

/**
 * The address of this endpoint itself. To send to oneself, connect to it first.
 */
earmark_mx_return_t earmark_mx_get_endpoint_addr(earmark_mx_endpoint_t endpoint,
                                                 earmark_mx_endpoint_addr_t *addr);

/**
 * The interface and the number of the endpoint at an address.
 */
earmark_mx_return_t earmark_mx_decompose_endpoint_addr(earmark_mx_endpoint_addr_t addr,
                                                       uint64_t *nic_id,
                                                       uint32_t *endpoint_id);

/**
 * Gives a pointer of the program's to a peer.
 */
earmark_mx_return_t earmark_mx_set_endpoint_addr_context(earmark_mx_endpoint_t endpoint,
                                                         earmark_mx_endpoint_addr_t addr,
                                                         void *context);

/**
 * The pointer that the program gave to a peer; NULL before that.
 */
earmark_mx_return_t earmark_mx_get_endpoint_addr_context(earmark_mx_endpoint_t endpoint,
                                                         earmark_mx_endpoint_addr_t addr,
                                                         void **context);

/**
 * The interface of the host with this name, by asking for it, for so many milliseconds at most;
 * the number is that of its lowest endpoint. Over udp no host can be asked.
 *
 * Up to the caller:
 * `name` is NULL or a string.
 */
earmark_mx_return_t earmark_mx_hostname_to_nic_id(earmark_mx_endpoint_t endpoint,
                                                  const char *name,
                                                  uint32_t timeout,
                                                  uint64_t *nic_id,
                                                  uint32_t *endpoint_id);

/**
 * The name of the host that has this interface, by asking for it; it is cut off where there is no
 * room.
 *
 * Up to the caller:
 * `name` is NULL or has room for `size` bytes.
 */
earmark_mx_return_t earmark_mx_nic_id_to_hostname(earmark_mx_endpoint_t endpoint,
                                                  uint64_t nic_id,
                                                  uint32_t timeout,
                                                  char *name,
                                                  size_t size);

/**
 * Whether a message has come that fits and that no receive has taken; it goes on waiting. If so,
 * result is 1, and the status has its source, match information and length.
 */
earmark_mx_return_t earmark_mx_iprobe(earmark_mx_endpoint_t endpoint,
                                      uint64_t match_info,
                                      uint64_t match_mask,
                                      earmark_mx_status_t *status,
                                      uint32_t *result);

/**
 * Waits until a message has come that fits, as for earmark_mx_iprobe(), with a timeout as for
 * earmark_mx_wait().
 */
earmark_mx_return_t earmark_mx_probe(earmark_mx_endpoint_t endpoint,
                                     uint32_t timeout,
                                     uint64_t match_info,
                                     uint64_t match_mask,
                                     earmark_mx_status_t *status,
                                     uint32_t *result);

/**
 * As earmark_mx_probe(), for a message from this peer.
 */
earmark_mx_return_t earmark_mx_probe_from(earmark_mx_endpoint_t endpoint,
                                          uint32_t timeout,
                                          earmark_mx_endpoint_addr_t source,
                                          uint64_t match_info,
                                          uint64_t match_mask,
                                          earmark_mx_status_t *status,
                                          uint32_t *result);

/**
 * Sends a message. The request ends when its memory may be used again; whether the message was
 * received only earmark_mx_issend() tells. Without a request the end is not reported, and the
 * memory may be used again when this returns.
 *
 * Up to the caller:
 * The list has so many segments, and their memory stays as it is until the request has ended.
 */
earmark_mx_return_t earmark_mx_isend(earmark_mx_endpoint_t endpoint,
                                     const earmark_mx_segment_t *segments,
                                     uint32_t segments_count,
                                     earmark_mx_endpoint_addr_t destination,
                                     uint64_t match_info,
                                     void *context,
                                     earmark_mx_request_t *request);

/**
 * Sends a message. The request ends when the message was received.
 *
 * Up to the caller:
 * As for earmark_mx_isend().
 */
earmark_mx_return_t earmark_mx_issend(earmark_mx_endpoint_t endpoint,
                                      const earmark_mx_segment_t *segments,
                                      uint32_t segments_count,
                                      earmark_mx_endpoint_addr_t destination,
                                      uint64_t match_info,
                                      void *context,
                                      earmark_mx_request_t *request);

/**
 * Receives the first message that fits: one whose match information, as far as the mask has bits,
 * is this. Messages come from anybody.
 *
 * Up to the caller:
 * The list has so many segments, and their memory is left alone until the request has ended.
 */
earmark_mx_return_t earmark_mx_irecv(earmark_mx_endpoint_t endpoint,
                                     const earmark_mx_segment_t *segments,
                                     uint32_t segments_count,
                                     uint64_t match_info,
                                     uint64_t match_mask,
                                     void *context,
                                     earmark_mx_request_t *request);

/**
 * Receives the first message that fits and that comes from this peer.
 *
 * Up to the caller:
 * As for earmark_mx_irecv().
 */
earmark_mx_return_t earmark_mx_irecv_from(earmark_mx_endpoint_t endpoint,
                                          const earmark_mx_segment_t *segments,
                                          uint32_t segments_count,
                                          earmark_mx_endpoint_addr_t source,
                                          uint64_t match_info,
                                          uint64_t match_mask,
                                          void *context,
                                          earmark_mx_request_t *request);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EARMARK_MX_H */
