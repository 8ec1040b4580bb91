//! What `ethtool -C` does, by ioctl alone: the coalescing settings that our own NIC has in a guest.
//! [`ethtool`](crate::ethtool) is for any device and all settings.
//!
//! Layout: `struct ethtool_coalesce` of Linux, `include/uapi/linux/ethtool.h`.

use std::io;

use sys::ethtool::{COALESCE_WORDS as WORDS, Control, GET_COALESCE as GET, SET_COALESCE as SET};

const RX_USECS: usize = 1;
const RX_FRAMES: usize = 2;
const TX_FRAMES: usize = 6;

/// Sets `rx-usecs` and `rx-frames` of an interface in the network of this thread; what else there
/// is stays as it is, if the driver reports it right.
pub fn set_coalescing(interface: &str, rx_usecs: u32, rx_frames: u32) -> io::Result<()> {
    let mut settings = [0; WORDS];
    settings[0] = GET;
    Control::open()?.ethtool(interface, &mut settings)?;
    if (settings[RX_USECS], settings[RX_FRAMES]) == (rx_usecs, rx_frames) {
        return Ok(());
    }
    (settings[RX_USECS], settings[RX_FRAMES]) = (rx_usecs, rx_frames);
    settings[0] = SET;
    match Control::open()?.ethtool(interface, &mut settings) {
        // The virtio-net of Linux 6.1 works with `tx-frames 1` and reports 0. So it takes what it
        // has reported itself for a change, which it refuses while the interface is up.
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy && settings[TX_FRAMES] == 0 => {
            settings[TX_FRAMES] = 1;
            Control::open()?.ethtool(interface, &mut settings)
        }
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_reported() {
        assert!(set_coalescing("no-such-device", 1, 0).is_err());
        assert!(set_coalescing("a-name-that-is-far-too-long", 1, 0).is_err());
        // The loopback has no interrupts to coalesce.
        let refused = set_coalescing("lo", 1, 0).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
