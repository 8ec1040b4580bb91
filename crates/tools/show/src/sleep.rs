//! Links that sleep while they are idle: the wire's, and the one to memory.

use device::ethtool::Eee;

use super::delays::Delay;
use super::lines::us;
use super::report::Report;

/// EEE works in each direction by itself (IEEE 802.3, 78.3), and the transmitter that wakes before
/// a packet comes is that of the far end.
pub(super) fn eee(report: &Report) -> Option<Delay> {
    let eee = report.eee.filter(|eee| eee.active)?;
    let wake = report.speed_mbps().and_then(Eee::wake_us);
    let long = match wake {
        Some(wake) => format!("takes {}", us(wake)),
        None => "takes a time that depends on the PHY (IEEE 802.3, table 78-4)".into(),
    };
    let own = match eee.tx_lpi_enabled {
        true => format!("; so does this one, after {} us of silence", eee.tx_lpi_timer_us),
        false => String::new(),
    };
    let what = format!(
        "EEE is active: waking the far end's transmitter, if that lets it sleep, {long}{own}"
    );
    Some(Delay::new("eee", wake, what))
}

/// The NIC cannot write a packet into memory before its link to it is awake.
pub(super) fn pcie_link(report: &Report) -> Option<Delay> {
    let aspm = report.files.aspm.as_ref()?;
    let deepest = aspm.states.last()?;
    let long = match aspm.l1_exit_us {
        Some(most) => format!("; waking takes {most} us at most, say its ends (LnkCap)"),
        None => ", which takes a time that cannot be read here".into(),
    };
    let policy = aspm.policy.as_deref().unwrap_or("unknown");
    let what = format!(
        "the PCIe link of the NIC may sleep as deep as {deepest} while it is idle (ASPM, policy \
         {policy}){long}"
    );
    Some(Delay::new("pcie-aspm", aspm.l1_exit_us.map(f64::from), what))
}
