//! What to say of an input that is not recognised.

/// Magic numbers of captures: pcap in both byte orders and both resolutions, and pcapng.
const CAPTURES: [[u8; 4]; 5] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0x0a, 0x0d, 0x0d, 0x0a],
];

/// Whether bytes are a capture of packets.
pub fn is_capture(bytes: &[u8]) -> bool {
    bytes.len() >= 24 && CAPTURES.iter().any(|magic| bytes.starts_with(magic))
}

/// What can be read, with an example.
pub(crate) const EXPECTED: &str = "expected what ethtool -c, -i, -k, -g, -l, -S, -T, -a or \
    --show-eee print, /proc/interrupts, ping, sockperf, netperf, qperf, iperf3 --json, a log of \
    chrony or ntpd, a column of numbers, a file of TuneD, NetworkManager, nmstate, systemd, udev, \
    modprobe.d or sysctl, a sosreport or a supportconfig; try: ethtool -c eth0 | earmark read -";
