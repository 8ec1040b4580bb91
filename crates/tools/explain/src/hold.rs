//! What our own NIC says of how long it holds packets.

use std::path::Path;

use netdev::DeviceError;
use netdev::drivers::{Bound, lacks_timer, wait};
use netdev::ethtool::{Coalesce, Ethtool, Parameter};

use super::cause::Ranked;
use super::evidence::OwnHold;
use flows::record::FlowStage;
use labctl::client;

/// Holds that are shorter than this, in microseconds, are none.
pub(crate) const NO_HOLD: f64 = 0.5;

/// The same by stamps: DMA and interrupt are in it.
const NO_STAMPED_HOLD: f64 = 4.0;

/// Takes the hold that the NIC counts, or that its stamps show, out of the far side's time.
pub(crate) fn split(requests: &mut Ranked, hold: &OwnHold) {
    let (us, none) = match hold {
        OwnHold::Counted { hold_us, .. } => (hold_us.p50, NO_HOLD),
        OwnHold::Stamped { hold_us } => (hold_us.p50, NO_STAMPED_HOLD),
        OwnHold::Set { .. } | OwnHold::None | OwnHold::Unknown => return,
    };
    if us >= none {
        requests.shift(FlowStage::FarUnacked, FlowStage::Hold, (us * 1e3) as u64);
    }
}

/// Asks the NIC of a lab, if the device is one of its; else the driver.
pub(crate) fn of(device: &str) -> OwnHold {
    if let Some(counted) = counted(device) {
        return counted;
    }
    match read(device) {
        Ok((driver, settings)) => set(&driver, &settings),
        Err(_) if is_virtual(device) => OwnHold::None,
        Err(_) => OwnHold::Unknown,
    }
}

/// The name of the driver of a device, and its coalescing.
fn read(device: &str) -> Result<(String, Coalesce), DeviceError> {
    let ethtool = Ethtool::open()?;
    Ok((ethtool.driver(device)?.name, ethtool.coalesce(device)?))
}

/// What settings say, as far as is known what their driver makes of them.
fn set(driver: &str, settings: &Coalesce) -> OwnHold {
    let get = |name| settings.get(name).unwrap_or(0);
    let up_to_us = match wait(driver, settings).map(|wait| wait.bound) {
        None => Some(0.0),
        Some(Bound::Us(us)) => Some(us),
        Some(Bound::Endless | Bound::Unknown) => None,
    };
    let at_once = settings.clone().with(Parameter::AdaptiveRx, 0).with(Parameter::RxUsecs, 0);
    OwnHold::Set {
        rx_usecs: get(Parameter::RxUsecs),
        rx_frames: get(Parameter::RxFrames),
        adaptive: settings.is_on(Parameter::AdaptiveRx) == Some(true),
        up_to_us,
        single_frame: lacks_timer(driver, &at_once).is_some(),
    }
}

/// Whether there is no hardware behind a device of this network.
pub(crate) fn is_virtual(device: &str) -> bool {
    let device = Path::new("/sys/class/net").join(device);
    device.exists() && !device.join("device").exists()
}

/// A lab's NIC counts what it holds.
fn counted(device: &str) -> Option<OwnHold> {
    let (lab, port) = client::port_here(device)?;
    Some(OwnHold::Counted { hold_us: port.hold_us?, lab })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_zero_is_no_hold_only_where_it_is() {
        use Parameter::{RxFrames, RxUsecs};
        let settings = Coalesce::new().with(RxUsecs, 0).with(RxFrames, 12);
        let of = |driver| match set(driver, &settings) {
            OwnHold::Set { up_to_us, single_frame, .. } => (up_to_us, single_frame),
            other => panic!("{other:?}"),
        };
        assert_eq!(of("igb"), (Some(0.0), false));
        assert_eq!(of("cxgb4"), (None, true));
        assert_eq!(of("bnx2"), (None, true));
        assert_eq!(of("vmxnet3"), (Some(4_000.0), false));
    }
}
