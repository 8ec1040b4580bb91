//! Blocking netlink: requests of any family, and on rtnetlink what `ip link` and `ip address` do,
//! for one link at a time.
//!
//! A [`Netlink`] belongs to the network namespace of the thread that opened it, so it is opened
//! inside `Host::enter_net` of the crate `lab` and works on that host ever after.

pub mod message;
pub use device::link::LinkStats;
pub use device::tlv;

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{
    IFA_ADDRESS, IFA_LOCAL, IFLA_ADDRESS, IFLA_AF_SPEC, IFLA_ALT_IFNAME, IFLA_IFNAME,
    IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MTU, IFLA_STATS64, IFLA_TXQLEN,
    RTM_GETADDR, RTM_GETLINK, RTM_NEWADDR, RTM_NEWLINK, RTM_SETLINK,
};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_ROUTE;

use message::{CREATE, DUMP, Message};
use tlv::{Malformed, Tlvs, Writer};

/// Bytes before the attributes of a link (`struct ifinfomsg`), and of an address
/// (`struct ifaddrmsg`).
const LINK: usize = 16;
const ADDRESS: usize = 8;

/// The other end of a veth (`VETH_INFO_PEER`).
const PEER: u16 = 1;

/// How a link gets its IPv6 address, and that it gets none (`IFLA_INET6_ADDR_GEN_MODE`).
const ADDRESS_MODE: u16 = 8;
const NO_ADDRESS: u8 = 1;

const UP: u32 = libc::IFF_UP as u32;

/// A socket of one family.
#[derive(Debug)]
pub struct Exchange {
    socket: Socket,
    sequence: AtomicU32,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// The kernel refused, and may have said why; or the socket failed.
    Refused(io::Error, Option<String>),
    /// The answer makes no sense.
    Malformed(Malformed),
}

impl From<io::Error> for Failure {
    fn from(cause: io::Error) -> Self {
        Self::Refused(cause, None)
    }
}

impl From<Malformed> for Failure {
    fn from(cause: Malformed) -> Self {
        Self::Malformed(cause)
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(cause, _) => cause,
            Failure::Malformed(cause) => Self::new(io::ErrorKind::InvalidData, cause),
        }
    }
}

impl Exchange {
    /// Opens a socket in the network of this thread.
    pub fn open(protocol: isize) -> io::Result<Self> {
        let socket = Socket::new(protocol)?;
        // Sentences from before Linux 4.12 are missed, and that is all.
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        Ok(Self { socket, sequence: AtomicU32::new(1) })
    }

    /// Sends a request; the answers up to its acknowledgement.
    pub fn ask(&self, kind: u16, flags: u16, payload: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        self.socket.send(&message::write(kind, sequence, flags, payload), 0)?;
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            for message in message::read(&datagram, sequence)? {
                match message {
                    Message::Answer(bytes) => answers.push(bytes.to_vec()),
                    Message::End { code: 0, .. } => return Ok(answers),
                    Message::End { code, said } => {
                        return Err(Failure::Refused(io::Error::from_raw_os_error(code), said));
                    }
                }
            }
        }
    }
}

/// Why a request about a link failed.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// There is no socket to speak through.
    #[error("open an rtnetlink socket: {0}; check the limit on open files: ulimit -n")]
    Open(#[source] io::Error),
    /// The kernel refused to tell which links there are, or its answer could not be read.
    #[error("list the links: {0}; look at them with: ip link")]
    List(#[source] io::Error),
    /// The kernel refused a request, or its answer could not be read.
    #[error("{action} link {link}: {cause}; look at it with: ip address show dev {link}")]
    Request {
        /// What was asked for, as a verb.
        action: &'static str,
        /// The name of the link.
        link: String,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
}

impl NetlinkError {
    /// Whether the kernel has no IPv6, or has it switched off for this link.
    pub fn is_no_ipv6(&self) -> bool {
        let Self::Request { cause, .. } = self else { return false };
        // Not built in or not loaded; switched off at boot; switched off for the interface.
        [libc::EAFNOSUPPORT, libc::EOPNOTSUPP, libc::EACCES]
            .map(Some)
            .contains(&cause.raw_os_error())
    }
}

/// A link as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceState {
    /// Its number in its namespace.
    pub index: u32,
    /// The largest packet it carries, without the Ethernet header, in bytes.
    pub mtu: u32,
    /// Its Ethernet address; empty for a link without one.
    pub mac: Vec<u8>,
    /// Whether it is administratively up.
    pub is_up: bool,
    /// How many packets wait in front of it before it drops.
    pub tx_queue_len: u32,
    /// What it has carried so far.
    pub stats: LinkStats,
}

/// What to change about a link; `None` leaves a value as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// Its Ethernet address.
    pub mac: Option<[u8; 6]>,
    /// The largest packet it carries, without the Ethernet header, in bytes.
    pub mtu: Option<u32>,
    /// How many packets may wait in front of it.
    pub tx_queue_len: Option<u32>,
}

/// An rtnetlink socket in one network namespace.
#[derive(Debug)]
pub struct Netlink(Exchange);

impl Netlink {
    /// Opens a socket in the network namespace of this thread.
    pub fn open() -> Result<Self, NetlinkError> {
        Exchange::open(NETLINK_ROUTE).map(Self).map_err(NetlinkError::Open)
    }

    /// Reads everything this module knows about a link.
    pub fn link(&self, name: &str) -> Result<InterfaceState, NetlinkError> {
        self.read(&about(IFLA_IFNAME, name), name, InterfaceState::read)
    }

    /// The name of the link that has `any` as its name, or as an alternative one (Linux 5.5).
    pub fn name(&self, any: &str) -> Result<String, NetlinkError> {
        self.read(&about(IFLA_ALT_IFNAME, any), any, |link| {
            Ok(text_of(link, IFLA_IFNAME).unwrap_or_default())
        })
    }

    fn read<T>(
        &self,
        about: &Writer,
        name: &str,
        read: impl Fn(&[u8]) -> Result<T, Malformed>,
    ) -> Result<T, NetlinkError> {
        let answers = self.0.ask(RTM_GETLINK, 0, &link(0, 0, 0, about));
        let found = answers.and_then(|answers| match answers.first() {
            Some(link) => Ok(read(link)?),
            None => Err(io::Error::from(io::ErrorKind::NotFound).into()),
        });
        found.map_err(|failure| failed("read", name, failure))
    }

    /// The names of the Ethernet interfaces that are up, in alphabetical order.
    ///
    /// The kernel is asked, not `/sys`: that shows the network in which it was mounted, which in
    /// containers is often another one.
    pub fn ethernet_up(&self) -> Result<Vec<String>, NetlinkError> {
        let answers = self.0.ask(RTM_GETLINK, DUMP, &link(0, 0, 0, &Writer::default()));
        let answers = answers.map_err(|failure| NetlinkError::List(failure.into()))?;
        let is_ethernet_up = |link: &&Vec<u8>| {
            link.get(2..4) == Some(&libc::ARPHRD_ETHER.to_ne_bytes()) && word(link, 8) & UP != 0
        };
        let up = answers.iter().filter(is_ethernet_up);
        let mut names: Vec<_> = up.filter_map(|link| text_of(link, IFLA_IFNAME)).collect();
        names.sort();
        Ok(names)
    }

    /// The first IPv4 address of a link, if it has one.
    pub fn ipv4(&self, name: &str) -> Result<Option<Ipv4Addr>, NetlinkError> {
        let index = self.link(name)?.index;
        let request = [libc::AF_INET as u8, 0, 0, 0, 0, 0, 0, 0];
        let answers = self.0.ask(RTM_GETADDR, DUMP, &request);
        let answers = answers.map_err(|failure| failed("read the addresses of", name, failure))?;
        // The kernel tells those of all links.
        let own = answers.iter().filter(|address| word(address, 4) == index);
        let local = |address: &Vec<u8>| {
            let mut attributes = Tlvs::new(address.get(ADDRESS..)?).flatten();
            let local = attributes.find(|attribute| attribute.kind == IFA_LOCAL)?;
            <[u8; 4]>::try_from(local.value).ok().map(Ipv4Addr::from)
        };
        Ok(own.filter_map(local).next())
    }

    /// Changes the address, the MTU or the queue length of a link.
    pub fn configure(&self, name: &str, settings: &LinkSettings) -> Result<(), NetlinkError> {
        let mut message = about(IFLA_IFNAME, name);
        settings.mac.map(|mac| message.put(IFLA_ADDRESS, &mac));
        settings.mtu.map(|mtu| message.put_u32(IFLA_MTU, mtu));
        settings.tx_queue_len.map(|length| message.put_u32(IFLA_TXQLEN, length));
        self.change("configure", name, RTM_SETLINK, 0, &link(0, 0, 0, &message))
    }

    /// Gives a link that is down another name.
    pub fn rename(&self, name: &str, to: &str) -> Result<(), NetlinkError> {
        let message = link(self.link(name)?.index, 0, 0, &about(IFLA_IFNAME, to));
        self.change("rename", name, RTM_SETLINK, 0, &message)
    }

    /// Keeps IPv6 from speaking on a link by itself; call it before the link comes up.
    ///
    /// Without a link-local address there is nothing to probe for duplicates and no router to
    /// solicit. A kernel without IPv6 is silent already.
    pub fn silence_ipv6(&self, name: &str) -> Result<(), NetlinkError> {
        let mut message = about(IFLA_IFNAME, name);
        message.nest(IFLA_AF_SPEC, |families| {
            families.nest(libc::AF_INET6 as u16, |ipv6| {
                ipv6.put_u8(ADDRESS_MODE, NO_ADDRESS);
            });
        });
        let message = link(0, 0, 0, &message);
        match self.change("silence IPv6 on", name, RTM_SETLINK, 0, &message) {
            Err(error) if error.is_no_ipv6() => Ok(()),
            outcome => outcome,
        }
    }

    /// Makes a pair of links: what goes into one comes out of the other.
    pub fn add_veth(&self, name: &str, peer: &str) -> Result<(), NetlinkError> {
        let mut message = about(IFLA_IFNAME, name);
        message.nest(IFLA_LINKINFO, |info| {
            info.put_text(IFLA_INFO_KIND, "veth").nest(IFLA_INFO_DATA, |data| {
                data.put(PEER, &link(0, 0, 0, &about(IFLA_IFNAME, peer)));
            });
        });
        self.change("create", name, RTM_NEWLINK, CREATE, &link(0, 0, 0, &message))
    }

    /// Brings a link up.
    pub fn up(&self, name: &str) -> Result<(), NetlinkError> {
        let message = link(0, UP, UP, &about(IFLA_IFNAME, name));
        self.change("bring up", name, RTM_SETLINK, 0, &message)
    }

    /// Takes a link down.
    pub fn down(&self, name: &str) -> Result<(), NetlinkError> {
        let message = link(0, 0, UP, &about(IFLA_IFNAME, name));
        self.change("take down", name, RTM_SETLINK, 0, &message)
    }

    /// Gives a link an address that is usable at once: IPv6 does not look for a duplicate first.
    ///
    /// # Errors
    ///
    /// If there is no such link, the link has the address already, or the kernel has no IPv6
    /// (see [`NetlinkError::is_no_ipv6`]).
    pub fn add_address(&self, name: &str, ip: IpAddr, prefix: u8) -> Result<(), NetlinkError> {
        let (family, flags, bytes) = match ip {
            IpAddr::V4(ip) => (libc::AF_INET, 0, ip.octets().to_vec()),
            IpAddr::V6(ip) => (libc::AF_INET6, libc::IFA_F_NODAD as u8, ip.octets().to_vec()),
        };
        let mut message = vec![family as u8, prefix, flags, 0];
        message.extend(self.link(name)?.index.to_ne_bytes());
        let mut addresses = Writer::default();
        message.extend(addresses.put(IFA_LOCAL, &bytes).put(IFA_ADDRESS, &bytes).bytes());
        self.change("add an address to", name, RTM_NEWADDR, CREATE, &message)
    }

    fn change(
        &self,
        action: &'static str,
        name: &str,
        kind: u16,
        flags: u16,
        message: &[u8],
    ) -> Result<(), NetlinkError> {
        let outcome = self.0.ask(kind, flags, message);
        outcome.map(drop).map_err(|failure| failed(action, name, failure))
    }
}

fn failed(action: &'static str, link: &str, failure: Failure) -> NetlinkError {
    NetlinkError::Request { action, link: link.to_owned(), cause: failure.into() }
}

/// A name of a link. The kernel refuses long ones, whatever follows.
fn about(kind: u16, name: &str) -> Writer {
    let mut message = Writer::default();
    message.put(kind, &[&name.as_bytes()[..name.len().min(200)], b"\0"].concat());
    message
}

/// A message about a link: its number or 0, its flags, those of them that count, and attributes.
fn link(index: u32, flags: u32, mask: u32, attributes: &Writer) -> Vec<u8> {
    let words = [0, index, flags, mask].map(u32::to_ne_bytes);
    [words.as_flattened(), attributes.bytes()].concat()
}

fn text_of(link: &[u8], kind: u16) -> Option<String> {
    let mut attributes = Tlvs::new(link.get(LINK..)?).flatten();
    attributes.find(|attribute| attribute.kind == kind).map(|attribute| attribute.text())
}

/// 0 where there is none.
fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
    word.map_or(0, u32::from_ne_bytes)
}

impl InterfaceState {
    fn read(link: &[u8]) -> Result<Self, Malformed> {
        let (index, is_up) = (word(link, 4), word(link, 8) & UP != 0);
        let mut state = Self { index, is_up, ..Self::default() };
        for attribute in Tlvs::new(link.get(LINK..).unwrap_or_default()) {
            let attribute = attribute?;
            match attribute.kind {
                IFLA_MTU => state.mtu = attribute.word()?,
                IFLA_ADDRESS => state.mac = attribute.value.to_vec(),
                IFLA_TXQLEN => state.tx_queue_len = attribute.word()?,
                IFLA_STATS64 => state.stats = LinkStats::read(attribute.value),
                _ => {}
            }
        }
        Ok(state)
    }
}
