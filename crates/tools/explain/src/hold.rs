//! What our own NIC says of how long it holds packets.

use std::path::Path;

use netdev::coalescing;

use super::evidence::OwnHold;
use super::stages::Stage;
use super::summary::Collection;
use lab::control::Request;
use lab::control::client;

/// Holds that are shorter than this, in microseconds, are none.
const NO_HOLD: f64 = 0.5;

/// The same where stamps tell: DMA and interrupt are in it.
const NO_STAMPED_HOLD: f64 = 4.0;

/// Takes the hold that the NIC counts, or that its stamps tell, out of the far side's time.
pub(crate) fn split(paths: &mut Collection, hold: &OwnHold) {
    let (us, none) = match hold {
        OwnHold::Counted { p50_us, .. } => (*p50_us, NO_HOLD),
        OwnHold::Stamped { p50_us } => (*p50_us, NO_STAMPED_HOLD),
        OwnHold::Set { .. } | OwnHold::None | OwnHold::Unknown => return,
    };
    if us >= none {
        paths.shift(Stage::Far, Stage::Hold, (us * 1e3) as u64);
    }
}

/// Asks the NIC of a lab, if the device is one of its; else the driver.
#[must_use]
pub(crate) fn of(device: &str) -> OwnHold {
    if let Some(counted) = counted(device) {
        return counted;
    }
    match coalescing::coalescing(device) {
        Ok(coalescing::Coalescing { rx_usecs, rx_frames, adaptive_rx }) => {
            OwnHold::Set { rx_usecs, rx_frames, adaptive: adaptive_rx }
        }
        Err(_) if is_virtual(device) => OwnHold::None,
        Err(_) => OwnHold::Unknown,
    }
}

/// Whether there is no hardware behind a device of this network.
#[must_use]
pub(crate) fn is_virtual(device: &str) -> bool {
    let device = Path::new("/sys/class/net").join(device);
    device.exists() && !device.join("device").exists()
}

/// A lab's NIC counts what it holds. Other labs may have a device of the same name: then it is not
/// known whose this one is.
fn counted(device: &str) -> Option<OwnHold> {
    let mut found = None;
    for lab in client::labs().ok()?.own {
        let Ok(ports) = client::ask(&lab, &Request::Show) else { continue };
        let Some(port) = ports.into_iter().find(|port| port.port == device) else { continue };
        if found.is_some() {
            return None;
        }
        let [p50_us, p99_us, _] = port.hold_us?;
        found = Some(OwnHold::Counted { p50_us, p99_us, lab });
    }
    found
}
