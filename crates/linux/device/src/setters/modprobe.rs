//! Options of drivers (`modprobe.d(5)`), which `ethtool -C` may show as something else or not at
//! all.

use super::files::Files;
use super::traits::{Matches, Settings, Traits};

const DIRECTORIES: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

/// Options that hold interrupts back: Linux, `drivers/net/ethernet/intel/e1000/e1000_param.c`,
/// `e1000e/param.c`, `atheros/atlx/atl1.c`, `myricom/myri10ge/myri10ge.c`; and Intel's own `igb`
/// and `ixgbe`, which are not in Linux.
const OPTIONS: [&str; 7] = [
    "InterruptThrottleRate",
    "RxIntDelay",
    "RxAbsIntDelay",
    "TxIntDelay",
    "TxAbsIntDelay",
    "int_mod_timer",
    "myri10ge_intr_coal_delay",
];

pub(super) fn read(files: &mut Files<'_>, device: &Traits) -> Vec<(String, Matches, Settings)> {
    let paths = files.by_name(&DIRECTORIES, ".conf");
    let of_file = |path: String| {
        let settings = options(&files.text(&path), device);
        (path, Matches::Yes, settings)
    };
    paths.into_iter().map(of_file).collect()
}

pub(super) fn options(text: &str, device: &Traits) -> Settings {
    let plain = |name: &str| name.replace('-', "_");
    let mut settings = Settings::new();
    for line in super::command::lines(text) {
        let mut words = line.split_whitespace();
        let is_its = words.next() == Some("options")
            && words.next().map(plain) == device.driver.as_deref().map(plain);
        let pairs = words.filter_map(|word| word.split_once('='));
        let pairs = pairs.filter(|(name, value)| OPTIONS.contains(name) && !value.is_empty());
        settings.extend(
            pairs.filter(|_| is_its).map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
    }
    settings
}
