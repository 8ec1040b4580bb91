//! Reports of what the cores of a host do, beside those of its NIC.

use base::time::Instant;
use nic::observer::Observer;
use nic::processor::Activity;

/// Receives what a NIC and the cores of its host do; `()` ignores it, at no cost.
pub trait Watch: Observer {
    /// A core has been busy from `begun` to `ended`. A process that wakes up first is reported
    /// twice: for that time it is [`Activity::Wakeup`], too.
    fn ran(&mut self, core: usize, activity: Activity, begun: Instant, ended: Instant) {
        let _ = (core, activity, begun, ended);
    }
}

impl Watch for () {}
