# Servers and clients of tests: requests of an epoll object one by one, and answers to those of many
# connections. It is given to a shell between single quotes, so it has none.
import fcntl, select, socket, struct, sys, time

# Has waits of an epoll object poll (EPIOCSPARAMS).
def busy_poll(epoll, usecs, prefer):
    fcntl.ioctl(epoll, 0x40088a01, struct.pack("IHBB", usecs, 64, prefer, 0))

# What clients send: the connection and a request, an empty one when the connection has ended.
def requests(listening, epoll):
    epoll.register(listening, select.EPOLLIN)
    connections = {}
    while True:
        for number, _ in epoll.poll():
            if number == listening.fileno():
                connection, _ = listening.accept()
                connections[connection.fileno()] = connection
                epoll.register(connection, select.EPOLLIN)
                continue
            request = connections[number].recv(64)
            yield connections[number], request
            if not request: connections.pop(number).close()

# Waits for the server, but not for ever.
def connected(host):
    for _ in range(500):
        try: return socket.create_connection((host, 7))
        except OSError: time.sleep(0.01)
    sys.exit()

# Asks over so many connections, over each again when its answer has come and was told, until the
# server ends one.
def answers(host, number):
    servers = [connected(host) for _ in range(number)]
    poll = select.poll()
    for server in servers:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(server, select.POLLIN)
        server.send(b"?")
    by_number = {server.fileno(): server for server in servers}
    while True:
        for number, _ in poll.poll():
            answer = by_number[number].recv(64)
            if not answer: return
            yield
            by_number[number].send(answer)
