//! What `ethtool -C` does: coalescing settings of an interface, through its driver.
//!
//! Layout: `struct ethtool_coalesce` of Linux, `include/uapi/linux/ethtool.h`.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType, socket};

/// Words of `struct ethtool_coalesce`: the command, then its settings.
const WORDS: usize = 23;

/// Reads the settings.
const GET: u32 = 0x0e;
/// Changes them.
const SET: u32 = 0x0f;

/// Where `rx-usecs` is.
const RX_USECS: usize = 1;
/// Where `rx-frames` is.
const RX_FRAMES: usize = 2;
/// Where `tx-frames` is.
const TX_FRAMES: usize = 6;
/// Where `adaptive-rx` is.
const ADAPTIVE_RX: usize = 10;

/// How an interface waits before it interrupts for what it has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// For how long, in microseconds.
    pub rx_usecs: u32,
    /// For how many frames; 0: the time alone counts.
    pub rx_frames: u32,
    /// The driver changes these as it sees fit.
    pub adaptive_rx: bool,
}

/// Reads the settings of an interface in the network of this thread, which takes no rights.
///
/// # Errors
/// If there is no such interface, or its driver has no such settings.
pub fn coalescing(interface: &str) -> io::Result<Coalescing> {
    let mut settings = [0; WORDS];
    settings[0] = GET;
    request(interface, &mut settings)?;
    let adaptive_rx = settings[ADAPTIVE_RX] != 0;
    Ok(Coalescing { rx_usecs: settings[RX_USECS], rx_frames: settings[RX_FRAMES], adaptive_rx })
}

/// Sets `rx-usecs` and `rx-frames` of an interface in the network of this thread; what else there
/// is stays as it is, if the driver has told it right.
///
/// # Errors
/// If there is no such interface, or its driver refuses.
pub fn set_coalescing(interface: &str, rx_usecs: u32, rx_frames: u32) -> io::Result<()> {
    let mut settings = [0; WORDS];
    settings[0] = GET;
    request(interface, &mut settings)?;
    if (settings[RX_USECS], settings[RX_FRAMES]) == (rx_usecs, rx_frames) {
        return Ok(());
    }
    (settings[RX_USECS], settings[RX_FRAMES]) = (rx_usecs, rx_frames);
    settings[0] = SET;
    match request(interface, &mut settings) {
        // The virtio-net of Linux 6.1 works with `tx-frames 1` and tells 0. So it takes what it has
        // told itself for a change, which it refuses while the interface is up.
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy && settings[TX_FRAMES] == 0 => {
            settings[TX_FRAMES] = 1;
            request(interface, &mut settings)
        }
        outcome => outcome,
    }
}

fn request(interface: &str, settings: &mut [u32; WORDS]) -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: settings.as_mut_ptr().cast() },
    };
    if interface.len() >= libc::IFNAMSIZ {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the request points to settings of the size that both commands have, and both outlive
    // the call. rustix has no call for it.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told() {
        assert!(set_coalescing("no-such-device", 1, 0).is_err());
        assert!(coalescing("no-such-device").is_err() && coalescing("lo").is_err());
        assert!(set_coalescing("a-name-that-is-far-too-long", 1, 0).is_err());
        // The loopback has no interrupts to coalesce.
        let refused = set_coalescing("lo", 1, 0).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
