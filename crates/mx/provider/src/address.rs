//! Addresses as libfabric passes them around: eight bytes, opaque to others.

use std::str::FromStr;

use mx::address::{Address, NicId};

/// Bytes of an address.
pub(crate) const LENGTH: usize = 8;

/// What the last byte of ours says, so that the address of another provider is recognised.
const KIND: u8 = 0x4d;

/// An address as bytes: the interface, the number of the endpoint, and what kind this is.
pub(crate) fn encode(address: Address) -> [u8; LENGTH] {
    let [a, b, c, d, e, f] = address.nic.0;
    [a, b, c, d, e, f, address.endpoint, KIND]
}

pub(crate) fn decode(bytes: [u8; LENGTH]) -> Option<Address> {
    let [a, b, c, d, e, f, endpoint, kind] = bytes;
    (kind == KIND).then_some(Address { nic: NicId([a, b, c, d, e, f]), endpoint })
}

pub(crate) fn parse(text: &str) -> Option<Address> {
    let (nic, endpoint) = text.split_once('/')?;
    let mut bytes = [0; 6];
    let mut parts = nic.split(':');
    for byte in &mut bytes {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    let endpoint = u8::from_str(endpoint).ok()?;
    parts.next().is_none().then_some(Address { nic: NicId(bytes), endpoint })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_way_to_bytes_and_text() {
        let address = Address { nic: NicId([2, 0, 0, 0, 0xab, 9]), endpoint: 254 };
        assert_eq!(decode(encode(address)), Some(address));
        assert_eq!(parse(&address.to_string()), Some(address));
        assert_eq!(decode([0; LENGTH]), None);
        for text in ["", "02:00:00:00:00:01", "02:00:00:00:00/1", "02:00:00:00:00:01:07/1", "a/b"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
