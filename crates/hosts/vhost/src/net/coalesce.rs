//! What a guest's coalescing parameters mean to our strategies.
//!
//! A guest knows two numbers, `max_usecs` and `max_packets` (virtio 1.3, section 5.1.6.5.7), and
//! our port has a strategy that the guest does not know of. The guest's numbers go into that
//! strategy as `ethtool -C rx-usecs N rx-frames M` would put them there
//! ([`Moderation::coalesce`]), with one exception: 0 or 1 packets are no bound, since Linux sends 1
//! where it means that it has no opinion.
//!
//! Linux believes that a device begins with 0 us, and does not ask. So `ethtool -c` in a guest
//! shows 0 whatever the port has, `ethtool -C eth0 rx-usecs 0` as the first command sends nothing,
//! and `tx-usecs 5` as the first command sends 0 us for reception with it.

use nic::moderation::{Coalesce, Moderation, Profile, SettingError};

/// The setting that follows `now_in_force` when a guest asks for these numbers.
pub fn coalesce(
    now_in_force: Moderation,
    usecs: u32,
    packets: u32,
) -> Result<Moderation, SettingError> {
    let rx_frames = if packets <= 1 { 0 } else { packets };
    let (rx_usecs, rx_frames) = (Some(usecs), Some(rx_frames));
    let change = Coalesce { rx_usecs, rx_frames, adaptive_rx: None };
    now_in_force.coalesce(change, Profile::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(setting: &str, usecs: u32, packets: u32) -> String {
        let setting = coalesce(setting.parse().unwrap(), usecs, packets);
        setting.map_or_else(|why| why.to_string(), |setting| setting.to_string())
    }

    #[test]
    fn guests_numbers_go_into_the_strategy() {
        assert_eq!(after("marked+throttle:125", 50, 32), "marked+throttle:50+frames:32");
        assert_eq!(after("adaptive", 64, 256), "delay:64+frames:256");
        assert_eq!(after("marked:75", 0, 0), "marked:0");
        assert_eq!(after("disabled", 0, 1), "disabled");
        assert!(after("disabled", 0, 64).contains("never waits"));
    }

    #[test]
    fn one_packet_is_no_bound() {
        assert_eq!(after("throttle:125+frames:8", 50, 1), "throttle:50");
        assert_eq!(after("delay:75", 75, 0), "delay:75");
    }
}
