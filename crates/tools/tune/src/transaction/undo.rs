//! The way back: what a journal says of a device, and making that true.

use anyhow::{Context, Result, bail};
use rustix::time::{ClockId, clock_gettime};

use crate::device::TunedDevice;
use crate::failpoint::failpoint;
use crate::journal::{Held, Journal, Store};
use crate::setting::{Change, Mechanism, Setting, State};

/// The boot that this is.
pub fn boot() -> Result<String> {
    const FILE: &str = "/proc/sys/kernel/random/boot_id";
    Ok(std::fs::read_to_string(FILE).with_context(|| format!("read {FILE}"))?.trim().to_owned())
}

/// Nanoseconds since the boot, sleep included.
pub fn since_boot() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// The journal of a device as it is: one of an earlier boot, or of a device that is gone and whose
/// name another one has taken, has nothing to undo.
pub fn current(store: &Store, device: &dyn TunedDevice) -> Result<Journal> {
    let boot = boot()?;
    let new = || Journal::new(&boot, device.identity().clone());
    let journal = store.read(device.identity())?;
    let is_current =
        |journal: &Journal| journal.boot == boot && journal.device.is(device.identity());
    // It may have been renamed since.
    let named = |journal| Journal { device: device.identity().clone(), ..journal };
    Ok(journal.filter(is_current).map_or_else(new, named))
}

/// Undoes what the journal says is being tried, and makes the journal forget it.
///
/// # Errors
/// If the device is not as it was afterwards; the journal is as it was, then.
pub fn undo(
    device: &dyn TunedDevice,
    store: &Store,
    held: &Held,
    journal: &mut Journal,
) -> Result<()> {
    let Some(trying) = &journal.trying else { return Ok(()) };
    put_back(device, &trying.before)?;
    let without = Journal { trying: None, ..journal.clone() };
    failpoint("undo: before forgetting");
    store.write(&without, held)?;
    *journal = without;
    Ok(())
}

/// Makes a device be in state `before` again, and reads back that it is.
///
/// # Errors
/// If it is not; the message says what differs and how to set it by hand.
pub fn put_back(device: &dyn TunedDevice, before: &State) -> Result<()> {
    let named: Vec<Setting> = before.0.keys().copied().collect();
    let left = || Ok::<_, anyhow::Error>(device.way_back(before, &device.read_with(&named)?));
    let way = left()?;
    if way.is_empty() {
        return Ok(());
    }
    failpoint("undo: before");
    if let Err(refused) = device.change(&way) {
        // A driver may take settings in one order only; each has two turns.
        for _ in 0..2 {
            for pair in &left()?.0 {
                let _ = device.change(&Change(vec![pair.clone()]));
            }
        }
        let left = left()?;
        if !left.is_empty() {
            return Err(refused.context(by_hand(device, &left)));
        }
    }
    failpoint("undo: after");
    let left = left()?;
    if left.is_empty() { Ok(()) } else { bail!("{}", by_hand(device, &left)) }
}

fn by_hand(device: &dyn TunedDevice, left: &Change) -> String {
    let name = &device.identity().name;
    let is_coalescing = |setting: Setting| setting.mechanism() == Mechanism::Coalescing;
    let command = if left.settings().all(is_coalescing) { "ethtool -C" } else { "earmark apply" };
    format!("{name} is not as it was: put it right by hand: {command} {name} {left}")
}
