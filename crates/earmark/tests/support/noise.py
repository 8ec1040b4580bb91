# The control connection of `earmark serve`, from its specifications alone: Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s
# (noiseprotocol.org), X25519 (RFC 7748), ChaCha20-Poly1305 (RFC 8439). Slow, and for tests only.
import array, hashlib, hmac, os, struct

PRIME = 2 ** 255 - 19

def x25519(scalar, point):
    k = int.from_bytes(scalar, 'little') & ~7 & (1 << 255) - 1 | 1 << 254
    x1 = int.from_bytes(point, 'little') & (1 << 255) - 1
    x2, z2, x3, z3, swap = 1, 0, x1, 1, 0
    for at in reversed(range(255)):
        bit = k >> at & 1
        if swap != bit: x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % PRIME, b * b % PRIME, d * a % PRIME, c * b % PRIME
        x3, z3 = (da + cb) ** 2 % PRIME, x1 * (da - cb) ** 2 % PRIME
        x2, z2 = aa * bb % PRIME, (aa - bb) * (aa + 121665 * (aa - bb)) % PRIME
    if swap: x2, z2 = x3, z3
    return (x2 * pow(z2, PRIME - 2, PRIME) % PRIME).to_bytes(32, 'little')

QUARTERS = [(0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
            (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]

def chacha20(key, first, nonce, count=1):
    # All blocks at once: each word of a state is a number with one lane of 64 bits for each block.
    lanes = sum(1 << 64 * at for at in range(count))
    mask = 0xffffffff * lanes
    begin = [word * lanes for word in struct.unpack('<16I', b'expand 32-byte k' + key + bytes(4) + nonce)]
    begin[12] = sum(first + at << 64 * at for at in range(count))
    s = list(begin)
    for _ in range(10):
        for a, b, c, d in QUARTERS:
            for x, y, z, left in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)]:
                s[x] = s[x] + s[y] & mask
                turned = s[z] ^ s[x]
                s[z] = (turned << left | turned >> 32 - left) & mask
    stream = array.array('I', bytes(64 * count))
    for at in range(16):
        word = s[at] + begin[at] & mask
        stream[at::16] = array.array('I', word.to_bytes(8 * count, 'little'))[::2]
    return stream.tobytes()

def crypt(key, nonce, data):
    stream = chacha20(key, 1, nonce, (len(data) + 63) // 64)[:len(data)]
    return (int.from_bytes(data, 'little') ^ int.from_bytes(stream, 'little')).to_bytes(len(data), 'little')

def tag(key, nonce, extra, sealed):
    block = chacha20(key, 0, nonce)
    r = int.from_bytes(block[:16], 'little') & 0x0ffffffc0ffffffc0ffffffc0fffffff
    pad = lambda data: data + bytes(-len(data) % 16)
    text = pad(extra) + pad(sealed) + struct.pack('<QQ', len(extra), len(sealed))
    sum = 0
    for at in range(0, len(text), 16):
        sum = (sum + int.from_bytes(text[at:at + 16] + b'\1', 'little')) * r % (2 ** 130 - 5)
    return (sum + int.from_bytes(block[16:32], 'little') & (1 << 128) - 1).to_bytes(16, 'little')

def seal(key, number, text, extra=b''):
    nonce = bytes(4) + struct.pack('<Q', number)
    sealed = crypt(key, nonce, text)
    return sealed + tag(key, nonce, extra, sealed)

def unseal(key, number, message, extra=b''):
    nonce, sealed = bytes(4) + struct.pack('<Q', number), message[:-16]
    assert tag(key, nonce, extra, sealed) == message[-16:], 'forged, or of another code'
    return crypt(key, nonce, sealed)

def digest(data): return hashlib.blake2s(data).digest()

def derive(chain, material, count):
    mac = lambda key, data: hmac.new(key, data, hashlib.blake2s).digest()
    key, last, all = mac(chain, material), b'', []
    for at in range(count):
        last = mac(key, last + bytes([at + 1]))
        all.append(last)
    return all

def read(stream):
    def exactly(length):
        data = b''
        while len(data) < length:
            part = stream.recv(length - len(data))
            if not part: raise EOFError
            data += part
        return data
    return exactly(struct.unpack('!H', exactly(2))[0])

def write(stream, message): stream.sendall(struct.pack('!H', len(message)) + message)

class Far:
    """The side of `earmark serve`: it has read a greeting, and answers it."""
    def __init__(self, stream, code):
        self.stream, self.sent, self.received = stream, 0, 0
        name = b'Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s'
        hash = chain = digest(name)
        hash = digest(hash + b'earmark serve 1')
        greeting = read(stream)
        chain, mixed, _ = derive(chain, code.replace('-', '').encode().ljust(32, b'\0'), 3)
        hash = digest(digest(hash + mixed) + greeting[:32])
        chain, key = derive(chain, greeting[:32], 2)
        unseal(key, 0, greeting[32:], hash)
        hash = digest(hash + greeting[32:])
        own = os.urandom(32)
        public = x25519(own, (9).to_bytes(32, 'little'))
        hash = digest(hash + public)
        chain, _ = derive(chain, public, 2)
        chain, key = derive(chain, x25519(own, greeting[:32]), 2)
        write(stream, public + seal(key, 0, b'', hash))
        self.reads, self.writes = derive(chain, b'', 2)

    def say(self, text):
        for at in range(0, len(text), 16000):
            write(self.stream, seal(self.writes, self.sent, text[at:at + 16000]))
            self.sent += 1

    def hear(self):
        self.received += 1
        return unseal(self.reads, self.received - 1, read(self.stream))
