"""Round trips of a datagram of one byte: a server without arguments, or a client of HOST, which prints the nanoseconds of
COUNT round trips, the median of BATCHES. A lost datagram ends it: the kernel's timeout takes no time, Python's reads the clock."""
import socket, struct, sys, time

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if len(sys.argv) == 1:
    s.bind(('', 7))
    while True:
        s.sendto(*s.recvfrom(64))
host, count, batches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
s.connect((host, 7))
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 1, 0))


def play(count):
    start = time.monotonic_ns()
    for _ in range(count):
        s.send(b'x')
        s.recv(64)
    return time.monotonic_ns() - start


# For drivers that write an interval when they next poll.
play(20)
print('ns', sorted(play(count) for _ in range(batches))[batches // 2])
