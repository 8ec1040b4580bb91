//! Which socket a descriptor of a traced program is, for people: from `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The state of a TCP socket that accepts connections (`TCP_LISTEN`).
const LISTENS: &str = "0A";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Such as `TCP 10.9.0.1:41000 -> 10.9.0.2:7`.
    pub(crate) name: String,
    /// It answers requests: connections to its port are accepted here, or it has no peer.
    pub(crate) answers: bool,
}

/// Sockets by their addresses in the kernel, as far as they were looked up in time.
#[derive(Default)]
pub(crate) struct Names {
    known: BTreeMap<u64, Known>,
    tables: Tables,
}

impl Names {
    /// The socket that thread `tid` has as `fd`, and that was seen to connect to `peer`.
    pub(crate) fn of(
        &mut self,
        socket: u64,
        (tid, fd): (u32, i32),
        peer: Option<SocketAddr>,
    ) -> &Known {
        let Self { known, tables } = self;
        known.entry(socket).or_insert_with(|| {
            if let Some(peer) = peer {
                return Known { name: asks(peer), answers: false };
            }
            tables.look_up(tid, fd).unwrap_or_else(|| Known {
                name: "sockets that were gone before they were looked up".into(),
                answers: false,
            })
        })
    }
}

fn asks(peer: SocketAddr) -> String {
    format!("TCP requests to {peer}")
}

/// Whether there is a network device of this name.
pub fn is_device(name: &str) -> bool {
    let list = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let listed = list.lines().filter_map(|line| line.split_once(':'));
    !name.contains('/')
        && (listed.into_iter().any(|(known, _)| known.trim() == name)
            || Path::new("/sys/class/net").join(name).exists())
}

/// The kernel's tables of sockets as they were last read, by inode. A table is as long as there are
/// sockets: to read it for each of a thousand would take longer than tracing may cost.
#[derive(Default)]
struct Tables(BTreeMap<String, Known>);

impl Tables {
    fn look_up(&mut self, tid: u32, fd: i32) -> Option<Known> {
        let link = fs::read_link(format!("/proc/{tid}/fd/{fd}")).ok()?;
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        if !self.0.contains_key(inode) {
            for protocol in ["tcp", "tcp6", "udp", "udp6"] {
                let table = fs::read_to_string(format!("/proc/{tid}/net/{protocol}"));
                self.0.extend(sockets(&table.unwrap_or_default(), protocol));
            }
        }
        self.0.get(inode).cloned()
    }
}

/// The sockets of a table such as `/proc/net/tcp`, by inode.
fn sockets(table: &str, protocol: &str) -> Vec<(String, Known)> {
    let rows = || table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let local = |row: &Vec<&str>| row.get(1).and_then(|text| address(text));
    let listens = |row: &Vec<&str>| row.get(3) == Some(&LISTENS);
    let listening: BTreeSet<u16> =
        rows().filter(listens).filter_map(|row| Some(local(&row)?.port())).collect();
    let udp = protocol.starts_with("udp");
    let kind = if udp { "UDP" } else { "TCP" };
    let known = |row: Vec<&str>| {
        let (local, remote) = (local(&row)?, address(row.get(2)?)?);
        let answers = if udp { remote.port() == 0 } else { listening.contains(&local.port()) };
        let name = if remote.port() == 0 {
            format!("{kind} at {local}")
        } else if answers {
            // Connections come and go; the port they come to stays.
            format!("{kind} requests from {} to port {}", remote.ip(), local.port())
        } else {
            format!("{kind} requests to {remote}")
        };
        Some(((*row.get(9)?).to_owned(), Known { name, answers }))
    };
    rows().filter_map(known).collect()
}

/// An address such as `0100007F:1F90`, words of four bytes as they lie in memory.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words = || {
        (0..address.len() / 8).map(|word| {
            let word = address.get(word * 8..word * 8 + 8)?;
            Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
        })
    };
    let bytes: Vec<u8> = words().collect::<Option<Vec<[u8; 4]>>>()?.concat();
    let ip = match bytes.len() {
        4 => IpAddr::from(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?)),
        16 => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
        \x20  0: 00000000:0007 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 11 1\n\
        \x20  1: 0100007F:0007 0100007F:C000 01 00000000:00000000 00:00000000 00000000 0 0 12 1\n\
        \x20  2: 0100007F:C000 0100007F:0007 01 00000000:00000000 00:00000000 00000000 0 0 13 1\n";

    #[test]
    fn clients_and_servers_are_distinguished_by_who_listens() {
        let table: BTreeMap<String, Known> = sockets(TCP, "tcp").into_iter().collect();
        let client = table["13"].clone();
        let name = "TCP requests to 127.0.0.1:7".to_owned();
        assert_eq!(client, Known { name, answers: false });
        let server = table["12"].clone();
        let name = "TCP requests from 127.0.0.1 to port 7".to_owned();
        assert_eq!(server, Known { name, answers: true });
        assert_eq!(table.get("99"), None);
    }

    #[test]
    fn addresses_are_read() {
        assert_eq!(address("0100007F:1F90"), Some("127.0.0.1:8080".parse().unwrap()));
        let six = address("B80D0120000000000000000001000000:0007");
        assert_eq!(six, Some("[2001:db8::1]:7".parse().unwrap()));
        for broken in ["", ":", "01:1", "0100007F", "0100007F:zz", "zz00007F:1", "01\u{e9}00007:1"]
        {
            assert_eq!(address(broken), None, "{broken}");
        }
    }
}
