"""What IRQ suspension does for unmodified servers: memcached, nginx and redis on a veth of this machine.

Run as root, below `cargo xtask bench suspension`: python3 xtask/suspension.py SERVER ROUNDS. It prints
JSON: for each load and way to packets, medians over the rounds, in which the ways take turns. The
server has libearmark-poll.so preloaded where it is to poll, the client is in a network of its own:
wrk, redis-benchmark, or for memcached an `earmark agent` for each connection.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

WAYS = {
    # settings of the device, and of libearmark-poll.so: as in the measurements that came with
    # irq-suspend-timeout, base, defer, full busy polling and suspension.
    "base": ("", None),
    "defer:20": ("gro-flush-timeout 20us napi-defer-hard-irqs 2", None),
    "full-busy": ("gro-flush-timeout 5ms napi-defer-hard-irqs 100", "1000000"),
    "suspend:20": ("gro-flush-timeout 20us napi-defer-hard-irqs 2 irq-suspend-timeout 20ms", "0"),
}
LOADS = {"low": 1, "middle": 8, "high": 64}
NGINX = """daemon off; master_process off; pid nginx.pid; error_log stderr crit;
events { worker_connections 512; }
http { access_log off; keepalive_requests 1000000000;
%s
server { listen 10.78.0.1:8080; location / { return 200 "hello"; } } }"""


def sh(*words, **more):
    return subprocess.run(words, check=True, capture_output=True, text=True, **more).stdout


def library():
    beside = os.path.dirname(os.path.realpath(shutil.which("earmark")))
    places = [os.path.join(beside, it, "libearmark_poll.so") for it in (".", "deps")]
    found = [place for place in places if os.path.exists(place)]
    return found[0] if found else sys.exit("no libearmark-poll.so; run: cargo build -p earmark-preload")


def server(kind, directory):
    """The words that start it, and its port."""
    if kind == "redis":
        words = ["redis-server", "--bind", "10.78.0.1", "--port", "6379", "--save", ""]
        return words + ["--appendonly", "no", "--protected-mode", "no"], 6379
    if kind == "memcached":
        return ["memcached", "-u", "root", "-t", "1", "-U", "0", "-l", "10.78.0.1", "-p", "11211"], 11211
    temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    paths = "".join(f"{it}_temp_path {directory}/{it};" for it in temporary)
    path = os.path.join(directory, "nginx.conf")
    with open(path, "w") as file:
        file.write(NGINX % paths)
    return ["nginx", "-p", directory, "-c", path], 8080


def micros(text):
    found = re.match(r"([0-9.]+)(us|ms|s|m)$", text)
    if not found:
        raise ValueError(f"wrk has no such time as {text}; nothing was answered")
    number, unit = found.groups()
    return float(number) * {"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6}[unit]


def gets(connections):
    """Asks memcached over so many connections for two seconds, as fast as it answers."""
    spec = {"workload": {"kind": "memcached-client"}, "address": "10.78.0.1:11211", "duration_ms": 2000}
    words = ["earmark", "agent", json.dumps(spec)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    agents = [subprocess.Popen(words, **pipes) for _ in range(connections)]
    for agent in agents:
        agent.stdout.readline()
    for agent in agents:
        agent.stdin.write("go\n")
        agent.stdin.flush()
    latencies = [json.loads(agent.communicate()[0])["distributions"]["latency"] for agent in agents]
    buckets = sorted(bucket for it in latencies for bucket in it["buckets"])
    count = sum(it["count"] for it in latencies)

    def quantile(part):
        seen = 0
        for nanos, number in buckets:
            seen += number
            if seen >= part * count:
                return nanos / 1e3

    figures = {"answers_per_s": count / 2, "p50_us": quantile(0.5), "p99_us": quantile(0.99)}
    json.dump(figures | {"max_us": max(it["max_ns"] for it in latencies) / 1e3}, sys.stdout)


def client(kind, connections, requests):
    """The words that ask, and what reads their figures."""
    if kind == "memcached":
        return [sys.executable, os.path.realpath(__file__), "gets", str(connections)], json.loads
    if kind == "redis":
        words = ["redis-benchmark", "-h", "10.78.0.1", "-t", "get", "--csv"]

        def read(text):
            row = text.strip().splitlines()[-1].replace('"', "").split(",")
            rate, _, _, p50, _, p99, most = map(float, row[1:8])
            return {"answers_per_s": rate, "p50_us": p50 * 1e3, "p99_us": p99 * 1e3, "max_us": most * 1e3}

        return words + ["-c", str(connections), "-n", str(requests)], read

    def read_wrk(text):
        quantile = lambda percent: micros(re.search(rf"{percent}%\s+(\S+)", text).group(1))
        most = micros(re.search(r"Latency\s+\S+\s+\S+\s+(\S+)", text).group(1))
        rate = float(re.search(r"Requests/sec:\s+([0-9.]+)", text).group(1))
        return {"answers_per_s": rate, "p50_us": quantile(50), "p99_us": quantile(99), "max_us": most}

    words = ["wrk", "-t1", f"-c{connections}", "-d2", "--latency", "http://10.78.0.1:8080/"]
    return words, read_wrk


def busy_s(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def play(kind, way, connections, far, directory):
    settings, usecs = WAYS[way]
    if settings:
        sh("earmark", "apply", "one", *settings.split())
    environment = dict(os.environ)
    if usecs is not None:
        environment |= {"LD_PRELOAD": library(), "EARMARK_BUSY_POLL_USECS": usecs}
    words, port = server(kind, directory)
    running = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
    while f":{port} " not in sh("ss", "-ltn"):
        time.sleep(0.01)
    asks, read = client(kind, connections, 60_000 if connections == 1 else 150_000)
    begin, busy = time.monotonic(), busy_s(running.pid)
    asking = subprocess.Popen(
        ["nsenter", "--net", "--target", str(far), *asks], stdout=subprocess.PIPE, text=True
    )
    time.sleep(0.3)
    seen = json.loads(sh("earmark", "show", "--suspension", "--sample", "0.5", "--json", str(running.pid)))
    text = asking.communicate()[0]
    share = (busy_s(running.pid) - busy) / (time.monotonic() - begin)
    running.kill()
    running.wait()
    if settings:
        sh("earmark", "rollback", "one")
    of_device = seen["suspension"][0]
    window, states = of_device["window"], {it["state"] for it in of_device["pollers"]}
    polled = min(1.0, window["busy_polled"] / max(1, window["packets"]))
    return read(text) | {"server_cpu": share, "busy_polled": polled, "verdict": "/".join(sorted(states))}


NEEDS = {
    "memcached": {"memcached": "memcached"},
    "nginx": {"nginx": "nginx", "wrk": "wrk"},
    "redis": {"redis-server": "redis-server", "redis-benchmark": "redis-tools"},
}


def main(kind, rounds):
    missing = [package for program, package in NEEDS[kind].items() if not shutil.which(program)]
    if missing:
        sys.exit(f"{kind} cannot be measured; install its programs: apt-get install {' '.join(missing)}")
    directory = "/run/earmark-suspension"
    for at in ["/sys:sysfs", "/run:tmpfs"]:
        place, kind_of_mount = at.split(":")
        sh("mount", "-t", kind_of_mount, kind_of_mount, place)
    os.makedirs(directory)
    far = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sleep", "3600"])
    own = os.readlink("/proc/self/ns/net")
    while os.readlink(f"/proc/{far.pid}/ns/net") == own:
        time.sleep(0.01)
    inside = ["nsenter", "--net", "--target", str(far.pid)]
    sh("ip", "link", "add", "one", "type", "veth", "peer", "name", "two")
    sh("ip", "link", "set", "two", "netns", str(far.pid))
    for prefix, device, address in [([], "one", "10.78.0.1/24"), (inside, "two", "10.78.0.2/24")]:
        sh(*prefix, "ip", "address", "add", address, "dev", device)
        sh(*prefix, "ip", "link", "set", device, "up")
        sh(*prefix, "ethtool", "-K", device, "gro", "on", "tso", "off")
    kept = {}
    for load, connections in LOADS.items():
        played = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way in WAYS:
                try:
                    played[way].append(play(kind, way, connections, far.pid, directory))
                except ValueError as why:
                    # Said, and not counted: `rounds` of the result has those that were.
                    print(f"{kind}, {load}, {way}: {why}", file=sys.stderr)
        kept[load] = {
            way: {
                name: sorted({it[name] for it in all_rounds})
                if name == "verdict"
                else statistics.median(it[name] for it in all_rounds)
                for name in all_rounds[0]
            }
            | {"rounds": len(all_rounds)}
            for way, all_rounds in played.items()
            if all_rounds
        }
    far.kill()
    json.dump(kept, sys.stdout)


if sys.argv[1:2] == ["inside"]:
    main(sys.argv[2], int(sys.argv[3]))
elif sys.argv[1:2] == ["gets"]:
    gets(int(sys.argv[2]))
else:
    words = ["unshare", "--net", "--mount", sys.executable, __file__, "inside", *sys.argv[1:]]
    sys.exit(subprocess.run(words).returncode)
