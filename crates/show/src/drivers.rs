//! What drivers mean by `rx-usecs`, as far as it differs. Sources are the drivers in Linux,
//! `drivers/net/`, and the profiles of `lib/dim/net_dim.c`.

/// What a driver does with the time of `rx-usecs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// It starts at the first packet without an interrupt.
    Delay,
    /// It is a minimum gap between two interrupts; a packet after a longer pause interrupts at
    /// once.
    Throttle,
    /// A value that stands for "as the driver sees fit", with a least gap of so many microseconds
    /// at most.
    Chosen(u32),
}

/// What a value of `rx-usecs` does, without `adaptive-rx`.
pub(super) fn timer_of(driver: &str, rx_usecs: u32) -> Timer {
    match (driver, rx_usecs) {
        // 1 is "dynamic", 3 "dynamic conservative": between 4,000 and 70,000 interrupts a second.
        ("e1000" | "e1000e" | "igb" | "igbvf" | "igc", 1 | 3) => Timer::Chosen(250),
        // "Simplified balancing": between 2,000 and 8,000.
        ("e1000" | "e1000e", 4) => Timer::Chosen(500),
        // IXGBE_ITR_ADAPTIVE_MAX_USECS.
        ("ixgbe" | "ixgbevf", 1) => Timer::Chosen(126),
        (
            "e1000" | "e1000e" | "igb" | "igbvf" | "igc" | "ixgbe" | "ixgbevf" | "i40e" | "iavf"
            | "ice" | "fm10k" | "idpf",
            _,
        ) => Timer::Throttle,
        _ => Timer::Delay,
    }
}

/// The longest time that adaptive moderation may choose, in microseconds, where it is known.
///
/// `is_cqe` is `cqe-mode-rx`: those profiles are shorter.
pub(super) fn longest_adaptive(driver: &str, is_cqe: bool) -> Option<u32> {
    match driver {
        // The profiles of net_dim: 1, 8, 64, 128, 256 us; counted from the last packet: 2 to 64 us.
        "mlx5_core" if is_cqe => Some(64),
        "mlx5_core" | "bnxt_en" | "virtio_net" | "bcmgenet" | "ionic" | "mtk_soc_eth" => Some(256),
        // It has net_dim choose, too, and always from the first packet.
        "ena" => Some(256),
        // ICE_DIM's own: 2, 8, 16, 62, 126 us.
        "ice" => Some(126),
        // I40E_ITR_ADAPTIVE_MAX_USECS.
        "i40e" | "iavf" => Some(126),
        _ => None,
    }
}

/// The receive delay in microseconds that a driver sets by itself, and that neither `ethtool -c`
/// nor another command shows; `pci_id` is vendor and device.
///
/// e1000e has cards write descriptors back in bursts (`FLAG2_DMA_BURST`: 82571, 82572, 82574 and
/// 80003ES2LAN), and sets `RDTR` and `RADV` of those to 32 ticks of 1.024 us (`e1000_configure_rx`)
/// unless its parameters say otherwise, which are not in sysfs.
pub(super) fn hidden_delay(driver: &str, pci_id: &str) -> Option<f64> {
    const IN_BURSTS: [&str; 19] = [
        "105e", "105f", "1060", "10a4", "10a5", "10bc", "10d5", "10d9", "10da", // 82571
        "107d", "107e", "107f", "10b9", // 82572
        "10d3", "10f6", // 82574
        "1096", "1098", "10ba", "10bb", // 80003ES2LAN
    ];
    let device = pci_id.strip_prefix("8086:")?;
    (driver == "e1000e" && IN_BURSTS.contains(&device)).then_some(32.0 * 1.024)
}

/// Whether a device is made of software that calls the stack itself: no interrupt, no ring.
pub(super) fn is_software(driver: &str) -> bool {
    matches!(
        driver,
        "veth"
            | "tun"
            | "bridge"
            | "dummy"
            | "802.1Q VLAN Support"
            | "macvlan"
            | "ipvlan"
            | "ifb"
            | "wireguard"
            | "bonding"
            | "team"
            | "vxlan"
            | "netkit"
            | "gre"
            | "ipip"
            | "sit"
    )
}
