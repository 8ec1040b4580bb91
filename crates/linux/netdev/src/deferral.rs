//! NAPI deferral of a whole device: its files below `/sys`.

use device::deferral;
pub use device::deferral::Deferral;

use super::error::DeviceError;
use super::root::{Root, directory_of};

/// Reads it, which takes no rights.
pub fn read_deferral(root: &Root, device: &str) -> Result<Deferral, DeviceError> {
    let directory = directory_of(device)?;
    root.read(&format!("{directory}/ifindex"))?;
    Ok(Deferral::read(root, &directory))
}

/// Changes what `change` has, in the order of its fields.
///
/// # Errors
/// If there is no such device, or the kernel refuses a value; then later ones are left as they are.
pub fn write_deferral(root: &Root, device: &str, change: &Deferral) -> Result<(), DeviceError> {
    let directory = directory_of(device)?;
    let values = [
        (deferral::GRO_FLUSH_TIMEOUT, change.gro_flush_timeout),
        (deferral::NAPI_DEFER_HARD_IRQS, change.napi_defer_hard_irqs),
        (deferral::THREADED, change.threaded),
    ];
    for (name, value) in values {
        if let Some(value) = value {
            root.write(&format!("{directory}/{name}"), &value.to_string())?;
        }
    }
    Ok(())
}
