//! Pairs of ports of each kind, connected.

use std::any::Any;
use std::fmt::Display;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use lab::host::Host;
use lab::station::Station;
use lab::wait::Waiting;
use mx_io::port::local::LocalPort;
use mx_io::port::packet::PacketPort;
use mx_io::port::shm::{ShmPort, ShmSettings};
use mx_io::port::tcp_bulk::TcpBulkPort;
use mx_io::port::udp::UdpPort;
use mx_io::port::virtio::VirtioPort;
use mx_io::port::wire::Wire;
use mx_io::port::{NicId, Port, PortError};
use vhost::driver::DriverSettings;

use super::nic_of_tests::{Nic, NicSettings};

/// Two ports that reach one another: endpoints 3 and 200.
pub(crate) struct PortPair {
    pub(crate) name: &'static str,
    pub(crate) a: Box<dyn Port>,
    pub(crate) b: Box<dyn Port>,
    /// Whether every frame that is lost is counted by the port that it was for.
    pub(crate) counts_losses: bool,
    _between: Box<dyn Any>,
}

pub(crate) const A: u8 = 3;
pub(crate) const B: u8 = 200;

/// Any UDP port of this host that is free.
#[allow(dead_code, reason = "not all who have pairs use datagrams")]
pub(crate) const LOCALHOST: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// How to make a pair of each kind.
pub(crate) const KINDS: [fn() -> PortPair; 12] = [
    || over_veth("packet", 1500),
    || over_veth("packet, MTU 9000", 9000),
    udp,
    tcp_bulk,
    || over_nic(NicSettings::default()),
    wire,
    || over_shm("shm", 1500),
    || over_shm("shm, MTU 9000", 9000),
    || local("local", 0),
    // They could also reach others on their own hosts.
    || local("local, to another host", 1),
    local_udp,
    local_udp_to_plain,
];

pub(crate) fn each(test: impl Fn(&mut PortPair)) {
    for make in KINDS {
        let mut pair = make();
        println!("{}", pair.name);
        test(&mut pair);
    }
}

fn pair(name: &'static str, [a, b]: [impl Port + 'static; 2], between: impl Any) -> PortPair {
    let _between = Box::new(between);
    PortPair { name, a: Box::new(a), b: Box::new(b), counts_losses: true, _between }
}

fn over_veth(name: &'static str, mtu: u16) -> PortPair {
    let veth = Veth::new(mtu);
    pair(name, [(0, A), (1, B)].map(|(host, number)| ok(veth.port(host, number))), veth)
}

fn udp() -> PortPair {
    pair("udp", [A, B].map(|number| ok(UdpPort::open(number, LOCALHOST))), ())
}

fn tcp_bulk() -> PortPair {
    let veth = Veth::with_addresses();
    let ports = [(0, A), (1, B)].map(|(host, number)| ok(veth.tcp_bulk_port(host, number)));
    pair("packet with TCP", ports, veth)
}

/// Over a NIC whose thread never sleeps.
#[allow(dead_code, reason = "an example measures it")]
pub(crate) fn over_polling_nic() -> PortPair {
    over_nic(NicSettings { waiting: Waiting::Spin, ..NicSettings::default() })
}

fn over_nic(settings: NicSettings) -> PortPair {
    let nic = Nic::start(settings);
    let ports = [(0, A), (1, B)].map(|(port, number)| {
        ok(VirtioPort::connect(&nic.path(port), number, DriverSettings::default()))
    });
    PortPair { counts_losses: false, ..pair("virtio", ports, nic) }
}

pub(crate) fn wire() -> PortPair {
    let wire = ok(Wire::new(1500, 40));
    let open = |(byte, number)| ok(wire.port(NicId([2, 0, 0, 0, 0, byte]), number));
    pair("wire", [(1, A), (2, B)].map(open), wire)
}

fn over_shm(name: &'static str, mtu: u16) -> PortPair {
    // Tests that run at the same time have a network in common, also those of several runs.
    static SCOPE: AtomicU32 = AtomicU32::new(1 << 31);
    let scope = SCOPE.fetch_add(1, Ordering::Relaxed) | std::process::id() << 8;
    let ports = [(1, A), (2, B)].map(|(byte, number)| {
        let nic = NicId([2, 0, 0, 0, 0, byte]);
        ok(ShmPort::open(nic, number, ShmSettings::new(scope, mtu)))
    });
    pair(name, ports, ())
}

fn local(name: &'static str, other: usize) -> PortPair {
    let veth = Veth::new(1500);
    let ports = [(0, A), (other, B)].map(|(host, number)| ok(veth.local_port(host, number)));
    pair(name, ports, veth)
}

/// Datagrams that need no kernel.
fn local_udp() -> PortPair {
    let open = |number| ok(LocalPort::over_udp(number, LOCALHOST));
    pair("udp within a host", [A, B].map(open), ())
}

/// One of two does not listen for others of its host.
fn local_udp_to_plain() -> PortPair {
    let b = Box::new(ok(UdpPort::open(B, LOCALHOST)));
    PortPair { name: "udp within a host, to a plain port", b, ..local_udp() }
}

/// Two hosts with an interface `m0` each, and a cable between them.
pub(crate) struct Veth([Host; 2]);

impl Veth {
    pub(crate) fn new(mtu: u16) -> Self {
        let stations = [Station::new("a", 1), Station::new("b", 2)];
        let hosts = ["a", "b"].map(|name| ok(Host::create(name, &stations)));
        let (pid, mtu) = (hosts[1].pid(), mtu.to_string());
        let peer = format!("peer name m0 mtu {mtu} netns {pid}");
        let veth = Self(hosts);
        veth.ip(0, &format!("link add m0 mtu {mtu} type veth {peer}"));
        veth.ip(0, "link set m0 up");
        veth.ip(1, "link set m0 up");
        veth
    }

    /// As [`new`](Self::new), and the hosts are 10.88.0.1 and 10.88.0.2.
    pub(crate) fn with_addresses() -> Self {
        let veth = Self::new(1500);
        for host in 0..2 {
            veth.ip(host, &format!("address add 10.88.0.{}/24 dev m0", host + 1));
        }
        veth
    }

    /// Opens a port with TCP connections in a host that has an address.
    pub(crate) fn tcp_bulk_port(
        &self,
        host: usize,
        endpoint: u8,
    ) -> Result<TcpBulkPort<PacketPort>, PortError> {
        let address = Ipv4Addr::new(10, 88, 0, host as u8 + 1);
        let packet = self.port(host, endpoint)?;
        let index = packet.index();
        self.enter(host, || TcpBulkPort::new(packet, index, address))
    }

    pub(crate) fn port(&self, host: usize, endpoint: u8) -> Result<PacketPort, PortError> {
        ok(self.0[host].enter_net(|| PacketPort::open("m0", endpoint)))
    }

    pub(crate) fn local_port(
        &self,
        host: usize,
        endpoint: u8,
    ) -> Result<LocalPort<PacketPort>, PortError> {
        let open = || LocalPort::open("m0", endpoint);
        ok(self.0[host].enter_net(open))
    }

    pub(crate) fn enter<T: Send>(&self, host: usize, work: impl FnOnce() -> T + Send) -> T {
        ok(self.0[host].enter_net(work))
    }

    /// Runs `ip` in the network of a host, but with the processes of the machine.
    pub(crate) fn ip(&self, host: usize, arguments: &str) {
        self.run(host, &format!("ip {arguments}"));
    }

    pub(crate) fn run(&self, host: usize, command: &str) {
        let mut words = command.split(' ');
        let program = words.next().expect("a command has a name");
        let output = ok(self.enter(host, || Command::new(program).args(words).output()));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {error}");
    }
}

/// The value, or a panic with the message a user would see.
fn ok<T, E: Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
