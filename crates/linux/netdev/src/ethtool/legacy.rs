//! Coalescing by ioctl: of a device on kernels without the `ethtool` family, and of single queues
//! (`ethtool --per-queue`), for which netlink has no request.
//!
//! Layout: `struct ethtool_coalesce` of Linux, `include/uapi/linux/ethtool.h`. Its words are in the
//! order of the netlink attributes, but it does not say which of them a driver supports: a 0 may
//! mean either. `struct ethtool_per_queue_op` has a bit for each queue, and behind them a `struct
//! ethtool_coalesce` for each bit. A queue number means the receive and the transmit queue of that
//! number. Drivers that have it: virtio_net, ice, i40e, iavf, idpf, hinic, cpsw; others answer
//! `EOPNOTSUPP`.

use std::io;
use std::ops::Range;

use device::ethtool::{Coalesce, QueueCoalesce, parse_legacy, word_of};

use super::{Ethtool, refused};
use crate::error::DeviceError;
use sys::ethtool::{
    COALESCE_WORDS as WORDS, Control, GET_COALESCE as GET, PER_QUEUE, PER_QUEUE_HEADER,
    SET_COALESCE as SET,
};

/// Queues that there may be (`MAX_NUM_QUEUE`).
const MAX_QUEUES: u32 = 4_096;

fn change_words(words: &mut [u32], change: &Coalesce) -> io::Result<()> {
    for (parameter, value) in change.iter() {
        let word = word_of(parameter).and_then(|word| words.get_mut(word));
        *word.ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))? = value;
    }
    let has_profile = change.rx_profile.is_some() || change.tx_profile.is_some();
    if has_profile { Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)) } else { Ok(()) }
}

fn read(control: &Control, device: &str) -> io::Result<[u32; WORDS]> {
    let mut words = [0; WORDS];
    words[0] = GET;
    control.ethtool(device, &mut words)?;
    Ok(words)
}

/// Sets `rx-usecs` and `rx-frames` of our own NIC in a guest, in the network of this thread; what
/// else there is stays as it is, if the driver reports it right.
pub fn set_coalescing(interface: &str, rx_usecs: u32, rx_frames: u32) -> io::Result<()> {
    /// The word of `tx-frames`.
    const TX_FRAMES: usize = 6;
    let control = Control::open()?;
    let mut words = read(&control, interface)?;
    if words[1..3] == [rx_usecs, rx_frames] {
        return Ok(());
    }
    (words[0], words[1], words[2]) = (SET, rx_usecs, rx_frames);
    match control.ethtool(interface, &mut words) {
        // The virtio-net of Linux 6.1 works with `tx-frames 1` and reports 0. So it takes what it
        // has reported itself for a change, which it refuses while the interface is up.
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy && words[TX_FRAMES] == 0 => {
            words[TX_FRAMES] = 1;
            control.ethtool(interface, &mut words)
        }
        outcome => outcome,
    }
}

impl Ethtool {
    pub(super) fn coalesce_by_ioctl(
        &self,
        action: &'static str,
        device: &str,
    ) -> Result<Coalesce, DeviceError> {
        let words = read(&self.control, device).map_err(|cause| refused(action, device, cause))?;
        Ok(parse_legacy(&words))
    }

    pub(super) fn set_coalesce_by_ioctl(
        &self,
        action: &'static str,
        device: &str,
        change: &Coalesce,
    ) -> Result<(), DeviceError> {
        let changed = read(&self.control, device).and_then(|mut words| {
            change_words(&mut words, change)?;
            words[0] = SET;
            self.control.ethtool(device, &mut words)
        });
        changed.map_err(|cause| refused(action, device, cause))
    }

    /// The coalescing of single queues, for drivers that have it. A value of 0 may mean that the
    /// driver does not have it.
    pub fn queue_coalesce(
        &self,
        device: &str,
        queues: u32,
    ) -> Result<Vec<QueueCoalesce>, DeviceError> {
        let queues = 0..queues.min(MAX_QUEUES);
        let words = self.queues("read the coalescing of the queues of", device, queues.clone())?;
        let values = words[PER_QUEUE_HEADER..].chunks(WORDS).map(parse_legacy);
        Ok(queues.zip(values).map(|(queue, coalesce)| QueueCoalesce { queue, coalesce }).collect())
    }

    /// Changes what `change` has on one queue.
    pub fn set_queue_coalesce(
        &self,
        device: &str,
        queue: u32,
        change: &Coalesce,
    ) -> Result<(), DeviceError> {
        let action = "change the coalescing of a queue of";
        let refuse = |cause| refused(action, device, cause);
        if queue >= MAX_QUEUES {
            return Err(refuse(io::ErrorKind::InvalidInput.into()));
        }
        let mut words = self.queues(action, device, queue..queue + 1)?;
        change_words(&mut words[PER_QUEUE_HEADER..], change).map_err(refuse)?;
        (words[1], words[PER_QUEUE_HEADER]) = (SET, SET);
        self.ioctl(action, device, &mut words)
    }

    fn queues(
        &self,
        action: &'static str,
        device: &str,
        queues: Range<u32>,
    ) -> Result<Vec<u32>, DeviceError> {
        let mut words = vec![0; PER_QUEUE_HEADER + queues.len() * WORDS];
        (words[0], words[1]) = (PER_QUEUE, GET);
        for queue in queues {
            words[2 + queue as usize / 32] |= 1 << (queue % 32);
        }
        self.ioctl(action, device, &mut words)?;
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Parameter;
    use super::*;

    #[test]
    fn words_differ_from_unsupported_ones() {
        let mut words = [0; WORDS];
        (words[1], words[2], words[10], words[22]) = (75, 0, 1, 4);
        let coalesce = parse_legacy(&words);
        assert_eq!(coalesce.get(Parameter::RxUsecs), Some(75));
        assert_eq!(coalesce.get(Parameter::RxFrames), None);
        assert_eq!(coalesce.get(Parameter::TxUsecs), Some(0));
        assert_eq!(coalesce.is_on(Parameter::AdaptiveRx), Some(true));
        assert_eq!(coalesce.get(Parameter::SampleInterval), Some(4));
        assert!(parse_legacy(&[]).is_empty());
    }

    #[test]
    fn change_of_what_the_ioctl_lacks_is_refused() {
        let mut words = [0; WORDS];
        change_words(&mut words, &Coalesce::new().with(Parameter::RxUsecsHigh, 9)).unwrap();
        assert_eq!(words[18], 9);
        assert!(change_words(&mut words, &Coalesce::new().with(Parameter::CqeModeRx, 1)).is_err());
        let mut profile = Coalesce::new();
        profile.rx_profile = Some(Vec::new());
        assert!(change_words(&mut words, &profile).is_err());
    }

    #[test]
    fn refusals_are_reported() {
        assert!(set_coalescing("no-such-device", 1, 0).is_err());
        assert!(set_coalescing("a-name-that-is-far-too-long", 1, 0).is_err());
        // The loopback has no interrupts to coalesce.
        let refused = set_coalescing("lo", 1, 0).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
