//! The settings of a guest: those of its owner, the command line of its kernel, and what its
//! process 1 reads.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::protocol::TimedCommand;
use crate::station::Station;

/// Where process 1 finds its settings, in the `/run` of the host around the guest.
pub(super) const SETTINGS: &str = "/run/guest.json";

/// Where the hub of programs listens, in the same place.
pub(super) const PROGRAMS: &str = "/run/programs.sock";

/// The number of network devices among those of virtio.
const VIRTIO_NET: u32 = 1;

/// The number that the guest's kernel takes for PCI devices, `UML_PCI_OVER_VIRTIO_DEVICE_ID`.
const PCI_OVER_VIRTIO: u32 = 1_234;

/// The NIC of a guest: a vhost-user device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestNic {
    /// Its socket, as seen inside of the host.
    pub socket: PathBuf,
    /// The driver that it takes.
    pub driver: String,
    /// It is a PCI device, whose link comes up in its own time.
    pub is_pci: bool,
}

/// What a guest is to be. What is skipped below, process 1 of the guest does not need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestSettings {
    /// The kernel, a User-Mode Linux.
    #[serde(skip)]
    pub kernel: PathBuf,
    /// How much memory the guest has.
    #[serde(skip)]
    pub memory_mib: u32,
    /// The program, with its arguments, that runs [`init::run`](super::init::run). It is process 1
    /// of the guest.
    #[serde(skip)]
    pub init: Vec<String>,
    /// The program, with its first arguments, that runs [`exec::run`](super::exec::run): the path
    /// of a socket, a program and its arguments follow.
    #[serde(skip)]
    pub exec: Vec<String>,
    /// Who the guest is.
    pub station: Station,
    /// Its NIC; without it there is none.
    pub nic: Option<GuestNic>,
    /// The largest packet of its interface, without the Ethernet header, in bytes; without it, as
    /// the NIC says.
    pub mtu: Option<u32>,
    /// The socket of a calendar, as seen inside of the host; without it, time is real.
    #[serde(skip)]
    pub calendar_socket: Option<PathBuf>,
    /// What the guest does by itself. Without it, the guest takes orders.
    pub script: Option<Vec<TimedCommand>>,
    /// All of the kernel's randomness follows from this, if the kernel takes none from the
    /// machine.
    pub seed: u64,
    /// `rx-usecs` and `rx-frames` that the guest tells its driver, which believes in 0 otherwise,
    /// whatever the NIC does.
    pub coalescing: Option<(u32, u32)>,
    /// Pairs of queues that the guest's driver uses; without it, as many as it likes.
    pub channels: Option<u16>,
    /// Queues for which the guest tells its driver 0 us, whatever the others have.
    pub prompt_queues: Vec<u16>,
    /// The processor that the kernel stays on.
    #[serde(skip)]
    pub cpu: Option<usize>,
    /// More for the kernel's command line.
    #[serde(skip)]
    pub parameters: Vec<String>,
}

impl GuestSettings {
    /// A guest with 64 MiB of memory, without a NIC, in real time.
    ///
    /// `program` is one that knows the subcommands `guest-init` and `guest-exec`.
    pub fn new(kernel: &Path, program: &Path, station: Station) -> Self {
        let words = |subcommand: &str| vec![program.display().to_string(), subcommand.to_owned()];
        Self {
            kernel: kernel.to_owned(),
            memory_mib: 64,
            init: words("guest-init"),
            exec: words("guest-exec"),
            station,
            nic: None,
            mtu: None,
            calendar_socket: None,
            script: None,
            seed: 0,
            coalescing: None,
            channels: None,
            prompt_queues: Vec::new(),
            cpu: None,
            parameters: Vec::new(),
        }
    }

    pub(super) fn command(&self) -> Command {
        let mut kernel = Command::new(&self.kernel);
        kernel.arg(format!("mem={}M", self.memory_mib));
        // The files of the machine are the guest's, and it cannot change them.
        kernel.args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"]);
        kernel.args(["norandmaps", "quiet", "panic=-1"]);
        // What User-Mode Linux keeps about itself goes with the host, as does its memory.
        kernel.args(["umid=guest", "uml_dir=/run/uml/"]).env("TMPDIR", "/run");
        // No terminals but two: messages go to standard error, orders and events are on the
        // other one. A script needs no input, and what might come there would be an interrupt.
        let input = if self.script.is_some() { "null" } else { "fd:0" };
        kernel.args(["con=null", "con0=null,fd:2", &format!("con1={input},fd:1")]);
        // The kernel adds this by itself, but behind what is for process 1.
        kernel.arg("console=tty0");
        if let Some(nic) = &self.nic {
            let number = if nic.is_pci { PCI_OVER_VIRTIO } else { VIRTIO_NET };
            kernel.arg(format!("virtio_uml.device={}:{number}", nic.socket.display()));
        }
        if let Some(socket) = &self.calendar_socket {
            kernel.arg(format!("time-travel=ext:{}", socket.display()));
        }
        kernel.args(&self.parameters);
        if let [program, arguments @ ..] = &self.init[..] {
            kernel.arg(format!("init={}", quoted(program)));
            kernel.arg("--").args(arguments.iter().map(|word| quoted(word)));
        }
        kernel.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if self.script.is_some() {
            keep_addresses(&mut kernel);
        }
        close_the_rest(&mut kernel);
        kernel
    }
}

/// Leaves the kernel no descriptor but its input and outputs: others that this process was given
/// may lead to files that can be written.
fn close_the_rest(kernel: &mut Command) {
    let close = || {
        // SAFETY: the descriptors are closed by the program that begins, not here.
        let outcome = unsafe {
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
        };
        if outcome == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec it makes one system call and allocates nothing.
    unsafe { kernel.pre_exec(close) };
}

/// Lets the kernel have the same addresses in every run.
///
/// Linux leaves a gap before a program's heap, at random. User-Mode Linux keeps book of the memory
/// behind it from before it, so the larger the gap, the less is left: 49 MiB in one run and 58 in
/// the next. The limits of TCP's windows follow from that.
fn keep_addresses(kernel: &mut Command) {
    let keep = || {
        // A sandbox may refuse it; windows of large flows then differ from run to run.
        // SAFETY: the call changes a number of this process; it touches no memory.
        unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
        Ok(())
    };
    // SAFETY: between fork and exec it makes one system call and allocates nothing.
    unsafe { kernel.pre_exec(keep) };
}

/// A word of a kernel's command line.
fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("\"{word}\"") } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_names_what_the_guest_has() {
        let station = Station::new("a", 1);
        let mut settings =
            GuestSettings::new(Path::new("/k"), Path::new("/my programs/earmark"), station);
        let line = |settings: &GuestSettings| {
            let command = settings.command();
            let words = command.get_args().map(|word| word.to_string_lossy().into_owned());
            words.collect::<Vec<_>>().join(" ")
        };
        let plain = line(&settings);
        assert!(plain.ends_with("init=\"/my programs/earmark\" -- guest-init"), "{plain}");
        assert!(!plain.contains("virtio") && !plain.contains("time-travel"), "{plain}");
        settings.nic = Some(GuestNic {
            socket: "/run/nic.sock".into(),
            driver: "virtio_net".into(),
            is_pci: false,
        });
        settings.calendar_socket = Some("/run/calendar.sock".into());
        settings.script = Some(Vec::new());
        let full = line(&settings);
        for part in [
            "virtio_uml.device=/run/nic.sock:1",
            "time-travel=ext:/run/calendar.sock",
            "con1=null,fd:1",
        ] {
            assert!(full.contains(part), "no {part} in {full}");
        }
    }
}
