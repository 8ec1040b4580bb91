//! NAPI deferral of a whole device: its files below `/sys`.

pub use device::deferral::Deferral;

use super::error::DeviceError;
use super::root::{Root, directory_of};

const GRO_FLUSH_TIMEOUT: &str = "gro_flush_timeout";
const NAPI_DEFER_HARD_IRQS: &str = "napi_defer_hard_irqs";
const THREADED: &str = "threaded";

/// Reads it, which takes no rights.
pub fn read_deferral(root: &Root, device: &str) -> Result<Deferral, DeviceError> {
    let directory = directory_of(device)?;
    root.read(&format!("{directory}/ifindex"))?;
    let number = |name: &str| root.number(&format!("{directory}/{name}"));
    Ok(Deferral {
        gro_flush_timeout: number(GRO_FLUSH_TIMEOUT),
        napi_defer_hard_irqs: number(NAPI_DEFER_HARD_IRQS),
        threaded: number(THREADED),
    })
}

/// Changes what `change` has, in the order of its fields.
///
/// # Errors
/// If there is no such device, or the kernel refuses a value; then later ones are left as they are.
pub fn write_deferral(root: &Root, device: &str, change: &Deferral) -> Result<(), DeviceError> {
    let directory = directory_of(device)?;
    let values = [
        (GRO_FLUSH_TIMEOUT, change.gro_flush_timeout),
        (NAPI_DEFER_HARD_IRQS, change.napi_defer_hard_irqs),
        (THREADED, change.threaded),
    ];
    for (name, value) in values {
        if let Some(value) = value {
            root.write(&format!("{directory}/{name}"), &value.to_string())?;
        }
    }
    Ok(())
}
