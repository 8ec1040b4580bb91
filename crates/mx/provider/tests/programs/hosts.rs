//! Two hosts with an interface `eth0` each and a cable between them, for programs that know nothing
//! of Earmark.
//!
//! A host is a process that sleeps in namespaces of its own. Other than those of `lab::host`,
//! hosts share the processes of the machine, since MPI's launcher on one host has to find the other
//! one. The kernel ends a holder when the test ends, however that happens, and removes the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) const NAMES: [&str; 2] = ["ea", "eb"];
pub(crate) const NETWORK: &str = "10.77.0.0/24";
/// How their TCP finds its speed. What the machine prefers may pace, as BBR does, and then carries
/// a fraction of what a cable without delay can; all kernels have this one.
pub(crate) const CONGESTION_CONTROL: &str = "reno";

pub(crate) struct Hosts {
    holders: Vec<Child>,
    directory: PathBuf,
}

impl Hosts {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hosts-{}-{number}", std::process::id());
        // Cargo gives one to tests, but not to examples.
        let place =
            option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let directory = place.join(name);
        fs::create_dir_all(directory.join("provider")).unwrap();
        fs::write(directory.join("hosts"), "127.0.0.1 localhost\n10.77.0.1 ea\n10.77.0.2 eb\n")
            .unwrap();
        let provider = directory.join("provider/libearmark-fi.so");
        std::os::unix::fs::symlink(library(), provider).unwrap();
        let holders = NAMES.iter().map(|name| holder(name, &directory)).collect();
        let hosts = Self { holders, directory };
        hosts.scripts();
        hosts.wait_for_holders();
        let [a, b] = [0, 1].map(|host| hosts.holders[host].id());
        let cable = format!("link add eth0 netns {a} type veth peer name eth0 netns {b}");
        run(Command::new("ip").args(cable.split(' ')));
        for (host, name) in NAMES.iter().enumerate() {
            let address = format!("addr add 10.77.0.{}/24 dev eth0", host + 1);
            for arguments in ["link set lo up", &address, "link set eth0 up"] {
                run(hosts.command(name, "ip").args(arguments.split(' ')));
            }
        }
        hosts
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A program in a host, which finds the provider. It has ten minutes.
    pub(crate) fn command(&self, host: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "600"]).arg(self.path("enter")).arg(host).arg(program);
        command.env("FI_PROVIDER_PATH", self.path("provider")).env("EARMARK_PORT", "packet:eth0");
        // Open MPI names its directory there after the host, and two jobs may not begin at once.
        command.env("TMPDIR", "/run");
        command
    }

    /// What enters a host, what MPI's launchers take for `ssh`, and what gives a rank a core.
    fn scripts(&self) {
        let [a, b] = [0, 1].map(|host| self.holders[host].id());
        let enter = format!(
            "#!/bin/sh\ncase $1 in ea) p={a};; *) p={b};; esac\nshift\n\
             exec nsenter -t $p -n -u -i -m --wd=\"$PWD\" -- \"$@\"\n"
        );
        let rsh = format!(
            "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\nhost=$1\nshift\n\
             exec {} \"$host\" sh -c \"$*\"\n",
            self.path("enter").display()
        );
        let pin = "#!/bin/sh\nexec taskset -c $((${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} % $(nproc)))\
                   \x20\"$@\"\n";
        for (name, text) in [("enter", enter), ("rsh", rsh), ("pin", pin.to_owned())] {
            // By a process of its own: what this one writes, a child that another thread has just
            // forked keeps open, and so busy, until it begins its program.
            let source = self.path(&format!("{name}.source"));
            fs::write(&source, text).unwrap();
            let mut copy = Command::new("install");
            copy.args(["-m", "755"]).args([&source, &self.path(name)]);
            assert!(copy.status().unwrap().success(), "{copy:?}");
        }
    }

    fn wait_for_holders(&self) {
        let begun = Instant::now();
        for name in NAMES {
            while !self.path(name).exists() {
                let late = begun.elapsed() > Duration::from_secs(300);
                assert!(!late, "no namespaces of their own for hosts; run the tests as root");
                sleep(Duration::from_millis(10));
            }
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            let _ = holder.kill();
            let _ = holder.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A process in namespaces of its own, which leaves a file when it is ready.
fn holder(name: &str, directory: &Path) -> Child {
    let script = format!(
        "hostname {name} && mount -t tmpfs tmpfs /dev/shm && mount -t sysfs sysfs /sys && \
         mount -t tmpfs tmpfs /run && mount --bind '{0}/hosts' /etc/hosts && \
         echo {CONGESTION_CONTROL} > /proc/sys/net/ipv4/tcp_congestion_control && \
         touch '{0}/{name}' && exec sleep infinity",
        directory.display()
    );
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--net", "--uts", "--ipc", "--mount"]);
    command.args(["--propagation", "private", "--", "sh", "-c", &script]);
    command.stdin(Stdio::null()).spawn().unwrap()
}

/// The provider, which cargo builds with the tests, and beside the directory of examples.
fn library() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let places = [&*program, program.parent().unwrap()];
    let mut libraries = places.map(|place| place.with_file_name("libearmark_fi.so")).into_iter();
    let library = libraries.find(|library| library.exists());
    library.expect("the provider is beside the program; run: cargo build -p earmark-provider")
}

#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| {
        panic!("{command:?}: {error}; the programs of the tests: cargo xtask peers")
    });
    let text = all_of(&output);
    assert!(output.status.success(), "{command:?}: {}\n{text}", output.status);
    text
}

fn all_of(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}
