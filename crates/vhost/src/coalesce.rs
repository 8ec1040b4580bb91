//! What a guest's coalescing parameters mean to our strategies.
//!
//! A guest knows two numbers, `max_usecs` and `max_packets` (virtio 1.3, section 5.1.6.5.7), and
//! our port has a strategy that the guest does not know of. The guest's numbers go into that
//! strategy, as `earmark nic set rx-usecs` would put them there:
//!
//! | the port has | the guest sets | it becomes |
//! |---|---|---|
//! | `delay`, `throttle`, `periodic` | 1 us or more | the same with these numbers |
//! | `quiet` | 1 us or more | the same; its bound grows if it is shorter than that |
//! | `disabled`, `adaptive` | 1 us or more | `delay` with these numbers |
//! | `itr` | 1 us or more | `throttle` with these numbers |
//! | anything | 0 us | `disabled`; what it was is remembered |
//! | `disabled`, because of 0 us | 1 us or more | what it was, with these numbers |
//!
//! Marks and their gap stay as they are.
//!
//! 0 or 1 packets are no bound: Linux sends 1 where it means that it has no opinion, and one
//! interrupt per packet is what 0 us are for. A bound without a time would hold packets back for
//! ever, so 0 us interrupt at once whatever the packets.
//!
//! Linux believes that a device begins with 0 us, and does not ask. So `ethtool -c` in a guest
//! shows 0 whatever the port has, `ethtool -C eth0 rx-usecs 0` as the first command sends nothing,
//! and `tx-usecs 5` as the first command sends 0 us for reception with it.

use nic::moderation::{Moderation, SettingError};

/// A guest's view of a queue: remembers what its 0 us replaced.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Coalescing {
    before: Option<Moderation>,
}

impl Coalescing {
    /// The setting that follows `now_in_force` when the guest asks for these numbers.
    pub(super) fn set(
        &mut self,
        now_in_force: Moderation,
        usecs: u32,
        packets: u32,
    ) -> Result<Moderation, SettingError> {
        let strategy = match now_in_force {
            Moderation::DISABLED => self.before.unwrap_or(now_in_force),
            other => other,
        };
        let rx_frames = if packets <= 1 { 0 } else { packets };
        // Checked even if the time is 0, as any other.
        let with_time = Moderation { rx_frames, ..strategy.timed(usecs.max(1)) }.checked()?;
        if usecs == 0 {
            self.before = Some(with_time);
            return Ok(Moderation::DISABLED);
        }
        self.before = None;
        Ok(with_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(setting: &str, numbers: &[(u32, u32)]) -> String {
        let mut coalescing = Coalescing::default();
        let mut setting: Moderation = setting.parse().unwrap();
        for &(usecs, packets) in numbers {
            setting = coalescing.set(setting, usecs, packets).unwrap();
        }
        setting.to_string()
    }

    #[test]
    fn guests_numbers_go_into_the_strategy() {
        assert_eq!(after("delay:75", &[(50, 0)]), "delay:50");
        assert_eq!(after("throttle:125", &[(50, 32)]), "throttle:50+frames:32");
        assert_eq!(after("throttle:125+frames:8", &[(50, 1)]), "throttle:50");
        assert_eq!(after("marked+periodic:128", &[(8, 0)]), "marked+periodic:8");
        assert_eq!(after("quiet:20/75", &[(50, 0)]), "quiet:50/75");
        assert_eq!(after("quiet:20/75", &[(100, 16)]), "quiet:100/100+frames:16");
        assert_eq!(after("marked:75+gap:20", &[(50, 0)]), "marked:50+gap:20");
        assert_eq!(after("itr:1", &[(50, 0)]), "throttle:50");
        assert_eq!(after("disabled", &[(50, 16)]), "delay:50+frames:16");
        assert_eq!(after("adaptive", &[(64, 256)]), "delay:64+frames:256");
        assert_eq!(after("stream+adaptive", &[(64, 0)]), "stream:64");
    }

    #[test]
    fn zero_interrupts_at_once_and_remembers() {
        for setting in ["delay:75", "adaptive", "marked:75", "disabled"] {
            assert_eq!(after(setting, &[(0, 0)]), "disabled");
            assert_eq!(after(setting, &[(0, 64)]), "disabled");
        }
        assert_eq!(after("marked+throttle:125", &[(0, 1), (0, 1), (50, 1)]), "marked+throttle:50");
        assert_eq!(after("adaptive", &[(0, 0), (50, 0)]), "delay:50");
        assert_eq!(after("itr", &[(0, 0), (50, 0)]), "throttle:50");
        assert_eq!(after("quiet", &[(0, 0), (50, 0)]), "quiet:50/75");
    }

    #[test]
    fn numbers_out_of_range_change_nothing() {
        let mut coalescing = Coalescing::default();
        let delay: Moderation = "delay:75".parse().unwrap();
        assert_eq!(coalescing.set(delay, 1_000_001, 0), Err(SettingError::UsecsTooLong));
        assert_eq!(coalescing.set(delay, u32::MAX, 0), Err(SettingError::UsecsTooLong));
        assert_eq!(coalescing.set(delay, 0, 65_536), Err(SettingError::TooManyFrames));
        assert_eq!(coalescing.set(delay, 8, u32::MAX), Err(SettingError::TooManyFrames));
    }
}
