//! `earmark serve`, `echo` and `tune` under attack, each in a network namespace of its own.
//!
//! The attackers are Python, as those of others would be; they know the protocols and no code.

use serde_json::Value;

use crate::support::{Directory, EARMARK, Ended, in_network, needs};

/// A pairing code.
const CODE: &str = "0123-4567-89AB-CDEF-GHJK";

/// What Python scripts import: connections from an address, datagrams in the name of others.
const ATTACK: &str = "import socket, struct, time, sys, os
def spoof(source, to, text):
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
    raw.sendto(struct.pack('!HHHH', source, to, 8 + len(text), 0) + text, ('127.0.0.1', 0))
def request(number, length=24):
    return (b'EMK1' + struct.pack('!I', number) + bytes(length))[:length]
def connect(own, port):
    s = socket.socket()
    s.settimeout(20)
    s.bind((own, 0))
    s.connect(('127.0.0.1', port))
    return s
";

/// What a shell script has at hand: Python, `serve` with its number in `$serve`, the peak memory
/// of a process in kB, and an agent that the paired host asks for.
fn against_serve(script: &str) -> Ended {
    let state = Directory::new();
    state.write("attack.py", ATTACK);
    let ended = in_network(
        &state,
        &format!(
            "ip link set lo up; export EARMARK_CODE={CODE} EARMARK={EARMARK}
             {EARMARK} serve >served 2>log & serve=$!; trap 'kill $serve $all 2>/dev/null || true' EXIT
             until grep -q 'this host alone' served; do sleep 0.02; done
             peak() {{ sed -n 's/VmHWM:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$1/status; }}
             threads() {{ sed -n 's/Threads:[^0-9]*//p' /proc/$1/status; }}
             agent() {{ {EARMARK} at 127.0.0.1:7010 agent \"$1\"; }}
             {script}"
        ),
    );
    ended.output();
    ended
}

#[test]
fn serve__answers_strangers_with_less_than_they_send() {
    needs!("network", "python3", "pgrep");
    let ended = against_serve(
        r#"python3 - <<'PY'
import os, socket
line = b'{"workload":{"kind":"rr-server","response_bytes":60000},"transport":"udp","address":"0.0.0.0:19"}\n'
for words in [line, b'GET / HTTP/1.0\r\n\r\n', b'\0\x30' + os.urandom(48), b'\xff\xff' + bytes(70000)]:
    s = socket.create_connection(('127.0.0.1', 7010))
    heard = 0
    try:
        s.sendall(words)
        while part := s.recv(65536): heard += len(part)
    except OSError: pass
    assert heard < len(words), (words, heard)
    # "Another code" is a length and one byte.
    assert heard == (3 if words[:2] == b'\0\x30' else 0), (words, heard)
# No server of datagrams has been opened, at whatever port.
assert len(open('/proc/net/udp').readlines()) == 1
PY
        kill $serve; wait $serve || true; cat log"#,
    );
    assert!(ended.stdout.contains("1 with another code"), "{ended:?}");
}

#[test]
fn serve__answers_what_was_recorded_with_less_than_it_takes_and_starts_nothing() {
    needs!("network", "python3", "pgrep");
    let ended = against_serve(
        r#"python3 - <<'PY'
import os, socket, subprocess, threading
door = socket.create_server(('127.0.0.1', 0))
recorded = []
def carry(a, b, kept):
    try:
        while part := a.recv(65536):
            kept.append(part)
            b.sendall(part)
        b.shutdown(socket.SHUT_WR)
    except OSError: pass
def between():
    near, far = door.accept()[0], socket.create_connection(('127.0.0.1', 7010))
    threading.Thread(target=carry, args=(far, near, [])).start()
    carry(near, far, recorded)
proxy = threading.Thread(target=between)
proxy.start()
spec = '{"workload":{"kind":"bulk-receiver"},"address":"0.0.0.0:7011"}'
at = [os.environ['EARMARK'], 'at', '127.0.0.1:%d' % door.getsockname()[1], 'agent', spec]
said = subprocess.run(at, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
assert '"event":"ready"' in said, said
proxy.join()
words = b''.join(recorded)
# The greeting alone, all of it, and one message that was changed.
for again in [words[:50], words, words[:52] + bytes(len(words) - 52)]:
    s = socket.create_connection(('127.0.0.1', 7010))
    s.sendall(again)
    s.shutdown(socket.SHUT_WR)
    heard = 0
    try:
        while part := s.recv(65536): heard += len(part)
    except OSError: pass
    assert heard == 50, (len(again), heard)
PY
        ! pgrep -P $serve; kill $serve; wait $serve || true; cat log"#,
    );
    assert!(ended.stdout.contains("2 that did not go on as a paired host does"), "{ended:?}");
}

#[test]
fn serve__has_a_place_for_its_peer_whatever_slow_connections_do() {
    needs!("network", "python3", "pgrep");
    let ended = against_serve(
        r#"python3 - <<'PY' &
import socket, time
all = []
for at in range(300):
    s = socket.create_connection(('127.0.0.1', 7010))
    s.send(b'\0\x30' if at % 2 else b'\0')
    all.append(s)
open('open', 'w').close()
time.sleep(3)
PY
        all=$!
        until test -e open; do sleep 0.02; done
        agent '{"workload":{"kind":"bulk-receiver"},"address":"0.0.0.0:7011"}' </dev/null
        threads $serve"#,
    );
    let mut lines = ended.stdout.lines();
    let ready: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!(ready["event"], "ready", "{ended:?}");
    let threads: u64 = lines.last().unwrap().parse().unwrap();
    assert!(threads <= 100, "{threads} threads");
}

#[test]
fn serve__its_agents_serve_the_paired_host_alone_and_within_their_memory() {
    needs!("network", "python3", "pgrep");
    let ended = against_serve(
        r#"mkfifo orders
        agent '{"workload":{"kind":"rr-server","response_bytes":65536},"address":"0.0.0.0:7011"}' <orders >agent & own=$!
        exec 3>orders
        until grep -q ready agent; do sleep 0.02; done
        pid=$(pgrep -P $serve)
        python3 - $pid <<'PY'
from attack import *
try:
    other = connect('127.0.0.2', 7011)
    other.send(b'x')
    print('other', len(other.recv(1)))
except ConnectionResetError: print('other', 0)
peer = connect('127.0.0.1', 7011)
peer.send(b'x')
print('peer', len(peer.recv(1)))
peak = sent = 0
try:
    # Each byte is a request, and no answer is read.
    while sent < 50_000_000:
        sent += peer.send(bytes(65536))
        status = open(f'/proc/{sys.argv[1]}/status').read()
        peak = max(peak, int(status.split('VmHWM:')[1].split()[0]) if 'VmHWM' in status else 0)
except OSError: pass
print('peak', peak)
PY
        agent '{"workload":{"kind":"rr-server"},"address":"0.0.0.0:7012"}' </dev/null
        exec 3>&-; wait $own || true; cat agent"#,
    );
    assert!(ended.stdout.contains("other 0\npeer 1\n"), "{ended:?}");
    assert!(ended.stdout.contains("does not read the answers"), "{ended:?}");
    let peak = ended.stdout.lines().find_map(|line| line.strip_prefix("peak ")).unwrap();
    // The program itself is a part of it.
    assert!(peak.parse::<u64>().unwrap() < 60_000, "{peak} kB");
    assert!(ended.stdout.contains(r#""event":"ready""#), "it still serves: {ended:?}");
}

#[test]
fn serve__its_agents_end_with_orders_without_end_and_with_their_host() {
    needs!("network", "python3", "pgrep");
    let ended = against_serve(
        r#"spec() {
            echo "{\"workload\":{\"kind\":\"rr-server\"},\"address\":\"0.0.0.0:$1\",\"duration_ms\":3500000}"
        }
        for port in 7011 7012 7013 7014; do
            agent "$(spec $port)" </dev/zero >$port 2>&1 & all="$all $!"
            (echo go; exec cat /dev/zero) | agent "$(spec 1$port)" >1$port 2>&1 & all="$all $!"
        done
        wait $all || true
        while pgrep -P $serve; do sleep 0.02; done
        # Their host goes after `go`, without a word.
        for port in 7011 7012 7013 7014; do
            mkfifo orders$port
            $EARMARK at 127.0.0.1:7010 agent "$(spec $port)" <orders$port >again$port & last="$last $!"
            exec 3>orders$port; echo go >&3
            until grep -q ready again$port; do sleep 0.02; done
        done
        echo agents $(pgrep -P $serve | wc -l)
        kill -9 $last
        while pgrep -P $serve >left; do sleep 0.02; done
        agent "$(spec 7011)" </dev/null
        kill $serve; wait $serve || true; cat log"#,
    );
    assert!(ended.stdout.contains("agents 4\n"), "{ended:?}");
    assert!(ended.stdout.contains(r#""event":"ready""#), "{ended:?}");
    assert!(ended.stdout.contains("8 that gave more orders than an agent takes"), "{ended:?}");
}

/// A far host that has the code, and says what it should not; and what `tune` makes of that.
const EVIL: &str = r#"
import json, os, resource, socket, subprocess, threading, time
from noise import Far
EARMARK = os.environ['EARMARK']
def accept(port, each):
    door = socket.create_server(('127.0.0.1', port))
    def all():
        while True: threading.Thread(target=each, args=(door.accept()[0],), daemon=True).start()
    threading.Thread(target=all, daemon=True).start()
    return '127.0.0.1:%d' % door.getsockname()[1]
def serve(say):
    def one(stream):
        try:
            far = Far(stream, os.environ['EARMARK_CODE'])
            far.hear()
            say(far)
            while True: far.hear()
        except (EOFError, OSError): pass
    return accept(0, one)
def forever(text, pause=0):
    def say(far):
        while True:
            far.say(text)
            time.sleep(pause)
    return say
def once(text): return lambda far: far.say(text + b'\n')
connected = []
def echo(far):
    connected.append(far.getsockname()[1])
    try:
        while byte := far.recv(1): far.sendall(byte)
    except OSError: pass
line = lambda **fields: json.dumps(fields).encode()
# The address of another service of this host.
ready = line(event='ready', address='127.0.0.1:7099')
latency = {'count': 2 ** 63 - 1, 'min_ns': 1, 'max_ns': 1, 'sum_ns': 1, 'buckets': [[1, 2 ** 63 - 1]]}
record = line(event='record', schema=1, workload='rr-server', window_ns=1, cpu_ns=1, counters={},
              distributions={'latency': latency})
accept(7099, echo)
for name, say, words in [
    ('escapes', once(line(event='error', message='\x1b]0;x\x07\x9b31m')), r'\u{1b}]0;x'),
    ('raw escapes', once(b'\x1b]0;x\x07\x1b[31m'), r'said `\u{1b}]0;x'),
    ('no UTF-8', once(b'\xff\xfe'), 'expected value'),
    ('nested', once(b'[' * 1000000), 'said `[[[['),
    ('endless', forever(b'x' * 16000), 'says more than 2097152 bytes'),
    ('drip', forever(b' ', 0.5), 'did not answer within'),
    ('third', once(ready), 'connect to 127.0.0.1:7011'),
    ('record', once(ready + b'\n' + record), 'what no agent measures'),
]:
    if name == 'record':
        assert not connected, connected
        accept(7011, echo)
    tune = [EARMARK, 'tune', 'one', '--peer', serve(say), '--goal', 'min latency', '--duration', '0.1', '--trials', '3']
    ended = subprocess.run(tune, stdin=subprocess.DEVNULL, capture_output=True)
    said = ended.stderr.decode()
    assert ended.returncode == 1 and words in said and 'panicked' not in said, (name, ended)
    assert '\x1b' not in said and '\x9b' not in said and len(said) < 4000, (name, said)
assert set(connected) == {7011}, connected
print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
# What stands for the far agent ends when its parent has gone.
left = [EARMARK, 'at', serve(forever(b' ', 0.5)), 'agent', '{}']
print('left', subprocess.run(left, stdin=subprocess.DEVNULL, capture_output=True).returncode)
"#;

#[test]
fn tune__ends_by_itself_in_little_memory_whatever_its_far_host_says() {
    needs!("network", "python3", "pgrep");
    let state = Directory::new();
    state.write("noise.py", include_str!("../support/noise.py"));
    state.write("evil.py", EVIL);
    let ended = in_network(
        &state,
        &format!(
            "ip link set lo up; export EARMARK_CODE={CODE} EARMARK={EARMARK}
             echo 3000 >/sys/class/net/one/gro_flush_timeout
             python3 evil.py
             cat /sys/class/net/one/gro_flush_timeout; ls"
        ),
    );
    let said = ended.output();
    let peak = said.lines().find_map(|line| line.strip_prefix("peak ")).unwrap();
    // The largest of all processes, the program itself included.
    assert!(peak.parse::<u64>().unwrap() < 60_000, "{peak} kB");
    assert!(said.contains("\nleft ") && said.contains("\n3000\n"), "{ended:?}");
    assert!(!said.contains(".journal"), "{ended:?}");
}

/// Runs a script with `echo`, which starts one and sets `$echo`, and [`ATTACK`].
fn against_echo(script: &str) -> Ended {
    let state = Directory::new();
    state.write("attack.py", ATTACK);
    let ended = in_network(
        &state,
        &format!(
            "ip link set lo up; trap 'kill $all 2>/dev/null || true' EXIT
             echo() {{
                 {EARMARK} echo \"$@\" 2>log & echo=$!; all=\"$all $!\"
                 until grep -q 'UDP and TCP' log; do sleep 0.02; done
             }}
             packets() {{ cat /sys/class/net/lo/statistics/rx_packets; }}
             {script}"
        ),
    );
    ended.output();
    ended
}

#[test]
fn echo__two_of_them_and_a_strange_one_cannot_be_set_on_each_other() {
    needs!("network", "python3", "pgrep");
    let ended = against_echo(
        r#"echo --listen 127.0.0.1; echo --listen 127.0.0.1 --port 9000
        python3 - <<'PY' & all="$all $!"
import socket
strange = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
strange.bind(('127.0.0.1', 9100))
open('strange', 'w').close()
while True:
    text, source = strange.recvfrom(2048)
    strange.sendto(text, source)
PY
        until test -e strange; do sleep 0.02; done
        packets
        python3 - <<'PY'
from attack import *
answer = b'EMK2' + bytes(20)
for at in range(5):
    for source, to in [(7007, 9000), (9000, 7007), (9100, 7007)]: spoof(source, to, request(at))
    for text in [answer, b'hello']: spoof(9000, 7007, text)
PY
        for try in $(seq 1000); do test $(packets) -ge 40 && break; sleep 0.02; done
        packets; sleep 1; packets"#,
    );
    let packets: Vec<u64> = ended.stdout.lines().map(|line| line.parse().unwrap()).collect();
    let [before, after, later] = packets[..] else { panic!("{ended:?}") };
    // 25 that were sent, 10 answers, and 5 of these sent back by the strange one.
    assert_eq!((after - before, later - after), (40, 0), "{ended:?}");
}

#[test]
fn echo__sends_no_more_than_it_receives_and_keeps_its_rate() {
    needs!("network", "python3", "pgrep");
    let ended = against_echo(
        r#"echo --listen 127.0.0.1 --rate 100
        python3 - <<'PY'
from attack import *
begin = time.monotonic()
me = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
me.connect(('127.0.0.1', 7007))
me.settimeout(20)
sent = heard = count = 0
for length in [0, 4, 7, 8, 12, 24, 100, 1400, 60000]:
    text = request(1, length)
    sent += me.send(text)
    if length >= 8:
        answer = me.recv(65536)
        assert len(answer) == length and answer[:4] == b'EMK2', answer[:24]
        heard += len(answer)
        count += 1
me.setblocking(False)
def hear():
    global heard, count
    try:
        while True:
            heard += len(me.recv(2048))
            count += 1
    except BlockingIOError: pass
for at in range(50000):
    try: sent += me.send(request(at))
    except BlockingIOError: pass
    hear()
time.sleep(0.5)
hear()
most = 100 + 100 * (time.monotonic() - begin)
assert heard <= sent and 7 <= count <= most + 1, (sent, heard, count, most)
print(heard / sent, count)
PY
        kill -TERM $echo; wait $echo || true; cat log"#,
    );
    assert!(ended.stdout.contains("that are no requests"), "{ended:?}");
    assert!(ended.stdout.contains("beyond the rate of one address"), "{ended:?}");
}

#[test]
fn echo__bounds_connections_and_threads_and_outlives_a_lack_of_descriptors() {
    needs!("network", "python3", "pgrep");
    let ended = against_echo(
        r#"ulimit -n 4096; echo --listen 127.0.0.1
        python3 - $echo <<'PY'
from attack import *
def is_served(own):
    s = connect(own, 7007)
    s.send(b'x')
    return s.recv(1) == b'x'
all = [connect('127.0.0.1', 7007) for _ in range(2000)]
assert is_served('127.0.0.2')
status = open(f'/proc/{sys.argv[1]}/status').read()
threads = int(status.split('Threads:')[1].split()[0])
print('threads', threads, 'descriptors', len(os.listdir(f'/proc/{sys.argv[1]}/fd')))
assert threads <= 4
assert len(os.listdir(f'/proc/{sys.argv[1]}/fd')) < 100
PY
        kill $all; all=; ulimit -n 24; echo --listen 127.0.0.1 --port 9000; ulimit -n 1024 || true
        python3 - $echo <<'PY'
from attack import *
def ticks():
    words = open(f'/proc/{sys.argv[1]}/stat').read().rsplit(')', 1)[1].split()
    return int(words[11]) + int(words[12])
all = []
for _ in range(6): all += [connect('127.0.0.1', 9000) for _ in range(3)]
time.sleep(0.5)
before = ticks()
time.sleep(2)
used = ticks() - before
print('ticks', used)
assert used < 50, used
for one in all: one.close()
last = connect('127.0.0.1', 9000)
last.send(b'x')
assert last.recv(1) == b'x'
PY
        grep -c 'lack of descriptors' log"#,
    );
    assert!(ended.stdout.ends_with("\n1\n"), "{ended:?}");
}
