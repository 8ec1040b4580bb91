//! Which programs, and which packages hold them.

/// A program, or a file with its whole path, and the packages that hold it.
pub(super) struct Peer {
    pub program: &'static str,
    pub apt: &'static str,
    pub dnf: &'static str,
    pub pacman: &'static str,
}

const fn peer(
    program: &'static str,
    apt: &'static str,
    dnf: &'static str,
    pacman: &'static str,
) -> Peer {
    Peer { program, apt, dnf, pacman }
}

/// What the tests talk to.
pub(super) const PEERS: [Peer; 23] = [
    peer("memcached", "memcached", "memcached", "memcached"),
    peer("chronyd", "chrony", "chrony", "chrony"),
    peer("iperf3", "iperf3", "iperf3", "iperf3"),
    peer("sockperf", "sockperf", "sockperf", "sockperf"),
    peer("tshark", "tshark", "wireshark-cli", "wireshark-cli"),
    peer("ping", "iputils-ping", "iputils", "iputils"),
    peer("ethtool", "ethtool", "ethtool", "ethtool"),
    peer("ip", "iproute2", "iproute", "iproute2"),
    peer("setpriv", "util-linux", "util-linux", "util-linux"),
    peer("unshare", "util-linux", "util-linux", "util-linux"),
    peer("nsenter", "util-linux", "util-linux-core", "util-linux"),
    peer("valgrind", "valgrind", "valgrind", "valgrind"),
    peer("c++", "g++", "gcc-c++", "gcc"),
    peer("mandoc", "mandoc", "mandoc", "mandoc"),
    peer("fi_info", "libfabric-bin", "libfabric", "libfabric"),
    peer("/usr/include/rdma/fabric.h", "libfabric-dev", "libfabric-devel", "libfabric"),
    peer("mpirun", "openmpi-bin", "openmpi", "openmpi"),
    peer("mpicc", "libopenmpi-dev", "openmpi-devel", "openmpi"),
    peer("chromium", "chromium", "chromium", "chromium"),
    // What reads the texts of `earmark persist`.
    peer("ansible-playbook", "ansible-core", "ansible-core", "ansible-core"),
    peer("nix-instantiate", "nix-bin", "nix", "nix"),
    // What runs `earmark show` on many hosts.
    peer("clush", "clustershell", "clustershell", "clustershell"),
    // A kernel whose network driver is a module; Debian alone has it.
    peer("linux.uml", "user-mode-linux", "user-mode-linux", "user-mode-linux"),
];

/// What sets up the network of the machine that it is installed on, or starts a service there: it
/// is only unpacked. Some of it Debian alone has.
pub(super) const NEVER_INSTALLED: [Peer; 12] = [
    peer("NetworkManager", "network-manager", "NetworkManager", "networkmanager"),
    peer("dbus-daemon", "dbus-daemon", "dbus-daemon", "dbus"),
    peer("tuned", "tuned", "tuned", "tuned"),
    peer("ifup", "ifupdown", "ifupdown", "ifupdown"),
    peer("udevadm", "udev", "systemd-udev", "systemd"),
    peer("munged", "munge", "munge", "munge"),
    peer("slurmctld", "slurmctld", "slurm-slurmctld", "slurm-llnl"),
    peer("slurmd", "slurmd", "slurm-slurmd", "slurm-llnl"),
    peer("srun", "slurm-client", "slurm", "slurm-llnl"),
    peer("prometheus", "prometheus", "golang-github-prometheus", "prometheus"),
    peer("promtool", "prometheus", "golang-github-prometheus", "prometheus"),
    peer(
        "prometheus-node-exporter",
        "prometheus-node-exporter",
        "node-exporter",
        "prometheus-node-exporter",
    ),
];

/// What `earmark kernel` builds the kernel of guests with.
pub(super) const KERNEL_TOOLS: [Peer; 7] = [
    peer("flex", "flex", "flex", "flex"),
    peer("bison", "bison", "bison", "bison"),
    peer("make", "make", "make", "make"),
    peer("gcc", "gcc", "gcc", "gcc"),
    peer("bc", "bc", "bc", "bc"),
    peer("xz", "xz-utils", "xz", "xz"),
    peer("strip", "binutils", "binutils", "binutils"),
];

/// What `cargo xtask dist` packages with, and the machine that it installs packages on.
pub(super) const PACKAGING_TOOLS: [Peer; 5] = [
    peer("dh", "debhelper", "debhelper", "debhelper"),
    peer("lintian", "lintian", "lintian", "lintian"),
    peer("buildah", "buildah", "buildah", "buildah"),
    peer("debootstrap", "debootstrap", "debootstrap", "debootstrap"),
    peer("pkg-config", "pkg-config", "pkgconf-pkg-config", "pkgconf"),
];
