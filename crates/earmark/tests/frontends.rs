//! `earmark nic serve` and whoever connects to it: our driver, a DPDK program, a virtual machine.
//!
//! DPDK and QEMU are tried where they are installed; where not, a line says so and what would
//! install them. These variables name them elsewhere: `EARMARK_TESTPMD`, `EARMARK_QEMU`,
//! `EARMARK_BUSYBOX`, and `EARMARK_QEMU_KERNEL`, which is a `boot/vmlinuz-VERSION` that has its
//! modules in `lib/modules/VERSION` beside `boot`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use vhost::driver::{DriverSettings, VirtioDriver};

mod common;
use common::{Directory, Lab, Running, earmark, output, run, soon, unique};

/// A NIC that is served.
struct Nic {
    name: String,
    directory: Directory,
    serve: Running,
}

impl Nic {
    fn start(options: &[&str]) -> Self {
        let (name, directory) = (unique("served"), Directory::new());
        let sockets = [directory.file("a.sock"), directory.file("b.sock")];
        let words = ["nic", "serve", &sockets[0], &sockets[1], "--name", &name];
        let mut serve = Running::start(&mut earmark(&[&words, options].concat()));
        let said = serve.line();
        assert!(said.contains(&sockets[0]), "{said}");
        Self { name, directory, serve }
    }

    fn socket(&self, port: char) -> String {
        self.directory.file(&format!("{port}.sock"))
    }

    fn driver(&self, port: char) -> VirtioDriver {
        VirtioDriver::connect(self.socket(port).as_ref(), DriverSettings::default()).unwrap()
    }

    fn nic(&self, words: &[&str]) -> common::Ended {
        run(&[&["nic", "--lab", &self.name], words].concat())
    }

    fn attachment(&self, port: &str) -> serde_json::Value {
        self.nic(&["show", port, "--json"]).json()[0]["attachment"].clone()
    }

    fn connected(&self, port: &str) {
        soon("somebody connects", || self.attachment(port)["connected"] == true);
    }

    /// Interrupts it; both files are gone then.
    fn end(self) {
        self.serve.signal(Signal::INT);
        self.serve.end().output();
        assert!(self.directory.names().iter().all(|name| !name.ends_with(".sock")));
    }
}

#[test]
fn a_frontend_is_evicted_and_the_next_one_may_come() {
    let nic = Nic::start(&[]);
    nic.nic(&["evict", "a0"]).refused(&["nothing is connected to port a0"]);
    nic.nic(&["evict", "c0"]).refused(&["no port c0; there are a0, b0"]);
    let stubborn = nic.driver('a');
    nic.connected("a0");
    assert!(nic.nic(&["evict", "a0"]).output().contains("another frontend may connect"));
    assert!(stubborn.check().is_err());
    let attachment = nic.attachment("a0");
    assert_eq!((&attachment["connected"], &attachment["lost"]), (&false.into(), &"evicted".into()));
    nic.driver('a').check().unwrap();
    let lab = Lab::start(&[]);
    lab.nic(&["evict", "a0"]).refused(&["port a0 belongs to a host of this lab"]);
}

#[test]
fn drivers_meet_on_a_served_nic() {
    let nic = Nic::start(&["--strategy", "disabled", "--queues", "2"]);
    assert!(nic.nic(&["show"]).output().contains("guest: none yet"));
    let (mut a, mut b) = (nic.driver('a'), nic.driver('b'));
    let frame = [[0x0B; 6], [0x0A; 6], [0x88; 6]].concat();
    assert!(a.send(&frame).unwrap());
    a.flush();
    let mut came = Vec::new();
    let begin = Instant::now();
    while came.is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(300), "no frame came");
        b.receive(8, |frame| came.push(frame.to_vec())).unwrap();
    }
    assert_eq!(came, [frame]);
    nic.nic(&["set", "b0", "strategy", "delay:50"]).output();
    let shown = nic.nic(&["show", "--json"]).json();
    assert_eq!(shown[1]["queues"][0]["setting"], "delay:50");
    let expected = serde_json::json!(
        {"connected": true, "lost": null, "queue_pairs": 2, "queue_pairs_used": 1}
    );
    assert_eq!(shown[0]["attachment"], expected);
    assert_eq!(shown[0]["counters"]["tx-too-long"], 0);
    assert!(nic.nic(&["show"]).output().contains("guest: connected, uses 1 of 2 queue pairs"));
    drop(a);
    soon("a is gone", || nic.attachment("a0")["lost"] == "the guest has disconnected");
    assert!(nic.nic(&["show", "a0"]).output().contains("the last one was lost: the guest has"));
    assert_eq!(nic.attachment("b0")["connected"], true);
    nic.end();
}

#[test]
fn stale_sockets_are_replaced_and_live_ones_are_not() {
    let directory = Directory::new();
    let [a, b, c] = ["a.sock", "b.sock", "c.sock"].map(|name| directory.file(name));
    let start = |paths: [&str; 2]| earmark(&["nic", "serve", paths[0], paths[1]]);
    let mut killed = Running::start(&mut start([&a, &b]));
    killed.line();
    run(&["nic", "serve", &c, &b]).refused(&["another program listens there", "b.sock"]);
    assert!(!Path::new(&c).exists(), "what a refusal has made, it removes");
    run(&["nic", "serve", &c, &c]).refused(&["another program listens there"]);
    killed.signal(Signal::KILL);
    killed.end();
    assert!(Path::new(&a).exists(), "nobody removed it");
    let mut next = Running::start(&mut start([&a, &b]));
    assert!(next.line().contains("a.sock"));
    next.signal(Signal::TERM);
    next.end().output();
    assert!(directory.names().is_empty());
    let file = directory.write("file", "precious");
    run(&["nic", "serve", &file, &b]).refused(&["no socket", "choose another path"]);
    run(&["nic", "serve", &a, "/nowhere/b.sock"]).refused(&["listen on /nowhere/b.sock"]);
    run(&["nic", "serve", &a, &b, "--hosts", "uml"]).refused(&["--hosts"]);
}

#[test]
fn testpmd_forwards_what_our_driver_sends() {
    let Some(testpmd) = program("EARMARK_TESTPMD", "/usr/bin/dpdk-testpmd") else {
        return not_run("dpdk-testpmd", "apt-get install dpdk-dev");
    };
    let nic = Nic::start(&["--strategy", "delay:20"]);
    let mut b = nic.driver('b');
    let mut command = Command::new(testpmd);
    command.args(["-l", "0-1", "--no-huge", "-m", "128", "--no-pci", "--no-telemetry"]);
    command.arg(format!("--file-prefix={}", nic.name));
    command.arg(format!("--vdev=net_virtio_user0,path={}", nic.socket('a')));
    command.args(["--", "--forward-mode=io", "--port-topology=loop", "--total-num-mbufs=2048"]);
    let mut testpmd = Running::start(command.stdin(Stdio::piped()));
    nic.connected("a0");
    // It drops what it finds when it starts, so until something comes back, more is sent.
    let (mut sent, mut came) = (0, 0);
    let begin = Instant::now();
    while came < 1_000 {
        assert!(begin.elapsed() < Duration::from_secs(300), "{came} of {sent} frames came back");
        for _ in 0..16 {
            sent += u32::from(b.send(&[0x5A; 200]).unwrap());
        }
        b.flush();
        thread::sleep(Duration::from_millis(1));
        came += b.receive(64, |frame| assert_eq!(frame, [0x5A; 200])).unwrap();
    }
    testpmd.input();
    testpmd.end().output();
    soon("testpmd is gone", || nic.attachment("a0")["connected"] == false);
    nic.end();
}

#[test]
fn qemu_guest_pings_at_the_pace_that_nic_set_says() {
    let how =
        "Debian 12: apt-get install -t bookworm-backports qemu-system-x86, version 10 or newer";
    let qemu = program("EARMARK_QEMU", "/usr/bin/qemu-system-x86_64").filter(|qemu| is_new(qemu));
    let Some(qemu) = qemu else { return not_run("QEMU 10", how) };
    let Some(busybox) = program("EARMARK_BUSYBOX", "/bin/busybox") else {
        return not_run("busybox", "apt-get install busybox-static");
    };
    let Some(kernel) = kernel() else {
        return not_run("a kernel to boot", "apt-get install linux-image-cloud-amd64");
    };
    let nic = Nic::start(&["--strategy", "disabled"]);
    let peer = Peer::start(nic.driver('b'));
    let initramfs = initramfs(&nic.directory, &busybox, &kernel);
    let mut command = Command::new(qemu);
    command.args("-M q35,accel=tcg,memory-backend=m0 -cpu max -m 256 -nodefaults".split(' '));
    command.args("-display none -no-reboot -serial stdio".split(' '));
    command.args("-object memory-backend-memfd,id=m0,size=256M,share=on".split(' '));
    command.arg("-chardev").arg(format!("socket,id=c0,path={}", nic.socket('a')));
    command.args("-netdev vhost-user,id=n0,chardev=c0".split(' '));
    command.args("-device virtio-net-pci,netdev=n0,romfile=".split(' '));
    command.arg("-kernel").arg(&kernel).arg("-initrd").arg(initramfs);
    command.args(["-append", "console=ttyS0 quiet panic=-1"]);
    let mut guest = Running::start(command.stdin(Stdio::piped()));
    guest.await_line("READY");
    nic.connected("a0");
    ping(&mut guest);
    nic.nic(&["set", "a0", "strategy", "delay:100000"]).output();
    let slow = ping(&mut guest);
    assert!(slow >= 100.0, "an answer came after {slow} ms, too early by its interrupt");
    nic.nic(&["set", "a0", "strategy", "disabled"]).output();
    writeln!(guest.input(), "poweroff -f").unwrap();
    guest.end().output();
    soon("the guest is gone", || nic.attachment("a0")["connected"] == false);
    peer.stop();
    nic.end();
}

/// Lets the guest ping its peer: the shortest round trip in milliseconds.
fn ping(guest: &mut Running) -> f64 {
    writeln!(guest.input(), "ping -c 4 -W 5 10.9.0.2; echo PINGED").unwrap();
    let mut shortest = f64::INFINITY;
    loop {
        let line = guest.line();
        if let Some((_, time)) = line.rsplit_once("time=") {
            shortest = shortest.min(time.trim_end_matches(" ms").parse().unwrap());
        }
        if line == "PINGED" {
            break;
        }
    }
    assert!(shortest.is_finite(), "no ping was answered");
    shortest
}

/// The program that a variable names, or the usual one if it is there.
fn program(variable: &str, usual: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    named.or_else(|| Some(usual.into()).filter(|usual: &PathBuf| usual.exists()))
}

fn not_run(what: &str, how: &str) {
    // Past the harness, which keeps to itself what a test that passes prints.
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "NOT RUN: {test}: there is no {what}; {how}");
}

/// Older ones crash when the guest's driver starts (docs/vhost-user.md).
fn is_new(qemu: &Path) -> bool {
    let said = output(Command::new(qemu).arg("--version"));
    let version = said.stdout.split_whitespace().skip_while(|word| *word != "version").nth(1);
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    major.is_some_and(|major| major >= 10)
}

/// A kernel whose modules are there.
fn kernel() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("EARMARK_QEMU_KERNEL") {
        return Some(named.into());
    }
    let entries = fs::read_dir("/boot").ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter(|path| modules(path).is_some_and(|modules| modules.exists())).max()
}

fn modules(kernel: &Path) -> Option<PathBuf> {
    let version = kernel.file_name()?.to_str()?.strip_prefix("vmlinuz-")?;
    Some(kernel.parent()?.parent()?.join("lib/modules").join(version).join("kernel"))
}

/// What kernels may have as modules, in the order in which they are loaded.
const MODULES: [&str; 8] = [
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
];

/// Makes an initramfs whose shell obeys what comes in on the serial line.
fn initramfs(directory: &Directory, busybox: &Path, kernel: &Path) -> String {
    const INIT: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
stty -F /dev/ttyS0 -echo
for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci \
              failover net_failover virtio_net; do
  test -e /$module.ko && insmod /$module.ko
done
ip link set eth0 up
ip address add 10.9.0.1/24 dev eth0
echo READY
while read -r line; do sh -c \"$line\"; done
";
    let mut archive = Archive::default();
    ["bin", "proc", "dev"].iter().for_each(|name| archive.add(name, 0o040_755, &[]));
    archive.add("bin/busybox", 0o100_755, &fs::read(busybox).unwrap());
    archive.add("init", 0o100_755, INIT.as_bytes());
    let modules = modules(kernel).expect("a kernel is called vmlinuz-VERSION");
    for name in MODULES {
        let plain = modules.join(format!("{name}.ko"));
        let packed = modules.join(format!("{name}.ko.xz"));
        let short = format!("{}.ko", name.rsplit('/').next().unwrap());
        if let Ok(module) = fs::read(&plain) {
            archive.add(&short, 0o100_644, &module);
        } else if packed.exists() {
            let unpacked = Command::new("xz").arg("-dc").arg(&packed).output().unwrap();
            archive.add(&short, 0o100_644, &unpacked.stdout);
        }
    }
    archive.add("TRAILER!!!", 0, &[]);
    let path = directory.file("initramfs");
    fs::write(&path, archive.bytes).unwrap();
    path
}

/// A cpio archive, as the kernel's documentation has it (early-userspace/buffer-format).
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    files: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.files += 1;
        let (length, name_length) = (content.len() as u32, name.len() as u32 + 1);
        let fields = [self.files, mode, 0, 0, 1, 0, length, 0, 0, 0, 0, name_length, 0]
            .map(|field: u32| format!("{field:08x}"));
        self.bytes.extend(format!("070701{}{name}\0", fields.concat()).as_bytes());
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// A host of 10.9.0.2 that answers ARP and ping, until it is stopped.
struct Peer {
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Peer {
    fn start(mut driver: VirtioDriver) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let mac = driver.mac();
        let thread = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let mut answers = Vec::new();
                driver.receive(64, |frame| answers.extend(answer(mac, frame))).unwrap();
                for answer in &answers {
                    assert!(driver.send(answer).unwrap());
                }
                driver.flush();
                if answers.is_empty() && !driver.arm() {
                    driver.wait(Duration::from_millis(50)).unwrap();
                }
            }
        });
        Self { stopped, thread }
    }

    fn stop(self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// The answer to a request by ARP or an ICMP echo; checksums stay right when halves change places.
fn answer(mac: [u8; 6], frame: &[u8]) -> Option<Vec<u8>> {
    let mut answer = frame.to_vec();
    answer[..6].copy_from_slice(&frame[6..12]);
    answer[6..12].copy_from_slice(&mac);
    match frame[12..14] {
        [0x08, 0x06] if frame[20..22] == [0, 1] && frame[38..42] == [10, 9, 0, 2] => {
            answer[21] = 2;
            answer[22..28].copy_from_slice(&mac);
            answer[28..32].copy_from_slice(&frame[38..42]);
            answer[32..42].copy_from_slice(&frame[22..32]);
            Some(answer)
        }
        [0x08, 0x00] if frame[23] == 1 && frame[34] == 8 => {
            answer[26..30].copy_from_slice(&frame[30..34]);
            answer[30..34].copy_from_slice(&frame[26..30]);
            answer[34] = 0;
            // The type was 8, so the sum of the words is less by 0x0800.
            let sum = u16::from_be_bytes([frame[36], frame[37]]);
            let (sum, carry) = sum.overflowing_add(0x0800);
            answer[36..38].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
            Some(answer)
        }
        _ => None,
    }
}
