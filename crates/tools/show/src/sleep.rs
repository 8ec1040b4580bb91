//! Links that sleep while they are idle: the wire's, and the one to memory.

use netdev::ethtool::Eee;

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

#[cfg(test)]
mod tests {
    use netdev::aspm::Aspm;
    use netdev::ethtool::Link;

    use super::*;

    #[test]
    fn a_link_that_sleeps_wakes_for_as_long_as_its_speed_says() {
        let at = |speed_mbps, eee| {
            let link = Link { speed_mbps: Some(speed_mbps), ..Link::default() };
            super::eee(&Report { link: Some(link), eee: Some(eee), ..Report::default() })
        };
        let asleep = Eee { active: true, enabled: true, ..Eee::default() };
        for (speed, wake) in [(100, Some(30.0)), (1_000, Some(16.5)), (2_500, None)] {
            let delay = at(speed, asleep).unwrap();
            assert_eq!((delay.cause, delay.up_to_us), ("eee", wake), "{}", delay.what);
            assert!(!delay.what.contains("so does this one"), "{}", delay.what);
        }
        assert!(at(10_000, asleep).unwrap().what.contains("table 78-4"));
        let both = Eee { tx_lpi_enabled: true, tx_lpi_timer_us: 17, ..asleep };
        assert!(
            at(1_000, both)
                .unwrap()
                .what
                .ends_with("takes 16.5 us; so does this one, after 17 us of silence")
        );
        // The far end does not offer it, or there is no link.
        assert_eq!(at(1_000, Eee { active: false, ..both }), None);
    }

    #[test]
    fn the_link_to_memory_is_reported_while_a_state_is_on() {
        let with = |states: &[&'static str], l1_exit_us| {
            let mut report = Report::default();
            let policy = Some("default".into());
            report.files.aspm = Some(Aspm { policy, states: states.to_vec(), l1_exit_us });
            pcie_link(&report)
        };
        assert_eq!(with(&[], None), None);
        let known = with(&["L0s", "L1"], Some(32)).unwrap();
        assert_eq!((known.cause, known.up_to_us), ("pcie-aspm", Some(32.0)));
        assert!(known.what.contains("as deep as L1 ") && known.what.contains("policy default"));
        assert_eq!(with(&["L1", "L1.2"], None).unwrap().up_to_us, None);
        assert_eq!(pcie_link(&Report::default()), None);
    }
}
