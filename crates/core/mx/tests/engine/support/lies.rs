//! Frames that no honest peer sends, for tests of what they do.

use base::prng::Prng;
use mx::seq::Seq;
use mx::wire::{self, Body, Connect, ConnectStatus, HEAD, Header, Nack, NackReason, Notify, Pull};

/// What every byte of a liar's messages is; honest ones know better.
pub(crate) const POISON: u8 = 0xa5;

pub(crate) fn frame(header: Header, body: &Body<'_>) -> Vec<u8> {
    let mut out = vec![0; 9216];
    let length = wire::write(&header, body, &mut out);
    out.truncate(length);
    out
}

/// The header of a liar that knows this much; the caller fills in source and destination.
pub(crate) fn header(token: u32, seq: u32, ack: u32) -> Header {
    Header {
        marked: true,
        crc: true,
        ask: true,
        to: 1,
        token,
        seq: Seq(seq),
        ack: Seq(ack),
        credit: u32::MAX,
        window: u16::MAX,
        ..Header::default()
    }
}

/// A body of any kind, with numbers that are small or near the ends.
pub(crate) fn any_body<'a>(random: &mut Prng, data: &'a [u8]) -> Body<'a> {
    let mut number = || match random.below(4) {
        0 => random.below(4),
        1 => u64::MAX - random.below(4),
        2 => u64::from(u32::MAX) - random.below(4),
        _ => random.next_u64() >> (random.next_u64() % 64),
    };
    let (a, b, c, d) = (number() as u32, number() as u32, number(), number());
    let data = &data[..(d % (data.len() as u64 + 1)) as usize];
    match a % 11 {
        0 => Body::Ack(&data[..data.len().min(32)]),
        1 => Body::Connect(Connect {
            instance: c,
            token: b,
            key: 0,
            version: wire::VERSION,
            mtu: d as u16,
            status: ConnectStatus::Request,
            crc: false,
        }),
        2 => Body::Small(c, data),
        3 => Body::Medium { match_info: c, total: b, offset: d as u32, data },
        4 => {
            let head = &data[..data.len().min(HEAD)];
            Body::Rendezvous { match_info: c, total: d, region: b, head }
        }
        5 => {
            let (wanted, payload) = (d as u32, if d % 2 == 0 { 1464 } else { 32 << 10 });
            Body::Pull(Pull { region: b, pull: a, offset: c, wanted, first: b, payload })
        }
        6 => Body::Reply { pull: b, index: d as u32, data },
        7 => Body::Notify(Notify { region: b, delivered: c }),
        8 => Body::Nack(Nack { token: b, reason: NackReason::BadToken }),
        9 => Body::Probe,
        _ => Body::Close,
    }
}
