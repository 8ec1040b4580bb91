//! `earmark exporter` on devices of networks of our own: what it exports, and who cannot stop it.
//!
//! Clients are Python, as those of others would be.

use std::collections::BTreeSet;

use crate::support::{Directory, EARMARK, Ended, in_network, needs};

/// What Python scripts import.
const CLIENT: &str = "import socket, sys, time, os
PORT = 7013
def connect():
    s = socket.socket()
    s.settimeout(60)
    s.connect(('127.0.0.1', PORT))
    return s
def ask(request):
    s = connect()
    heard = b''
    try:
        s.sendall(request)
        while part := s.recv(65536):
            heard += part
    except ConnectionError:
        pass
    return heard
def get(path='/metrics', extra=''):
    return ask(f'GET {path} HTTP/1.1\\r\\nHost: x\\r\\n{extra}\\r\\n'.encode()).decode()
def value(series):
    body = get().split('\\r\\n\\r\\n', 1)[1]
    found = [l for l in body.split('\\n') if l.startswith(series + ' ')]
    assert len(found) == 1, (series, body)
    return float(found[0].rsplit(' ', 1)[1])
def peak():
    return int(next(l for l in open(f'/proc/{os.environ[\"exporter\"]}/status') if l.startswith('VmHWM')).split()[1])
def threads():
    return len(os.listdir(f'/proc/{os.environ[\"exporter\"]}/task'))
";

/// Runs a script in a network with the devices `one`, `two` and `tap`, which are exported there;
/// the number of the exporter's process is in `$exporter`.
#[track_caller]
fn against_exporter(before: &str, script: &str) -> Ended {
    let state = Directory::new();
    state.write("client.py", CLIENT);
    let ended = in_network(
        &state,
        &format!(
            "ip link set lo up
             {before}
             {EARMARK} exporter 2>log & export exporter=$!
             trap 'kill $exporter 2>/dev/null || true' EXIT
             until grep -q '^of ' log; do sleep 0.02; kill -0 $exporter; done
             {script}"
        ),
    );
    ended.output();
    ended
}

/// The series of a plain text: names with labels.
fn series(text: &str) -> Vec<&str> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect()
}

#[test]
fn exporter__of_a_veth__has_what_show_says_in_seconds() {
    needs!("network", "python3");
    let state = Directory::new();
    let ended = in_network(
        &state,
        "echo 345000 > /sys/class/net/one/gro_flush_timeout
         echo 3 > /sys/class/net/one/napi_defer_hard_irqs
         ethtool -K one gro on
         ethtool -C tap rx-frames 16
         earmark exporter --print",
    );
    let text = ended.output();
    for line in [
        "earmark_nic_info{device=\"one\",driver=\"veth\",firmware=\"\"",
        "earmark_nic_gro_flush_timeout_seconds{device=\"one\"} 0.000345",
        "earmark_nic_napi_defer_hard_irqs{device=\"one\"} 3",
        "earmark_nic_hold_limit_seconds{device=\"one\",cause=\"napi-deferral\"} 0.000345",
        "earmark_nic_hold_limit_seconds{device=\"two\",cause=\"napi-deferral\"} 0.0",
        "earmark_nic_coalesce_rx_frames{device=\"tap\"} 16",
        "earmark_nic_offload_info{device=\"one\",gro=\"on\",gro_hw=\"absent\",lro=\"absent\"} 1",
        "earmark_nic_read_errors_total{device=\"one\"} 0",
        "earmark_exporter_devices 3",
    ] {
        assert!(text.lines().any(|it| it.starts_with(line)), "no `{line}` in {text}");
    }
    assert!(!text.contains("device=\"lo\"") && !text.contains("device=\"eth0\""), "{text}");
    let all = series(text);
    let different: BTreeSet<_> = all.iter().collect();
    assert_eq!(all.len(), different.len(), "a series is there twice");
    let of_one = all.iter().filter(|it| it.contains("device=\"one\"")).count();
    assert!((10..=50).contains(&of_one), "{of_one} series");
}

#[test]
fn exporter__reads_the_devices_that_are_asked_for_and_those_that_come() {
    needs!("network", "python3");
    let ended = against_exporter(
        "",
        r#"python3 - <<'PY'
from client import *
assert 'device="two"' in get()
PY
        ip link delete one
        ip tuntap add late mode tap
        sleep 1.1
        python3 - <<'PY'
from client import *
text = get()
assert 'device="one"' not in text and 'device="two"' not in text, text
assert 'device="late"' in text, text
PY
        earmark exporter --print --device 'l*' --exclude lo | grep -o 'device="[a-z]*"' | sort -u
        ip link property add dev tap altname another-name-of-the-tap
        earmark exporter --print --device another-name-of-the-tap | grep earmark_nic_napi_threaded{"#,
    );
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines, ["device=\"late\"", "earmark_nic_napi_threaded{device=\"tap\"} 0"]);
}

#[test]
fn exporter__many_scrapes__cost_one_reading_a_second() {
    needs!("network", "python3");
    against_exporter(
        "",
        r#"python3 - <<'PY'
from client import *
begin = time.monotonic()
before = value('earmark_exporter_collections_total')
for _ in range(300):
    assert get().startswith('HTTP/1.1 200')
after = value('earmark_exporter_collections_total')
assert after - before <= time.monotonic() - begin + 1, (before, after)
PY"#,
    );
}

#[test]
fn exporter__garbage_and_endless_headers__are_refused_in_little_memory() {
    needs!("network", "python3");
    against_exporter(
        "",
        r#"python3 - <<'PY'
from client import *
get()
before = peak()
for words in [b'\x16\x03\x01' + os.urandom(500), os.urandom(20000), b'\0' * 100000, b'\r\n' * 50000,
              b'GET', b'GET /metrics HTTP/9.9\r\n\r\n', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']:
    s = connect()
    try:
        s.sendall(words)
        s.shutdown(socket.SHUT_WR)
        heard = s.recv(100)
        assert not heard.startswith(b'HTTP/1.1 200'), (words[:20], heard)
    except OSError:
        pass
for headers in [b'X: ' + b'a' * 10_000_000, b'X: a\r\n' * 1_000_000]:
    heard = ask(b'GET /metrics HTTP/1.1\r\n' + headers + b'\r\n\r\n')
    assert heard == b'' or heard.startswith(b'HTTP/1.1 431'), heard[:100]
assert ask(b'GET /' + b'a' * 1_000_000 + b' HTTP/1.1\r\n\r\n')[:12] in [b'', b'HTTP/1.1 414', b'HTTP/1.1 431']
assert get().startswith('HTTP/1.1 200')
assert peak() - before < 8_000, (before, peak())
PY"#,
    );
}

#[test]
fn exporter__slow_clients_and_ten_thousand_connections__keep_no_client_out() {
    needs!("network", "python3");
    against_exporter(
        "",
        r#"ulimit -n 4096; python3 - <<'PY'
from client import *
get()
before = peak()
# Each has begun to ask, and never ends.
slow = []
for number in range(500):
    try:
        s = connect()
        s.sendall(b'GET /metrics HTTP/1.1\r\nX: ')
        slow.append(s)
    except OSError:
        pass
assert get().startswith('HTTP/1.1 200')
descriptors = len(os.listdir(f'/proc/{os.environ["exporter"]}/fd'))
assert descriptors < 100, descriptors
# They ask, and read nothing.
for number in range(200):
    s = connect()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    s.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
    slow.append(s)
assert get().startswith('HTTP/1.1 200')
for number in range(10_000):
    socket.create_connection(('127.0.0.1', PORT)).close()
assert get().startswith('HTTP/1.1 200')
assert threads() <= 3, threads()
assert peak() - before < 16_000, (before, peak())
PY"#,
    );
}

#[test]
fn exporter__explains_and_probes_in_the_background_and_answers_meanwhile() {
    needs!("network", "python3", "promtool");
    let state = Directory::new();
    state.write("client.py", CLIENT);
    let may_trace = rustix::process::geteuid().is_root();
    let outcome = if may_trace { "done" } else { "failed" };
    let ended = in_network(
        &state,
        &format!(
            "ip link set lo up
             {EARMARK} echo 2>echo & echo=$!
             trap 'kill $echo' EXIT
             until grep -q '^echo on' echo; do sleep 0.02; kill -0 $echo; done
             # Two, as one would rest in between. Beside enough other traffic no answer is traced.
             {EARMARK} exporter --explain 127.0.0.1 --explain-every 1 2>log & explains=$!
             {EARMARK} exporter --probe 127.0.0.1 --listen 127.0.0.1:7014 2>log2 & probes=$!
             trap 'kill $explains $probes $echo' EXIT
             until grep -q '^of ' log && grep -q '^of ' log2; do sleep 0.02; kill -0 $probes; done
             python3 -c '
import client
def wait(of, port, outcome):
    client.PORT = port
    has_run = lambda text: any(
        line.startswith(f\"earmark_{{of}}_runs_total\") and outcome in line
        and not line.endswith(\" 0\") for line in text.splitlines())
    while not has_run(text := client.get()):
        client.time.sleep(0.1)
    print(text.split(\"\\r\\n\\r\\n\", 1)[1])
wait(\"explain\", 7013, \"{outcome}\")
wait(\"probe\", 7014, \"done\")' > text
             grep 'earmark_probe_\\|earmark_explain_' text > ours
             promtool check metrics < ours >&2
             cat text log log2"
        ),
    );
    let text = ended.output();
    let line = |name: &str| text.lines().find(|line| line.starts_with(name));
    for (of, outcome) in [("explain", outcome), ("probe", "done")] {
        let runs = format!("earmark_{of}_runs_total{{host=\"127.0.0.1\",outcome=\"{outcome}\"}} ");
        let count = line(&runs).map(|line| &line[runs.len()..]);
        // A scrape may come after the second run of `--explain`.
        let is_right = |count| count == "1" || of == "explain" && count != "0";
        assert!(count.is_some_and(is_right), "no `{runs}1` in {text}");
    }
    let stage = "earmark_explain_stage_seconds_count{host=\"127.0.0.1\",stage=\"far-unacked\"}";
    assert_eq!(line(stage).is_some(), may_trace, "{text}");
    // What it says of the loopback depends on who else is at work; that it says something does not.
    assert!(line("earmark_probe_verdicts_total{host=\"127.0.0.1\",side=").is_some(), "{text}");
}

#[test]
fn exporter__follows_all_requests_of_the_machine__by_device_and_by_cgroup() {
    needs!("network", "root", "python3", "promtool");
    for (by, labels) in [("", "device=\"lo\",cgroup=\"\""), ("=cgroup", "device=\"\",cgroup=\"/")] {
        let state = Directory::new();
        state.write("client.py", CLIENT);
        let ended = in_network(
            &state,
            &format!(
                "ip link set lo up
                 {EARMARK} echo 2>echo & echo=$!
                 {EARMARK} exporter --stages{by} 2>log & exporter=$!
                 trap 'kill $echo $exporter' EXIT
                 until grep -q '^metrics at' log && grep -q '^echo on' echo; do
                     sleep 0.02; kill -0 $exporter; done
                 python3 -c '
import client, socket
def is_there(text):
    return all(any(line.startswith(\"earmark_request_seconds_count\") and role in line
                   for line in text.splitlines()) for role in (\"asks\", \"answers\"))
s = socket.create_connection((\"127.0.0.1\", 7007))
while not is_there(text := client.get()):
    for _ in range(20):
        s.send(b\"x\"); s.recv(1)
    client.time.sleep(0.1)
print(text.split(\"\\r\\n\\r\\n\", 1)[1])
newer = client.get(extra=\"Accept: application/openmetrics-text\\r\\n\")
slowest = [line for line in newer.splitlines() if \" # {{program=\" in line]
assert any(line.startswith(\"earmark_request_seconds_bucket\") for line in slowest), newer' > text
                 grep 'earmark_stage\\|earmark_request_' text > ours
                 promtool check metrics < ours >&2
                 cat text"
            ),
        );
        let text = ended.output();
        for name in ["earmark_stage_seconds_sum", "earmark_request_seconds_bucket"] {
            let begin = format!("{name}{{{labels}");
            assert!(text.lines().any(|line| line.starts_with(&begin)), "no {begin} in {text}");
        }
        let followed = "earmark_stages_followed_seconds_total ";
        assert!(text.lines().any(|line| line.starts_with(followed)), "{text}");
    }
}

#[test]
fn exporter__textfile__is_what_node_exporter_takes() {
    needs!("network", "python3", "promtool", "prometheus-node-exporter");
    let state = Directory::new();
    let ended = in_network(
        &state,
        &format!(
            "ip link set lo up; mkdir files; umask 077
         earmark exporter --textfile files/earmark.prom
         stat -c %a files/earmark.prom; ls -A files
         promtool check metrics < files/earmark.prom
         prometheus-node-exporter --web.listen-address=127.0.0.1:9100 --collector.disable-defaults \
             --collector.textfile --collector.textfile.directory=files 2>log & node=$!
         {EARMARK} exporter --textfile files/earmark.prom --interval 1 & again=$!
         trap 'kill $node $again' EXIT
         first=$(grep ^earmark_exporter_collect_time files/earmark.prom)
         until [ \"$(grep ^earmark_exporter_collect_time files/earmark.prom)\" != \"$first\" ]; do
             sleep 0.1; kill -0 $again
         done
         python3 -c '
import time, urllib.request
while True:
    try:
        print(urllib.request.urlopen(\"http://127.0.0.1:9100/metrics\").read().decode())
        break
    except ConnectionRefusedError:
        time.sleep(0.05)'"
        ),
    );
    let text = ended.output();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["644", "earmark.prom"], "{text}");
    for line in [
        "# TYPE earmark_nic_packets_total counter",
        "earmark_exporter_devices 3",
        "node_textfile_scrape_error 0",
    ] {
        assert!(lines.contains(&line), "no `{line}` in {text}");
    }
}
