//! TAP devices: a host's network interface whose wire is a file descriptor.
//!
//! A frame that the host sends is read from the device; a frame written to the device is received
//! by the host. There is no virtio header: the host's stack segments and checksums in software, and
//! every frame is what a real wire would carry, an Ethernet header, perhaps VLAN tags, and at most
//! the MTU.
//!
//! A device may have several queues, each with a descriptor of its own. It lives as long as one of
//! them is open. An open queue also keeps the network namespace of its host alive, so drop the taps
//! of a host before the host.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

use crate::error::LabError;
use crate::host::Host;
use crate::napi::Stack;
use sys::netlink::{LinkSettings, Netlink};

/// The longest frame that a TAP hands out: its largest MTU, an Ethernet header and a VLAN tag.
const MAX_FRAME: usize = 65_521 + 18;

/// The most queues that the kernel gives one device.
pub const MAX_QUEUES: u16 = 256;

const DEVICE: &str = "/dev/net/tun";

/// Makes an open control device a queue of an interface.
const TUNSETIFF: Opcode = opcode::write::<libc::c_int>(b'T', 202);

fn open_remedy(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "run as root, or let this user open it: sudo chmod 666 /dev/net/tun"
        }
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => {
            "load the driver: sudo modprobe tun; in a container, give it --device /dev/net/tun"
        }
        _ => "check the device: ls -l /dev/net/tun",
    }
}

fn attach_remedy(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::EBUSY | libc::EEXIST) => "this interface name is in use there; choose another",
        Some(libc::EPERM) => "it takes CAP_NET_ADMIN over the host's network; run as root",
        _ => "check that the kernel has CONFIG_TUN: zgrep CONFIG_TUN= /proc/config.gz",
    }
}

/// A TAP device in a host, seen from its wire.
#[derive(Debug)]
pub struct Tap {
    name: String,
    queues: Vec<OwnedFd>,
}

impl Stack for Tap {
    fn queues(&self) -> usize {
        self.queues.len()
    }

    fn fd(&self, queue: usize) -> BorrowedFd<'_> {
        self.queues[queue].as_fd()
    }

    fn transmit(&self, queue: usize, frame: &mut Vec<u8>) -> io::Result<bool> {
        frame.clear();
        // The host may raise the MTU at any time; pages that no frame needs are never touched.
        frame.reserve(MAX_FRAME);
        match rustix::io::read(&self.queues[queue], spare_capacity(frame)) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Fails with `EIO` if the interface is down, `EINVAL` for less than an Ethernet header,
    /// `EBADFD` if it is gone.
    fn deliver(&self, queue: usize, frame: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.queues[queue], frame)?;
        Ok(())
    }
}

impl Tap {
    /// Creates a device with `queues` queues in a host. It is down and has no address yet.
    pub fn create(host: &Host, name: &str, queues: u16, mtu: u32) -> Result<Self, LabError> {
        if !is_interface_name(name) {
            return Err(LabError::refused(format!(
                "create tap {name:?}: not an interface name; use 1 to 15 letters, digits, '-' or '_'"
            )));
        }
        if !(1..=MAX_QUEUES).contains(&queues) {
            return Err(LabError::refused(format!(
                "create tap {name} with {queues} queues: out of range; use 1 to {MAX_QUEUES}"
            )));
        }
        host.enter_net(|| {
            let fds = (0..queues)
                .map(|queue| open_queue(host.name(), name, queue, queues))
                .collect::<Result<_, _>>()?;
            let settings = LinkSettings { mtu: Some(mtu), ..LinkSettings::default() };
            Netlink::open()?.configure(name, &settings)?;
            Ok(Self { name: name.to_owned(), queues: fds })
        })?
    }

    /// The name of the interface in its host.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Stricter than the kernel, which would also expand `%d` and take any byte but `/` and blanks.
fn is_interface_name(name: &str) -> bool {
    (1..libc::IFNAMSIZ).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Opens one queue in the network namespace of this thread; the first one creates the device.
fn open_queue(host: &str, name: &str, queue: u16, queues: u16) -> Result<OwnedFd, LabError> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = open(DEVICE, flags, Mode::empty()).map_err(|errno| {
        let cause = errno.into();
        let remedy = open_remedy(&cause);
        LabError::new(format!("open {DEVICE} for host {host}"), cause, remedy)
    })?;
    let mut kind = libc::IFF_TAP | libc::IFF_NO_PI;
    if queues > 1 {
        kind |= libc::IFF_MULTI_QUEUE;
    }
    if queue == 0 {
        // Otherwise a name in use by another multi-queue device would join that device.
        kind |= libc::IFF_TUN_EXCL;
    }
    set_interface(fd.as_fd(), name, kind).map_err(|errno| {
        let cause = errno.into();
        let remedy = attach_remedy(&cause);
        LabError::new(format!("create tap {name} in host {host}"), cause, remedy)
    })?;
    Ok(fd)
}

fn set_interface(fd: BorrowedFd<'_>, name: &str, kind: libc::c_int) -> rustix::io::Result<()> {
    // The kernel reads the low 16 bits only; IFF_TUN_EXCL is the sign bit of the C type.
    let flags = kind as libc::c_short;
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, whatever its encoded size says.
    // Nothing but this ioctl turns a descriptor into an interface.
    let updater = unsafe { Updater::<TUNSETIFF, libc::ifreq>::new(&mut request) };
    // SAFETY: `fd` is /dev/net/tun, which understands the request, and `request` outlives the call.
    // rustix has no safe call for it.
    unsafe { ioctl(fd, updater) }
}
