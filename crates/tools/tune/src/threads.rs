//! Changes after which kernel threads poll a device, under a kernel that may not take a processor
//! from them.

use anyhow::{Result, bail};
use netdev::Root;
use netdev::preemption::{Preemption, read_preemption};

use super::setting::{Change, Setting, Value};

/// What such threads have done under such a kernel.
const STALL: &str = "this kernel gives way only at points of its own choice (PREEMPT_NONE or \
                     PREEMPT_VOLUNTARY), and there threads that poll have kept a processor for \
                     minutes under load (openwrt/openwrt#24732)";

/// Whether threads may poll here without that danger, as far as the kernel says.
pub fn may_poll() -> bool {
    read_preemption(&Root::here()) != Some(Preemption::Cooperative)
}

/// Refuses threads under such a kernel, unless the change `is_undone` by itself; a warning where
/// that, or the kernel's silence, leaves a danger.
///
/// # Errors
/// If the kernel is such a one, and the change is to stay.
pub fn check(device: &str, change: &Change, is_undone: bool) -> Result<Option<String>> {
    warn(device, change, is_undone, read_preemption(&Root::here()))
}

fn warn(
    device: &str,
    change: &Change,
    is_undone: bool,
    preemption: Option<Preemption>,
) -> Result<Option<String>> {
    let is_threaded = |setting: Setting| {
        setting == Setting::Threaded || setting.of_device() == Some(Setting::Threaded)
    };
    let starts = change.0.iter().any(|(it, to)| is_threaded(*it) && *to == Value::Switch(true));
    Ok(match preemption {
        _ if !starts => None,
        Some(Preemption::Preemptible) => None,
        Some(Preemption::Cooperative) if is_undone => Some(format!("{device}: {STALL}")),
        Some(Preemption::Cooperative) => bail!(
            "{device}: {STALL}; boot with preempt=lazy or preempt=full where the kernel has that, \
             or try it for a minute: --confirm-within 60s; nothing was changed"
        ),
        None => Some(format!(
            "{device}: threaded can stall a machine under PREEMPT_NONE, and which model this \
             kernel has chosen is not to be seen; /sys/kernel/debug/sched/preempt says so where \
             debugfs is mounted"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_a_kernel_that_preempts_them() {
        let judge = |text: &str, is_undone, preemption| {
            warn("eth0", &text.parse().unwrap(), is_undone, preemption)
        };
        let (gives_way, preempts) = (Some(Preemption::Cooperative), Some(Preemption::Preemptible));
        for change in ["threaded on", "rx-usecs 3 queue:1:threaded on"] {
            let refusal = judge(change, false, gives_way).unwrap_err().to_string();
            assert!(refusal.contains("--confirm-within 60s"), "{refusal}");
            assert!(judge(change, true, gives_way).unwrap().is_some());
            assert_eq!(judge(change, false, preempts).unwrap(), None);
            assert!(judge(change, false, None).unwrap().unwrap().contains("debugfs"));
        }
        for change in ["threaded off", "rx-usecs 3", "queue:1:threaded off"] {
            assert_eq!(judge(change, false, gives_way).unwrap(), None, "{change}");
        }
    }
}
