//! What process 1 does before anything else runs: mounts, names, randomness, network.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base::prng::Prng;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::error::{InitError, doing};
use super::modules;
use crate::guest::protocol::PROGRAM;
use crate::guest::settings::{GuestSettings, SETTINGS};
use crate::station;
use netdev::ethtool::set_coalescing;
use netdev::ethtool::{Coalesce, Ethtool, Parameter};
use sys::netlink::{LinkSettings, Netlink, NetlinkError};

/// How long a PCI device may take until its link is up.
const LINK_PATIENCE: Duration = Duration::from_secs(10);

/// How often that is looked at.
const LINK_POLL: Duration = Duration::from_millis(10);

/// Makes the guest able to say what is wrong, and reads what it is to be.
///
/// The settings are in the host's `/run`, which the guest sees until it has a `/run` of its own.
pub(super) fn settings() -> Result<GuestSettings, InitError> {
    let plain = MountFlags::NOSUID | MountFlags::NOEXEC | MountFlags::NODEV;
    let mounts = [("proc", "/proc", plain), ("sysfs", "/sys", plain)];
    for (kind, target, flags) in mounts {
        mount(kind, target, kind, flags, None).map_err(doing(format!("mount {target}")))?;
    }
    match mount("devtmpfs", "/dev", "devtmpfs", MountFlags::NOSUID, c"mode=0755") {
        // Some kernels have done so themselves.
        Ok(()) | Err(Errno::BUSY) => {}
        Err(errno) => return Err(doing("mount /dev")(errno)),
    }
    speak()?;
    let bytes = fs::read(SETTINGS).map_err(doing(format!("read {SETTINGS}")))?;
    serde_json::from_slice(&bytes).map_err(doing(format!("understand {SETTINGS}")))
}

pub(super) fn setup(settings: &GuestSettings) -> Result<(), InitError> {
    mount_own_directories()?;
    rustix::system::sethostname(settings.station.name.as_bytes())
        .map_err(doing("set the host name"))?;
    credit_randomness(settings.seed).map_err(doing("seed the random number generator"))?;
    connect(settings)
}

/// Standard output and error go to the console whose lines are kept outside.
///
/// The `/dev` of the machine, which the kernel saw first, may have had no console.
fn speak() -> Result<(), InitError> {
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let console = open("/dev/console", flags, Mode::empty()).map_err(doing("open /dev/console"))?;
    let nothing = File::open("/dev/null").map_err(doing("open /dev/null"))?;
    dup2_stdin(nothing)
        .and_then(|()| dup2_stdout(&console))
        .and_then(|()| dup2_stderr(&console))
        .map_err(doing("write to /dev/console"))
}

/// Directories that the guest may write to. They would otherwise be those of the machine, read
/// only.
fn mount_own_directories() -> Result<(), InitError> {
    let program = OwnProgram::find().map_err(doing("find the program of process 1"))?;
    for directory in ["/dev/pts", "/dev/shm"] {
        fs::create_dir_all(directory).map_err(doing(format!("create {directory}")))?;
    }
    let safe = MountFlags::NOSUID | MountFlags::NODEV;
    let mounts = [
        ("devpts", "/dev/pts", MountFlags::NOSUID, c"ptmxmode=0666,mode=0620,gid=5"),
        ("tmpfs", "/dev/shm", safe, c"mode=1777"),
        ("tmpfs", "/tmp", safe, c"mode=1777"),
        ("tmpfs", "/run", safe, c"mode=0755"),
    ];
    for (kind, target, flags, data) in mounts {
        mount(kind, target, kind, flags, data).map_err(doing(format!("mount {target}")))?;
    }
    program.put_back().map_err(doing("bind the program of process 1"))
}

/// The program of process 1, which agents run, too: at [`PROGRAM`], since what a process does takes
/// another course where its path is longer; and at its own path, if that is about to be hidden, as
/// a build directory below `/tmp` is.
struct OwnProgram {
    hidden: Option<PathBuf>,
    file: OwnedFd,
}

impl OwnProgram {
    fn find() -> io::Result<Self> {
        let path = std::env::current_exe()?;
        let file = open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let is_hidden = ["/tmp", "/run"].iter().any(|hidden| path.starts_with(hidden));
        Ok(Self { hidden: is_hidden.then_some(path), file })
    }

    fn put_back(self) -> io::Result<()> {
        for path in self.hidden.iter().map(PathBuf::as_path).chain([Path::new(PROGRAM)]) {
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
            File::create_new(path)?;
            mount_bind(format!("/proc/self/fd/{}", self.file.as_raw_fd()), path)?;
        }
        Ok(())
    }
}

/// Makes the kernel's random numbers follow from the seed.
///
/// Besides, a kernel that takes no randomness from the machine has none for a long time, and
/// programs that ask for some would stand still until then.
fn credit_randomness(seed: u64) -> io::Result<()> {
    const WORDS: usize = 8;
    /// `struct rand_pool_info` of the kernel, with its buffer.
    #[repr(C)]
    struct Pool {
        entropy_bits: libc::c_int,
        bytes: libc::c_int,
        words: [u64; WORDS],
    }
    let mut random = Prng::new(seed);
    let words = std::array::from_fn(|_| random.next_u64());
    let pool = Pool { entropy_bits: 512, bytes: 64, words };
    let random = File::options().write(true).open("/dev/urandom")?;
    let number = libc::_IOW::<[libc::c_int; 2]>(u32::from(b'R'), 0x03);
    // SAFETY: RNDADDENTROPY reads the two numbers and as many bytes after them as the second says,
    // which is how many there are. A write to the device would mix bytes in, but credit none.
    let outcome = unsafe { libc::ioctl(random.as_raw_fd(), number, &raw const pool) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Brings the interfaces up: the loopback, and the NIC if there is one.
fn connect(settings: &GuestSettings) -> Result<(), InitError> {
    let fail = |error: NetlinkError| doing("set up the network")(io::Error::other(error));
    let netlink = Netlink::open().map_err(fail)?;
    netlink.up("lo").map_err(fail)?;
    let Some(nic) = &settings.nic else { return Ok(()) };
    let is_pci = nic.is_pci;
    let nic = find_nic(&nic.driver, is_pci)?;
    let interface = settings.station.interface();
    netlink.rename(&nic, &interface).map_err(fail)?;
    let link = LinkSettings { mtu: settings.mtu, ..LinkSettings::default() };
    station::join(&settings.station, &netlink, &link).map_err(fail)?;
    if let Some((rx_usecs, rx_frames)) = settings.coalescing {
        // A kernel whose driver has no such settings has none that could be wrong.
        let _ = set_coalescing(&interface, rx_usecs, rx_frames);
    }
    set_queues(&interface, settings).map_err(doing(format!("set the queues of {interface}")))?;
    if is_pci { await_link(&interface) } else { Ok(()) }
}

/// Has the driver use the queues that the settings say, which is one for each processor otherwise.
fn set_queues(interface: &str, settings: &GuestSettings) -> io::Result<()> {
    let Some(channels) = settings.channels else { return Ok(()) };
    let ethtool = Ethtool::open().map_err(io::Error::other)?;
    let now = ethtool.channels(interface).map_err(io::Error::other)?;
    if now.combined != Some(channels.into()) {
        ethtool.set_combined_channels(interface, channels.into()).map_err(io::Error::other)?;
    }
    let prompt = Coalesce::new().with(Parameter::RxUsecs, 0);
    settings.prompt_queues.iter().try_for_each(|queue| {
        ethtool.set_queue_coalesce(interface, (*queue).into(), &prompt).map_err(io::Error::other)
    })
}

/// Takes a PCI device down before its driver is shut down and then removed, as the end of
/// User-Mode Linux does: `e1000` would stop the same NAPI twice, and wait for ever.
pub(super) fn disconnect(settings: &GuestSettings) -> Result<(), InitError> {
    if settings.nic.as_ref().is_none_or(|nic| !nic.is_pci) {
        return Ok(());
    }
    let fail = |error: NetlinkError| doing("end the network")(io::Error::other(error));
    let netlink = Netlink::open().map_err(fail)?;
    netlink.down(&settings.station.interface()).map_err(fail)
}

fn await_link(interface: &str) -> Result<(), InitError> {
    let carrier = Path::new("/sys/class/net").join(interface).join("carrier");
    let since = Instant::now();
    while fs::read(&carrier).is_ok_and(|state| state != b"1\n") {
        if since.elapsed() > LINK_PATIENCE {
            let error = io::Error::other(format!("it is down after {LINK_PATIENCE:?}"));
            return Err(doing(format!("await the link of {interface}"))(error));
        }
        std::thread::sleep(LINK_POLL);
    }
    Ok(())
}

/// The interface of the NIC, whose driver is loaded if that takes it.
fn find_nic(driver: &str, is_pci: bool) -> Result<String, InitError> {
    let look = || nic().map_err(doing("look for the NIC"));
    if let Some(name) = look()? {
        return Ok(name);
    }
    modules::load(driver).map_err(doing(format!("load the NIC's driver {driver}")))?;
    let since = Instant::now();
    loop {
        match look()? {
            Some(name) => return Ok(name),
            // A driver that has to agree with its device first takes its time.
            None if is_pci && since.elapsed() <= LINK_PATIENCE => std::thread::sleep(LINK_POLL),
            None => {
                let missing = io::Error::other("the kernel has found none on its socket");
                return Err(doing("look for the NIC")(missing));
            }
        }
    }
}

/// The one interface that belongs to a device, if there is one.
fn nic() -> io::Result<Option<String>> {
    let mut names = fs::read_dir("/sys/class/net")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("device").exists())
        .filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
    Ok(names.next())
}
