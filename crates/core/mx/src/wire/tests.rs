//! Frames to bytes and back.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

fn header() -> impl Strategy<Value = Header> {
    let flags = any::<(bool, bool, bool, bool)>();
    let numbers = any::<(u8, u8, u32, u32, u32, u32, u16)>();
    (flags, numbers).prop_map(
        |((marked, crc, full, ask), (to, from, token, seq, ack, credit, window))| Header {
            marked,
            crc,
            full,
            ask,
            to,
            from,
            token,
            seq: Seq(seq),
            ack: Seq(ack),
            credit,
            window,
        },
    )
}

fn body(kind: usize, a: u32, b: u32, c: u64, data: &[u8]) -> Body<'_> {
    match kind {
        0 => Body::Ack(&data[..data.len().min(BITMAP)]),
        1 => Body::Connect(Connect {
            instance: c,
            token: a,
            key: a ^ b,
            version: a as u16,
            mtu: b as u16,
            status: ConnectStatus::Accepted,
            crc: a & 1 == 0,
        }),
        2 => Body::Small(c, data),
        3 => Body::Medium { match_info: c, total: data.len() as u32 + a / 2, offset: a / 4, data },
        4 => Body::Rendezvous {
            match_info: c,
            total: c ^ 1,
            region: a,
            head: &data[..data.len().min(HEAD)],
        },
        5 => {
            let (wanted, first, payload) = (a ^ b, a | b, c as u16);
            Body::Pull(Pull { region: a, pull: b, offset: c, wanted, first, payload })
        }
        6 => Body::Reply { pull: a, index: b, data },
        7 => Body::Notify(Notify { region: a, delivered: c }),
        8 => Body::Nack(Nack { token: a, reason: NackReason::BadToken }),
        9 => Body::Probe,
        _ => Body::Close,
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        header in header(),
        (kind, a, b, c) in (0..11_usize, 0..=u32::MAX / 4, any::<u32>(), any::<u64>()),
        data in prop::collection::vec(any::<u8>(), 1..1400),
        padding in 0..40_usize,
    ) {
        let body = body(kind, a, b, c, &data);
        prop_assert_eq!(body.frame_type().index(), kind);
        let mut out = vec![0xA5; 1600];
        let length = write(&header, &body, &mut out);
        // Ethernet pads short frames.
        prop_assert_eq!(parse(&out[..length + padding]), Ok((header, body)));
        let body_bytes = usize::from(u16::from_be_bytes([out[22], out[23]]));
        let said = HEADER + body_bytes + if header.crc { CHECKSUM } else { 0 };
        let least = if body.frame_type().is_refused() { REFUSAL } else { 0 };
        prop_assert_eq!(length, said.max(least));
        for short in 0..said {
            prop_assert!(parse(&out[..short]).is_err());
        }
        prop_assert_eq!(out[1] & FLAG_MARK != 0, header.marked);
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn a_changed_bit_breaks_the_checksum(
        header in header(),
        data in prop::collection::vec(any::<u8>(), 0..100),
        place in any::<prop::sample::Index>(),
        bit in 0..8,
    ) {
        let mut out = vec![0; 200];
        let length = write(&Header { crc: true, ..header }, &Body::Small(1, &data), &mut out);
        let place = place.index(length);
        out[place] ^= 1_u8 << bit;
        // Without its flag the checksum is not looked at; a peer that wants it misses it then.
        prop_assume!(!(place == 1 && bit == 0));
        prop_assert!(parse(&out[..length]).is_err());
    }
}

/// A NIC looks at the mark and the endpoint, so the bytes of a frame never move.
#[test]
fn bytes_are_where_the_layout_says() {
    let header = Header {
        marked: true,
        crc: true,
        to: 7,
        from: 9,
        token: 0x0102_0304,
        seq: Seq(0x0506_0708),
        ack: Seq(0x090a_0b0c),
        credit: 0x0d0e_0f10,
        window: 0x1112,
        ..Header::default()
    };
    let mut out = [0; 64];
    let length = write(&header, &Body::Small(0x1314_1516_1718_191a, b"hi"), &mut out);
    let expected: Vec<u8> = [38, 0x81, 7, 9].into_iter().chain(1..=0x12).collect();
    assert_eq!(out[..22], expected);
    assert_eq!(out[22..24], [0, 10]);
    assert_eq!(out[24..34], *b"\x13\x14\x15\x16\x17\x18\x19\x1ahi");
    assert_eq!((length, overhead(FrameType::Small, true)), (38, 36));
    // "123456789" has the CRC32C that RFC 3720 and others give.
    assert_eq!(write::crc32c(b"123456789"), 0xe306_9283);
}

#[test]
fn pieces_beyond_their_message_are_malformed() {
    let header = Header::default();
    let mut out = [0; 64];
    for (total, offset, data) in
        [(3, 0, &b"abcd"[..]), (9, 6, b"abcd"), (9, u32::MAX, b"a"), (9, 0, b"")]
    {
        let length = write(&header, &Body::Medium { match_info: 0, total, offset, data }, &mut out);
        assert_eq!(parse(&out[..length]), Err(Malformed::BadField), "{total} {offset} {data:?}");
    }
}

#[test]
fn a_large_reply_has_room_for_the_bytes_of_the_paper() {
    // 234,880 bytes are 160 replies at MTU 1500, and 32 KiB are 23 fragments.
    assert_eq!((1500 - overhead(FrameType::Reply, false)) * 160, 234_880);
    assert_eq!(32_768_usize.div_ceil(1500 - overhead(FrameType::Medium, false)), 23);
}
