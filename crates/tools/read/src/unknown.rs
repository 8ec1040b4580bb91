//! What to say of an input that is not recognised.

use capture::{CaptureFormat, format_of};

/// Whether bytes are a capture of packets.
pub(crate) fn is_capture(bytes: &[u8]) -> bool {
    matches!(format_of(bytes), Some(CaptureFormat::Pcap | CaptureFormat::Pcapng))
}

/// What can be read, with an example.
pub(crate) const EXPECTED: &str = "expected what ethtool -c, -i, -k, -g, -l, -S, -T, -a or \
    --show-eee print, /proc/interrupts, ping, sockperf, netperf, qperf, iperf3 --json, a log of \
    chrony or ntpd, a column of numbers, a file of TuneD, NetworkManager, nmstate, systemd, udev, \
    modprobe.d or sysctl, a sosreport or a supportconfig; try: ethtool -c eth0 | earmark read -";
