//! Captures of Linux guests: the workload and the secret that a seed draws.

use infer::{Clumping, Clumps};
use nic::moderation::{Moderation, TimerKind};

use crate::random::Random;

use super::{CaptureRating, Stamp, rating, stamps};

/// A workload of `earmark bench` under a secret setting.
#[derive(Clone, Debug)]
pub struct GuestCase {
    /// The experiment, with its options.
    pub workload: String,
    /// The setting of the NIC that receives.
    pub setting: Moderation,
    /// Whether packets of a flow are merged afterwards, as GRO does.
    is_merged: bool,
}

impl GuestCase {
    /// The case of a seed: two in five are decoys.
    pub fn draw(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x6e57);
        let rate = random.whole(1_500, 9_000);
        let workload = match random.whole(0, 6) {
            0 => format!("memcached --think {}", random.whole(20, 300)),
            1 => format!("ntp --rate {}", random.whole(200, 2_000)),
            2 => format!("bulk --bulk-rate {}", random.whole(100, 700)),
            3 => format!("udp-rr --rate {rate}"),
            _ => format!(
                "mixed --rate {rate} --bulk-rate {} --bulk-chunk {}",
                random.whole(50, 500),
                random.one(&[4_096, 16_384, 65_536])
            ),
        };
        if random.is(0.4) {
            return Self { workload, setting: Moderation::DISABLED, is_merged: random.is(0.5) };
        }
        let timers =
            [TimerKind::Delay, TimerKind::Throttle, TimerKind::Periodic, TimerKind::Adaptive];
        let timer = random.one(&timers);
        let rx_usecs = if timer == TimerKind::Adaptive { 0 } else { random.whole(15, 250) };
        let setting = Moderation { timer, rx_usecs, ..Moderation::DISABLED };
        Self { workload, setting, is_merged: false }
    }

    /// Whether nothing holds.
    pub fn is_decoy(&self) -> bool {
        self.setting == Moderation::DISABLED
    }

    /// The setting, or the decoy, in words.
    pub fn truth(&self) -> String {
        if self.is_merged { "disabled, merged".into() } else { self.setting.to_string() }
    }

    /// Judges what the guest's kernel would have stamped, and scores it.
    pub fn rate(&self, taken: &[Stamp]) -> (CaptureRating, Clumping) {
        let merged = self.is_merged.then(|| stamps::merged(taken));
        let mut clumps = Clumps::default();
        for (at, flow, bytes) in merged.as_deref().unwrap_or(taken) {
            clumps.add(*at, *flow, *bytes);
        }
        let said = clumps.judge();
        (rating(&said, self.setting), said)
    }
}
