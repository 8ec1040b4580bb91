//! The services under a systemd of their own: a bare root, booted in namespaces.
//!
//! systemd is process 1 of a PID namespace, in a network with a loopback and a veth, and in a
//! cgroup namespace of a delegated part of the cgroup v2 tree, as in a container. The units are
//! not changed, so that their sandboxes are what is tried.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::bare_root::files;
use super::within;
use crate::shell;

/// How long a boot, or a service, may take on a machine that is busy.
const WITHIN: Duration = Duration::from_secs(120);

/// Services whose exposure `systemd-analyze security` rates, from 0 to 10, as *OK* at most.
const SERVICES: [&str; 3] = ["earmark-echo", "earmark-exporter", "earmark-serve"];

/// A scrape of the exporter.
const SCRAPE: &str = "exec 3<>/dev/tcp/127.0.0.1/7013; \
                      printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3";

/// Mounts what the first process of a container finds below `$1`, which becomes the root.
const MOUNT: &str = "
    mount -t proc -o nosuid,nodev proc \"$1/proc\"
    mount -t sysfs -o nosuid,nodev sysfs \"$1/sys\"
    mount -t cgroup2 -o nosuid,nodev cgroup2 \"$1/sys/fs/cgroup\"
    mount -t tmpfs -o nosuid,mode=755 run \"$1/run\"
    mount -t tmpfs -o nosuid,mode=755 dev \"$1/dev\"
    for node in null zero full random urandom tty; do
        touch \"$1/dev/$node\"
        mount --bind \"/dev/$node\" \"$1/dev/$node\"
    done
    mkdir \"$1/dev/pts\" \"$1/dev/shm\"
    mount -t devpts -o newinstance,ptmxmode=666 devpts \"$1/dev/pts\"
    ln -s pts/ptmx \"$1/dev/ptmx\"
    exec \"$0\" within --empty \"$@\"";

/// Boots `root`, and runs the services of the package there; how long that took.
pub(super) fn check(root: &Path) -> Result<Duration> {
    let started = Instant::now();
    let machine = BootedMachine::boot(root)?;
    let outcome = run_services(&machine);
    let log = || {
        machine
            .output("journalctl --no-pager --lines 30 --unit 'earmark*' 2>&1")
            .unwrap_or_default()
    };
    outcome.with_context(log)?;
    Ok(started.elapsed())
}

fn run_services(machine: &BootedMachine) -> Result<()> {
    let before = files(&machine.root)?;
    machine.output("dpkg --install /packages/earmark_*.deb")?;
    machine.output("systemctl start earmark-exporter.socket earmark-echo earmark-serve")?;
    // The first scrape starts the service. It sees what root sees without a sandbox.
    let scraped = machine.output(&format!("bash -c \"{SCRAPE}\""))?;
    let printed = machine.output("earmark exporter --print")?;
    let (scraped, printed) = (series(&scraped), series(&printed));
    ensure!(scraped.iter().any(|it| it.contains("device=\"one\"")), "no veth in {scraped:?}");
    ensure!(scraped == printed, "in its sandbox it exports {scraped:?}, outside {printed:?}");
    let probed = machine.output("earmark probe 127.0.0.1 --kind udp --count 100 --json")?;
    ensure!(probed.contains("\"answered\""), "the probe of earmark-echo printed {probed}");
    machine.output("test \"$(stat -c %a /var/lib/private/earmark-serve/code)\" = 600")?;
    probe_in_sandbox(machine)?;
    for service in SERVICES {
        machine.output(&format!("systemctl is-active {service}"))?;
        machine.output(&format!("systemd-analyze security --threshold=20 {service}"))?;
    }
    // What runs is stopped, and what it wrote goes.
    machine.output("dpkg --purge earmark && systemctl daemon-reload")?;
    let units = machine.output("systemctl list-units --all --no-legend 'earmark*'")?;
    ensure!(!units.contains(" active "), "a purge leaves services that run:\n{units}");
    let left: Vec<_> = files(&machine.root)?.difference(&before).cloned().collect();
    ensure!(left.is_empty(), "a purge of running services leaves:\n{}", left.join("\n"));
    Ok(())
}

/// The exporter may send probes from its sandbox.
fn probe_in_sandbox(machine: &BootedMachine) -> Result<()> {
    let option = "[Service]\nEnvironment=\"OPTIONS=--probe 127.0.0.1\"\n";
    machine.output(&format!(
        "mkdir /run/systemd/system/earmark-exporter.service.d && printf '{}' \
         > /run/systemd/system/earmark-exporter.service.d/probe.conf && systemctl daemon-reload && \
         systemctl restart earmark-exporter",
        option.replace('\n', "\\n")
    ))?;
    let done = "earmark_probe_runs_total{host=\"127.0.0.1\",outcome=\"done\"} 1";
    machine.wait_for("a probe by the exporter", || {
        Ok(machine.output(&format!("bash -c \"{SCRAPE}\""))?.contains(done))
    })
}

/// The names of series, with their labels.
fn series(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.starts_with("earmark_"));
    lines.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect()
}

/// A machine that is on until this is dropped.
struct BootedMachine {
    root: PathBuf,
    cgroup: PathBuf,
    unshare: Child,
    /// The process that is number 1 there.
    first: u32,
}

impl BootedMachine {
    fn boot(root: &Path) -> Result<Self> {
        let cgroup = cgroup_tree()?.join(format!("earmark-dist-{}", std::process::id()));
        fs::create_dir(&cgroup).with_context(|| format!("make {}", cgroup.display()))?;
        let own = format!("/proc/{}/exe", std::process::id());
        // The shell enters the cgroup before unshare makes it the root of all that can be seen.
        let enter = "echo $$ > \"$0/cgroup.procs\" && exec unshare --pid --mount --uts --ipc --net \
                     --cgroup --fork --kill-child sh -ec \"$@\"";
        let mut command = shell::command("sh");
        command.args(["-c", enter]).arg(&cgroup).args([MOUNT, &own]).arg(root);
        command.args(["/lib/systemd/systemd", "--unit=multi-user.target"]);
        command.env_clear().env("PATH", within::PATH).env("container", "earmark");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let unshare = command.spawn().context("start unshare, of util-linux")?;
        let mut machine = Self { root: root.to_owned(), cgroup, unshare, first: 0 };
        machine.wait_for_boot()?;
        let mut ip = shell::command("nsenter");
        ip.arg(format!("--target={}", machine.first)).args(["--net", "ip"]);
        shell::run(ip.args(["link", "add", "one", "type", "veth", "peer", "name", "two"]))?;
        Ok(machine)
    }

    fn wait_for_boot(&mut self) -> Result<()> {
        let unshare = self.unshare.id();
        let children = format!("/proc/{unshare}/task/{unshare}/children");
        let end = Instant::now() + WITHIN;
        while Instant::now() < end {
            if let Some(status) = self.unshare.try_wait()? {
                bail!("systemd ended before it was up: {status}");
            }
            let child = fs::read_to_string(&children).unwrap_or_default();
            self.first = child.trim().parse().unwrap_or(0);
            let is_up = "systemctl is-system-running --wait";
            // What is degraded is up, too: what a container lacks is not needed here.
            let state = if self.first == 0 { None } else { self.command(is_up).output().ok() };
            let state = state.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
            if state.is_some_and(|it| ["running", "degraded"].contains(&it.trim())) {
                return Ok(());
            }
            sleep(Duration::from_millis(200));
        }
        bail!("systemd in {} is not up after {} s", self.root.display(), WITHIN.as_secs())
    }

    /// A script that runs in the machine.
    fn command(&self, script: &str) -> Command {
        let mut command = shell::command("nsenter");
        command.arg(format!("--target={}", self.first));
        command
            .args(["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root", "--wd=/"]);
        command.args(["sh", "-ec", script]);
        command.env_clear().env("PATH", within::PATH).env("LC_ALL", "C.UTF-8");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    fn output(&self, script: &str) -> Result<String> {
        shell::output(&mut self.command(script)).with_context(|| format!("there: {script}"))
    }

    fn wait_for(&self, what: &str, is_there: impl Fn() -> Result<bool>) -> Result<()> {
        let end = Instant::now() + WITHIN;
        while !is_there()? {
            ensure!(Instant::now() < end, "no {what} within {} s", WITHIN.as_secs());
            sleep(Duration::from_millis(200));
        }
        Ok(())
    }
}

impl Drop for BootedMachine {
    fn drop(&mut self) {
        // The end of unshare ends process 1, and that everything with it.
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
        let end = Instant::now() + WITHIN;
        while remove_cgroups(&self.cgroup).is_err() && Instant::now() < end {
            sleep(Duration::from_millis(50));
        }
    }
}

/// Removes a cgroup and those below it, whose processes have ended.
fn remove_cgroups(cgroup: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(cgroup)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_cgroups(&entry.path())?;
        }
    }
    fs::remove_dir(cgroup)
}

/// Where the tree of cgroup v2 is mounted, alone or beside the old ones.
fn cgroup_tree() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("read /proc/self/mounts")?;
    let found = mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words.get(2) == Some(&"cgroup2")).then(|| PathBuf::from(words[1]))
    });
    found.context("cgroup v2 is not mounted; `mount -t cgroup2 none /sys/fs/cgroup` does it")
}
