//! Whom a frame is for.

/// Whom a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unicast,
    Multicast,
    Broadcast,
}

/// Whom `frame` is for, by its first bytes.
pub(crate) fn address(frame: &[u8]) -> Kind {
    match frame.first_chunk::<6>() {
        Some([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]) => Kind::Broadcast,
        Some([first, ..]) if first & 1 != 0 => Kind::Multicast,
        _ => Kind::Unicast,
    }
}
