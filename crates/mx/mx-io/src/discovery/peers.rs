//! The file of names that need no question.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use mx::address::{Address, NicId};

use super::DiscoveredEndpoint;
use super::frame::is_name;
use crate::port::udp;
use sys::files::read_text;

const LARGEST: u64 = 1 << 20;

/// An endpoint as users write it: `alpha/3`, `02:00:00:00:00:01/3` or `10.9.0.1:9000/3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The address of an endpoint.
    Address(Address),
    /// An endpoint of a host.
    Named {
        /// The name of the host.
        host: String,
        /// The number of the endpoint.
        endpoint: u8,
    },
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = "use HOST/ENDPOINT, such as alpha/3";
        let (host, number) = text
            .rsplit_once('/')
            .ok_or_else(|| format!("`{text}` does not say which endpoint; {usage}"))?;
        let endpoint = number
            .parse()
            .map_err(|_| format!("`{text}`: endpoint `{number}` is not 0 to 255; {usage}"))?;
        if let Some(nic) = parse_nic(host) {
            return Ok(Self::Address(Address { nic, endpoint }));
        }
        if !is_name(host) {
            return Err(format!("`{text}`: `{host}` is neither an address nor a name; {usage}"));
        }
        Ok(Self::Named { host: host.to_owned(), endpoint })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Named { host, endpoint } => write!(f, "{host}/{endpoint}"),
        }
    }
}

impl Target {
    /// Its address, if it says so itself or is in the file.
    #[must_use]
    pub fn known(&self, peers: &Peers) -> Option<Address> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Named { host, endpoint } => peers.address(host, *endpoint),
        }
    }

    /// Its address, among those who have answered: the lowest one of this endpoint. If none of them
    /// is this endpoint, it is one that did not answer, on the lowest NIC of the host.
    #[must_use]
    pub fn among(&self, found: &[DiscoveredEndpoint]) -> Option<Address> {
        let Self::Named { host, endpoint } = self else { return self.known(&Peers::default()) };
        let addresses = || found.iter().filter(|it| it.host == *host).map(|it| it.address);
        let exact = addresses().filter(|address| address.endpoint == *endpoint).min();
        exact.or_else(|| addresses().min().map(|it| Address { endpoint: *endpoint, ..it }))
    }
}

/// Hosts that are known by name, from a file with one of them in each line:
///
/// ```text
/// # address            name
/// 02:00:00:00:00:01    alpha
/// 10.9.0.2:9000        beta/3    # over UDP, each endpoint has an address of its own
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peers(BTreeMap<(String, Option<u8>), (NicId, usize)>);

/// What is wrong with such a file.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// It cannot be read.
    #[error("read the peers file {path}: {cause}; name another, or none")]
    Read {
        /// The path of the peers file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A line makes no sense.
    #[error("{path} line {line}: {what}; write an address and a name: 02:00:00:00:00:01 alpha")]
    Line {
        /// The path of the peers file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

impl Peers {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is larger than a MiB, or a line makes no sense.
    pub fn read(path: &Path) -> Result<Self, PeersError> {
        let fail = |cause| PeersError::Read { path: path.to_owned(), cause };
        let text = read_text(path, LARGEST).map_err(fail)?;
        Self::parse(&text).map_err(|(line, what)| {
            let path = path.to_owned();
            PeersError::Line { path, line, what }
        })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// The number of a line that makes no sense, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut peers = Self::default();
        for (line, text) in (1..).zip(text.lines()) {
            let words: Vec<_> =
                text.split('#').next().unwrap_or_default().split_whitespace().collect();
            let added = match *words {
                [] => Ok(()),
                [address, name] => peers.add(line, address, name),
                _ => Err(format!("{} words", words.len())),
            };
            added.map_err(|what| (line, what))?;
        }
        Ok(peers)
    }

    fn add(&mut self, line: usize, address: &str, name: &str) -> Result<(), String> {
        let nic = parse_nic(address)
            .ok_or_else(|| format!("`{address}` is neither a MAC address nor IP:PORT"))?;
        let (host, endpoint) = match name.rsplit_once('/') {
            None => (name, None),
            Some((host, number)) => match number.parse() {
                Ok(number) => (host, Some(number)),
                Err(_) => return Err(format!("endpoint `{number}` is not 0 to 255")),
            },
        };
        if !is_name(host) {
            return Err(format!("`{host}` is no name of a host"));
        }
        match self.0.insert((host.to_owned(), endpoint), (nic, line)) {
            None => Ok(()),
            Some((_, earlier)) => Err(format!("`{name}` is in line {earlier} already")),
        }
    }

    /// The address of an endpoint of a host, if it is known.
    #[must_use]
    pub fn address(&self, host: &str, endpoint: u8) -> Option<Address> {
        let find = |endpoint| self.0.get(&(host.to_owned(), endpoint));
        let (nic, _) = find(Some(endpoint)).or_else(|| find(None))?;
        Some(Address { nic: *nic, endpoint })
    }
}

/// An address of an interface: six bytes in hexadecimal, or an IPv4 address and a port.
fn parse_nic(text: &str) -> Option<NicId> {
    if let Ok(address) = text.parse::<SocketAddrV4>() {
        return Some(udp::nic_id(address));
    }
    let mut bytes = [0; 6];
    let mut words = text.split(':');
    for byte in &mut bytes {
        let word = words.next().filter(|word| (1..=2).contains(&word.len()))?;
        let is_number = word.bytes().all(|digit| digit.is_ascii_hexdigit());
        *byte = is_number.then(|| u8::from_str_radix(word, 16).ok()).flatten()?;
    }
    words.next().is_none().then_some(NicId(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALPHA: NicId = NicId([2, 0, 0, 0, 0, 0x1f]);

    #[test]
    fn file_is_read() {
        let text = "# hosts\n\n02:00:00:00:00:1F alpha # one\n  10.9.0.2:9000\tbeta/3\r\n";
        let peers = Peers::parse(text).unwrap();
        let alpha = |endpoint| Some(Address { nic: ALPHA, endpoint });
        assert_eq!((peers.address("alpha", 0), peers.address("alpha", 9)), (alpha(0), alpha(9)));
        let beta = Address { nic: NicId([10, 9, 0, 2, 0x23, 0x28]), endpoint: 3 };
        assert_eq!((peers.address("beta", 3), peers.address("beta", 4)), (Some(beta), None));
        assert_eq!(peers.address("gamma", 3), None);
    }

    #[test]
    fn errors_say_the_line() {
        for (text, line, expected) in [
            ("x alpha", 1, "`x` is neither"),
            ("\n02:00:00:00:00 alpha", 2, "neither"),
            ("02:00:00:00:00:01:02 alpha", 1, "neither"),
            ("02:00:00:00:00:+1 alpha", 1, "neither"),
            ("02:00:00:00:00:01", 1, "1 words"),
            ("02:00:00:00:00:01 a b", 1, "3 words"),
            ("02:00:00:00:00:01 a/256", 1, "not 0 to 255"),
            ("02:00:00:00:00:01 sp@ce", 1, "no name"),
            ("02:00:00:00:00:01 a\n#\n02:00:00:00:00:02 a", 3, "`a` is in line 1 already"),
        ] {
            let (number, what) = Peers::parse(text).unwrap_err();
            assert!(number == line && what.contains(expected), "{text:?}: {number}: {what}");
        }
        let error = Peers::read(Path::new("/nowhere/peers")).unwrap_err().to_string();
        assert!(error.starts_with("read the peers file /nowhere/peers: "), "{error}");
        let error = Peers::read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("/dev/zero: it is a device or a pipe"), "{error}");
    }

    #[test]
    fn targets_are_read_and_written() {
        for text in ["alpha/3", "02:00:00:00:00:1f/200", "a.b-c_d/0"] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        let address = Address { nic: NicId([10, 9, 0, 1, 0x23, 0x28]), endpoint: 1 };
        assert_eq!("10.9.0.1:9000/1".parse(), Ok(Target::Address(address)));
        for bad in ["alpha", "alpha/", "alpha/256", "/3", "a b/3"] {
            assert!(bad.parse::<Target>().is_err(), "{bad}");
        }
    }

    #[test]
    fn endpoint_that_answered_is_preferred() {
        let found = |nic, host: &str, endpoint| DiscoveredEndpoint {
            host: host.to_owned(),
            address: Address { nic: NicId([nic; 6]), endpoint },
            version: 1,
        };
        let all = [found(2, "a", 1), found(4, "a", 3), found(6, "a", 3), found(0, "b", 3)];
        let among = |text: &str| text.parse::<Target>().unwrap().among(&all);
        let address = |nic, endpoint| Some(Address { nic: NicId([nic; 6]), endpoint });
        assert_eq!(
            (among("a/3"), among("a/9"), among("c/3")),
            (address(4, 3), address(2, 9), None)
        );
    }
}
