//! The kind of a destination address.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    Unicast,
    Multicast,
    Broadcast,
}

pub(crate) fn address(frame: &[u8]) -> Cast {
    match frame.first_chunk::<6>() {
        Some([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) => Cast::Broadcast,
        Some([first, ..]) if first & 1 != 0 => Cast::Multicast,
        _ => Cast::Unicast,
    }
}
