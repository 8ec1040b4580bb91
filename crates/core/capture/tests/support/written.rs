//! Captures of any format and order of bytes, for tests.

/// Bytes of numbers in one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    fn word(self, number: u32) -> [u8; 4] {
        if self == Self::Little { number.to_le_bytes() } else { number.to_be_bytes() }
    }

    fn half(self, number: u16) -> [u8; 2] {
        if self == Self::Little { number.to_le_bytes() } else { number.to_be_bytes() }
    }
}

/// A packet: units of its stamp since 1970, its bytes, how long it was.
pub(crate) type Written<'a> = (u64, &'a [u8], u32);

/// A capture in the format of libpcap.
pub(crate) fn pcap(order: Order, nanos: bool, link: u32, packets: &[Written<'_>]) -> Vec<u8> {
    let magic = if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut bytes = order.word(magic).to_vec();
    bytes.extend([order.half(2), order.half(4)].concat());
    [0, 0, 262_144, link].into_iter().for_each(|number| bytes.extend(order.word(number)));
    for (units, data, length) in packets {
        let per_second = if nanos { 1_000_000_000 } else { 1_000_000 };
        let (seconds, part) = (units / per_second, units % per_second);
        for number in [seconds as u32, part as u32, data.len() as u32, *length] {
            bytes.extend(order.word(number));
        }
        bytes.extend(*data);
    }
    bytes
}

/// A block of pcapng.
pub(crate) fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let length = order.word(padded as u32 + 12);
    let mut bytes = [order.word(kind), length].concat();
    bytes.extend(body);
    bytes.resize(8 + padded, 0);
    bytes.extend(length);
    bytes
}

fn options(order: Order, options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (code, value) in options.iter().chain([&(0, &[][..])]) {
        bytes.extend([order.half(*code), order.half(value.len() as u16)].concat());
        bytes.extend(*value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

/// The section header of a pcapng capture.
pub(crate) fn section(order: Order) -> Vec<u8> {
    let mut body = order.word(0x1a2b_3c4d).to_vec();
    body.extend([order.half(1), order.half(0)].concat());
    body.extend([0xff; 8]);
    block(order, 0x0a0d_0d0a, &body)
}

/// An interface of a name, whose stamps count in steps of 10 to the power of minus `digits`.
pub(crate) fn interface(order: Order, link: u16, name: &str, digits: u8) -> Vec<u8> {
    let mut body = [order.half(link), order.half(0)].concat();
    body.extend(order.word(0));
    body.extend(options(order, &[(2, name.as_bytes()), (9, &[digits])]));
    block(order, 1, &body)
}

/// An enhanced packet block, with flags and a comment.
pub(crate) fn enhanced(
    order: Order,
    interface: u32,
    (units, data, length): Written<'_>,
    (flags, comment): (u32, &str),
) -> Vec<u8> {
    let numbers = [interface, (units >> 32) as u32, units as u32, data.len() as u32, length];
    let mut body: Vec<u8> = numbers.into_iter().flat_map(|number| order.word(number)).collect();
    body.extend(data);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(options(order, &[(2, &order.word(flags)), (1, comment.as_bytes())]));
    block(order, 6, &body)
}

/// An Ethernet frame of IPv4 and UDP, `length` bytes long, from one host to another and to a port.
pub(crate) fn udp(from: u8, to: u8, port: u16, length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, from, 8, 0, 0x45, 0];
    frame.extend(((length - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, to]);
    frame.extend([40_000_u16.to_be_bytes(), port.to_be_bytes()].concat());
    frame.resize(length, 0);
    frame
}
