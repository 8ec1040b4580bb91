//! Kernels of distributions that follow requests: each boots in QEMU and runs live tests of
//! `flows`.
//!
//! The kernels are Debian's for clouds, since these have what a virtual machine needs built in. The
//! initial RAM disk has the test program with its libraries, a shell, and nothing else. Without KVM
//! a kernel takes some minutes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{peers, repo, shell};

/// Where packages are looked for beside the lists of this machine: the newest kernels of Debian, of
/// the kind of `sources.list(5)`.
const NEWEST: &str = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                      http://deb.debian.org/debian trixie-backports main\n";

/// Versions of distributions, as far as packages can be had: Debian has no 5.15.
const LONG_TERM: [&str; 3] = ["5.15", "6.1", "6.12"];

/// The live tests that run: loading, requests of both sides, one cause, histograms.
const TESTS: [&str; 3] = ["requests__over_ipv4", "server__that_sleeps", "histograms__of_all"];

/// How QEMU may run a kernel, and how long that may take, in seconds.
const ACCELERATORS: [(&str, &str); 2] = [("kvm", "60"), ("tcg", "900")];

/// What the guest does.
const INIT: &str = "#!/bin/sh
busybox mount -t proc proc /proc; busybox mount -t sysfs sysfs /sys; busybox mount -t devtmpfs dev /dev
busybox ip link set lo up
echo \"kernel $(busybox uname -r)\"
RUST_BACKTRACE=0 RUST_TEST_THREADS=1 /bin/flows-tests ";

/// What `cargo xtask kernels` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Versions, such as 6.1; without any, those of distributions that packages can be had of, and
    /// the newest
    #[arg(value_name = "VERSION")]
    versions: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    peers::ensure_kernels()?;
    let directory = repo::target_directory()?.join("kernels");
    fs::create_dir_all(&directory)?;
    let apt = Apt::new(&directory)?;
    let all = apt.kernels()?;
    let mut versions = options.versions.clone();
    if versions.is_empty() {
        versions.extend(LONG_TERM.map(str::to_owned));
        versions.extend(all.last().map(|(version, _)| version.clone()));
    }
    let wanted: Vec<_> =
        all.into_iter().filter(|(version, _)| versions.contains(version)).collect();
    ensure!(!wanted.is_empty(), "no package has such a kernel; look: apt-cache search linux-image");
    let disk = disk(&directory)?;
    let mut failed = Vec::new();
    for (version, package) in &wanted {
        println!("== Linux {version}: {package}");
        if let Err(error) = apt.kernel(package).and_then(|kernel| boot(&kernel, &disk)) {
            println!("-- {error:#}");
            failed.push(version.as_str());
        }
    }
    ensure!(failed.is_empty(), "kernels that failed: {}", failed.join(", "));
    Ok(())
}

/// Lists of packages of our own: those of this machine stay as they are.
struct Apt {
    directory: PathBuf,
}

impl Apt {
    fn new(directory: &Path) -> Result<Self> {
        let lists = directory.join("lists");
        fs::create_dir_all(lists.join("partial"))?;
        let mut sources = NEWEST.to_owned();
        for suite in ["bookworm", "trixie"] {
            let security = format!("http://deb.debian.org/debian-security {suite}-security main");
            let line =
                NEWEST.replace("http://deb.debian.org/debian trixie-backports main", &security);
            sources += &line;
        }
        fs::write(directory.join("sources.list"), sources)?;
        let apt = Self { directory: directory.to_owned() };
        shell::run(&mut apt.command("apt-get", &["update", "-q"]))?;
        Ok(apt)
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        let at = |name: &str| self.directory.join(name).display().to_string();
        for option in [
            format!("Dir::Etc::sourcelist={}", at("sources.list")),
            "Dir::Etc::sourceparts=-".to_owned(),
            format!("Dir::State::lists={}", at("lists")),
            "Dir::Cache::pkgcache=".to_owned(),
            "Dir::Cache::srcpkgcache=".to_owned(),
            "Acquire::Languages=none".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        command.args(["-o", "APT::Sandbox::User=root"]);
        command.args(words).current_dir(&self.directory);
        command
    }

    /// The newest package of each version, such as 6.1.
    fn kernels(&self) -> Result<Vec<(String, String)>> {
        let pattern = "^linux-image-[0-9].*-cloud-amd64$";
        let found = shell::output(&mut self.command("apt-cache", &["search", "-n", pattern]))?;
        Ok(newest(found.lines().filter_map(|line| line.split(' ').next())))
    }

    /// The kernel of a package of `linux-image`; from Linux 7 on it is in one of `linux-binary`.
    fn kernel(&self, package: &str) -> Result<PathBuf> {
        let kernel = self.directory.join(package);
        if kernel.exists() {
            return Ok(kernel);
        }
        for package in [package, &package.replace("linux-image", "linux-binary")] {
            if !shell::succeeds(&mut self.command("apt-get", &["download", "-q", package])) {
                continue;
            }
            let script = format!(
                "dpkg-deb --fsys-tarfile {package}_*.deb | tar -xO --wildcards '*/vmlinuz*' >found || \
                 true; rm {package}_*.deb; test -s found"
            );
            let mut take = Command::new("sh");
            if shell::succeeds(take.args(["-ec", &script]).current_dir(&self.directory)) {
                fs::rename(self.directory.join("found"), &kernel)?;
                return Ok(kernel);
            }
        }
        bail!("there is no kernel in {package}, and none in what it depends on")
    }
}

/// The package of each version that has the highest number.
fn newest<'a>(packages: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
    let numbers = |package: &str| -> Vec<u32> {
        package.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok()).collect()
    };
    let mut found: Vec<(Vec<u32>, &str)> = packages.map(|it| (numbers(it), it)).collect();
    found.retain(|(numbers, _)| numbers.len() > 2);
    found.sort();
    let mut newest: Vec<(String, String)> = Vec::new();
    for (numbers, package) in found {
        let version = format!("{}.{}", numbers[0], numbers[1]);
        newest.retain(|(it, _)| *it != version);
        newest.push((version, package.to_owned()));
    }
    newest
}

/// The initial RAM disk.
fn disk(directory: &Path) -> Result<PathBuf> {
    let root = directory.join("root");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    for name in ["bin", "proc", "sys", "dev", "tmp"] {
        fs::create_dir_all(root.join(name))?;
    }
    let tests = tests()?;
    let linked = shell::output(Command::new("ldd").arg(&tests))?;
    let libraries = linked.split_whitespace().filter(|word| word.starts_with('/'));
    let mut files = vec![("/bin/busybox", "bin/busybox".to_owned())];
    files.extend(libraries.map(|path| (path, path.trim_start_matches('/').to_owned())));
    for (from, to) in &files {
        let to = root.join(to);
        fs::create_dir_all(to.parent().context("a library is in a directory")?)?;
        fs::copy(from, &to).with_context(|| format!("copy {from}"))?;
    }
    symlink("busybox", root.join("bin/sh"))?;
    let program = root.join("bin/flows-tests");
    fs::copy(&tests, &program)?;
    shell::run(Command::new("strip").arg("-g").arg(&program))?;
    let init = root.join("init");
    fs::write(&init, format!("{INIT}{}; echo DONE\nbusybox poweroff -f\n", TESTS.join(" ")))?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;
    let disk = directory.join("disk.gz");
    let script = "find . | cpio -o -H newc 2>/dev/null | gzip -1 >../disk.gz";
    shell::run(Command::new("sh").args(["-ec", script]).current_dir(&root))?;
    Ok(disk)
}

/// The program with the live tests of `flows`.
fn tests() -> Result<PathBuf> {
    let words = ["test", "-p", "earmark-flows", "--test", "loopback", "--no-run"];
    let json = shell::output(shell::cargo(words).arg("--message-format=json"))?;
    let made = json.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = made.filter(|it| it["target"]["name"] == "loopback");
    let program = programs.find_map(|it| Some(PathBuf::from(it["executable"].as_str()?)));
    program.context("cargo names no program of the tests")
}

/// Boots a kernel: with KVM, and without it where that does not get as far as the guest's first
/// line.
fn boot(kernel: &Path, disk: &Path) -> Result<()> {
    let mut said = Vec::new();
    for (accelerator, seconds) in ACCELERATORS {
        let mut command = Command::new("timeout");
        command.args([seconds, "qemu-system-x86_64", "-accel", accelerator, "-cpu", "max"]);
        command.args(["-m", "1024", "-nographic", "-no-reboot", "-nic", "none"]);
        command.args(["-append", "console=ttyS0 quiet panic=1"]);
        command.arg("-kernel").arg(kernel).arg("-initrd").arg(disk).stdin(Stdio::null());
        let output = command.output().context("start qemu-system-x86_64")?;
        let text = String::from_utf8_lossy(&output.stdout);
        // What is before is the firmware's.
        if let Some(at) = text.find("kernel ") {
            println!("with {accelerator}: {}", text[at..].trim_end());
            let passed = format!("test result: ok. {} passed", TESTS.len());
            ensure!(text.contains(&passed), "the tests did not pass");
            return Ok(());
        }
        said.push(format!("{accelerator}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    bail!("it did not boot; {}", said.join("; "))
}

#[cfg(test)]
mod tests {
    #[test]
    fn newest_package_of_each_version_is_taken() {
        let all = [
            "linux-image-6.1.0-9-cloud-amd64",
            "linux-image-6.1.0-57-cloud-amd64",
            "linux-image-cloud-amd64",
            "linux-image-6.12.117+deb12-cloud-amd64",
            "linux-image-6.12.90+deb12-cloud-amd64",
        ];
        let found = super::newest(all.into_iter());
        let named = |version: &str, at: usize| (version.to_owned(), all[at].to_owned());
        assert_eq!(found, [named("6.1", 1), named("6.12", 3)]);
    }
}
