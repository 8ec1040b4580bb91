//! Blocking rtnetlink: what `ip link` and `ip address` do, for one link at a time.
//!
//! A [`Netlink`] belongs to the network namespace of the thread that opened it, so it is opened
//! inside `Host::enter_net` of the crate `lab` and works on that host ever after.
//!
//! Every request asks for an acknowledgement. The kernel answers in order: first the messages asked
//! for, if any, then the acknowledgement, or an error instead. Where it tells of everything that
//! there is, a message that this is all stands for the acknowledgement.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute,
    LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, protocols::NETLINK_ROUTE};

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
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// What a link has carried, as seen by the host it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets that were received.
    pub rx_packets: u64,
    /// Bytes that were received.
    pub rx_bytes: u64,
    /// Packets received and dropped.
    pub rx_dropped: u64,
    /// Packets that the device dropped since the host had no room for them.
    pub rx_missed: u64,
    /// Packets that were sent.
    pub tx_packets: u64,
    /// Bytes that were sent.
    pub tx_bytes: u64,
    /// Packets dropped instead of sent.
    pub tx_dropped: u64,
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
pub struct Netlink {
    socket: Socket,
}

impl Netlink {
    /// Opens a socket in the network namespace of this thread.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self { socket: Socket::new(NETLINK_ROUTE).map_err(NetlinkError::Open)? })
    }

    /// Reads everything this module knows about a link.
    pub fn link(&self, name: &str) -> Result<InterfaceState, NetlinkError> {
        let fail = |cause| NetlinkError::Request { action: "read", link: name.to_owned(), cause };
        let request = RouteNetlinkMessage::GetLink(about(name));
        for answer in self.ask(request, 0).map_err(fail)? {
            if let RouteNetlinkMessage::NewLink(message) = answer {
                return Ok(InterfaceState::from(&message));
            }
        }
        Err(fail(io::ErrorKind::NotFound.into()))
    }

    /// The names of the Ethernet interfaces that are up, in alphabetical order.
    ///
    /// The kernel is asked, not `/sys`: that shows the network in which it was mounted, which in
    /// containers is often another one.
    pub fn ethernet_up(&self) -> Result<Vec<String>, NetlinkError> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let answers = self.ask(request, NLM_F_DUMP).map_err(NetlinkError::List)?;
        let is_ethernet_up = |message: &LinkMessage| {
            let header = &message.header;
            header.link_layer_type == LinkLayerType::Ether && header.flags.contains(LinkFlags::Up)
        };
        let mut names: Vec<_> = answers
            .into_iter()
            .filter_map(|answer| match answer {
                RouteNetlinkMessage::NewLink(message) if is_ethernet_up(&message) => {
                    message.attributes.into_iter().find_map(name)
                }
                _ => None,
            })
            .collect();
        names.sort();
        Ok(names)
    }

    /// The first IPv4 address of a link, if it has one.
    pub fn ipv4(&self, name: &str) -> Result<Option<Ipv4Addr>, NetlinkError> {
        let index = self.link(name)?.index;
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        let action = "read the addresses of";
        let fail = |cause| NetlinkError::Request { action, link: name.to_owned(), cause };
        let request = RouteNetlinkMessage::GetAddress(message);
        // The kernel tells those of all links.
        for answer in self.ask(request, NLM_F_DUMP).map_err(fail)? {
            if let RouteNetlinkMessage::NewAddress(message) = answer
                && message.header.index == index
                && let Some(ip) = message.attributes.iter().find_map(local_ipv4)
            {
                return Ok(Some(ip));
            }
        }
        Ok(None)
    }

    /// Changes the address, the MTU or the queue length of a link.
    pub fn configure(&self, name: &str, settings: &LinkSettings) -> Result<(), NetlinkError> {
        let mut message = about(name);
        message.attributes.extend(settings.mac.map(|mac| LinkAttribute::Address(mac.to_vec())));
        message.attributes.extend(settings.mtu.map(LinkAttribute::Mtu));
        message.attributes.extend(settings.tx_queue_len.map(LinkAttribute::TxQueueLen));
        self.change("configure", name, RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a link that is down another name.
    pub fn rename(&self, name: &str, to: &str) -> Result<(), NetlinkError> {
        let mut message = about(to);
        message.header.index = self.link(name)?.index;
        self.change("rename", name, RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Keeps IPv6 from speaking on a link by itself; call it before the link comes up.
    ///
    /// Without a link-local address there is nothing to probe for duplicates and no router to
    /// solicit. A kernel without IPv6 is silent already.
    pub fn silence_ipv6(&self, name: &str) -> Result<(), NetlinkError> {
        let none = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        let mut message = about(name);
        message.attributes.push(LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(vec![none])]));
        match self.change("silence IPv6 on", name, RouteNetlinkMessage::SetLink(message), 0) {
            Err(error) if error.is_no_ipv6() => Ok(()),
            outcome => outcome,
        }
    }

    /// Makes a pair of links: what goes into one comes out of the other.
    pub fn add_veth(&self, name: &str, peer: &str) -> Result<(), NetlinkError> {
        let mut message = about(name);
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(about(peer)))),
        ]));
        let request = RouteNetlinkMessage::NewLink(message);
        self.change("create", name, request, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Brings a link up.
    pub fn up(&self, name: &str) -> Result<(), NetlinkError> {
        let mut message = about(name);
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.change("bring up", name, RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Takes a link down.
    pub fn down(&self, name: &str) -> Result<(), NetlinkError> {
        let mut message = about(name);
        message.header.change_mask = LinkFlags::Up;
        self.change("take down", name, RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives a link an address that is usable at once: IPv6 does not look for a duplicate first.
    ///
    /// # Errors
    ///
    /// If there is no such link, the link has the address already, or the kernel has no IPv6
    /// (see [`NetlinkError::is_no_ipv6`]).
    pub fn add_address(&self, name: &str, ip: IpAddr, prefix: u8) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.family =
            if ip.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        message.header.prefix_len = prefix;
        message.header.index = self.link(name)?.index;
        if ip.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        message.attributes = vec![AddressAttribute::Local(ip), AddressAttribute::Address(ip)];
        let request = RouteNetlinkMessage::NewAddress(message);
        self.change("add an address to", name, request, NLM_F_CREATE | NLM_F_EXCL)
    }

    fn change(
        &self,
        action: &'static str,
        link: &str,
        request: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<(), NetlinkError> {
        self.ask(request, flags).map(drop).map_err(|cause| NetlinkError::Request {
            action,
            link: link.to_owned(),
            cause,
        })
    }

    fn ask(
        &self,
        request: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut message = NetlinkMessage::new(header, request.into());
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;

        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            let mut rest = &datagram[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                // Messages are padded to four bytes, except for the last one of a datagram.
                let length = (message.header.length as usize).next_multiple_of(4);
                rest = &rest[length.min(rest.len())..];
                match message.payload {
                    NetlinkPayload::InnerMessage(answer) => answers.push(answer),
                    NetlinkPayload::Error(error) if error.code.is_some() => {
                        return Err(error.to_io());
                    }
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(answers),
                    _ => {}
                }
            }
        }
    }
}

fn about(name: &str) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(name.to_owned()));
    message
}

fn name(attribute: LinkAttribute) -> Option<String> {
    match attribute {
        LinkAttribute::IfName(name) => Some(name),
        _ => None,
    }
}

fn local_ipv4(attribute: &AddressAttribute) -> Option<Ipv4Addr> {
    match attribute {
        AddressAttribute::Local(IpAddr::V4(ip)) => Some(*ip),
        _ => None,
    }
}

impl From<&LinkMessage> for InterfaceState {
    fn from(message: &LinkMessage) -> Self {
        let mut link = Self {
            index: message.header.index,
            mtu: 0,
            mac: Vec::new(),
            is_up: message.header.flags.contains(LinkFlags::Up),
            tx_queue_len: 0,
            stats: LinkStats::default(),
        };
        for attribute in &message.attributes {
            match attribute {
                LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
                LinkAttribute::Address(mac) => link.mac.clone_from(mac),
                LinkAttribute::TxQueueLen(length) => link.tx_queue_len = *length,
                LinkAttribute::Stats64(stats) => {
                    link.stats = LinkStats {
                        rx_packets: stats.rx_packets,
                        rx_bytes: stats.rx_bytes,
                        rx_dropped: stats.rx_dropped,
                        rx_missed: stats.rx_missed_errors,
                        tx_packets: stats.tx_packets,
                        tx_bytes: stats.tx_bytes,
                        tx_dropped: stats.tx_dropped,
                    };
                }
                _ => {}
            }
        }
        link
    }
}
