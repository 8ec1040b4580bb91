//! NAPI deferral of a whole device: software that holds interrupts back, whatever the NIC does.
//!
//! Files and meaning: Linux, `Documentation/networking/napi.rst`. After a poll that found nothing,
//! interrupts stay off for `gro_flush_timeout` nanoseconds, up to `napi_defer_hard_irqs` times.

use serde::{Deserialize, Serialize};

use super::kernel::KernelFiles;

/// The deferral of a device; `None` where the kernel does not have it. To change, `None` leaves a
/// value as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferral {
    /// How long interrupts stay off, and packets are kept for GRO, in nanoseconds.
    pub gro_flush_timeout: Option<u64>,
    /// How often in a row.
    pub napi_defer_hard_irqs: Option<u64>,
    /// Whether kernel threads poll instead of the softirq; `None` also before Linux 5.12.
    pub threaded: Option<u64>,
}

/// The file of [`Deferral::gro_flush_timeout`].
pub const GRO_FLUSH_TIMEOUT: &str = "gro_flush_timeout";
/// The file of [`Deferral::napi_defer_hard_irqs`].
pub const NAPI_DEFER_HARD_IRQS: &str = "napi_defer_hard_irqs";
/// The file of [`Deferral::threaded`].
pub const THREADED: &str = "threaded";

impl Deferral {
    /// What the files in the directory of a device say.
    pub fn read(files: &dyn KernelFiles, directory: &str) -> Self {
        let number = |name: &str| files.number(&format!("{directory}/{name}"));
        Self {
            gro_flush_timeout: number(GRO_FLUSH_TIMEOUT),
            napi_defer_hard_irqs: number(NAPI_DEFER_HARD_IRQS),
            threaded: number(THREADED),
        }
    }
}
