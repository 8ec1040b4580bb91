//! Interrupts: which ones are a device's, by files below `/sys` and `/proc`.

use device::cpus::write_list;
pub use device::interrupts::{
    Affinity, Interrupt, affinity, irqbalance, of_queue, parse_interrupts,
};

use super::error::DeviceError;
use super::root::{Root, directory_of};

/// All interrupts of the machine.
pub fn read_interrupts(root: &Root) -> Result<Vec<Interrupt>, DeviceError> {
    root.read("proc/interrupts").map(|text| parse_interrupts(&text))
}

/// The interrupts of a device among `all` ([`device::interrupts::of_device`]).
pub fn of_device(
    root: &Root,
    name: &str,
    all: &[Interrupt],
) -> Result<Vec<Interrupt>, DeviceError> {
    Ok(device::interrupts::of_device(root, name, &directory_of(name)?, all))
}

/// Sets the processors that may have an interrupt.
pub fn set_affinity(root: &Root, number: u32, cpus: &[u32]) -> Result<(), DeviceError> {
    root.write(&format!("proc/irq/{number}/smp_affinity_list"), &write_list(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_moved_by_its_file() {
        let path = std::env::temp_dir().join(format!("earmark-irq-{}", std::process::id()));
        let directory = path.join("proc/irq/67");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("smp_affinity_list"), "0-3").unwrap();
        let root = Root::at(&path);
        set_affinity(&root, 67, &[0, 1, 3]).unwrap();
        let allowed = affinity(&root, 67).allowed;
        let missing = set_affinity(&root, 68, &[0]).unwrap_err();
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(allowed, Some(vec![0, 1, 3]));
        assert!(missing.is_unsupported(), "{missing}");
    }
}
