//! Coalescing as drivers have it, put together byte by byte, and messages around it.

use netdev::ethtool::Parameter::{self, *};
use netdev::ethtool::{Coalesce, ProfileStep, encode_coalesce};
use netdev::message::{Message, read, write};
use netdev::tlv::{Malformed, Writer, parse};

/// What drivers support (`supported_coalesce_params` in Linux), and the values that they start
/// with.
const DRIVERS: [(&str, &[(Parameter, u32)]); 4] = [
    ("igb", &[(RxUsecs, 3), (TxUsecs, 0)]),
    ("ice", &[(RxUsecs, 50), (TxUsecs, 50), (AdaptiveRx, 1), (AdaptiveTx, 1), (RxUsecsHigh, 0)]),
    (
        "mlx5",
        &[
            (RxUsecs, 8),
            (RxFrames, 128),
            (TxUsecs, 8),
            (TxFrames, 128),
            (AdaptiveRx, 1),
            (AdaptiveTx, 1),
            (CqeModeTx, 0),
            (CqeModeRx, 1),
        ],
    ),
    ("mana", &[(RxCqeFrames, 4), (RxCqeNsecs, 2048)]),
];

/// An answer as the kernel writes it: the device first, switches as bytes, all else as words.
fn answer(parameters: &[(Parameter, u32)]) -> Vec<u8> {
    let mut bytes = vec![24, 0, 1, 0x80, 8, 0, 1, 0, 2, 0, 0, 0, 9, 0, 2, 0];
    bytes.extend(b"eth0\0\0\0\0");
    for (parameter, value) in parameters {
        let is_switch = matches!(parameter, AdaptiveRx | AdaptiveTx | CqeModeRx | CqeModeTx);
        let kind = u8::try_from(*parameter as u16).unwrap();
        bytes.extend([if is_switch { 5 } else { 8 }, 0, kind, 0]);
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

#[test]
fn coalescing_of_each_driver__is_what_it_supports_and_no_more() {
    for (driver, parameters) in DRIVERS {
        let coalesce = parse::<Coalesce>(&answer(parameters)).unwrap();
        assert_eq!(coalesce.iter().collect::<Vec<_>>(), parameters, "{driver}");
        let absent = Parameter::all().filter(|name| parameters.iter().all(|(has, _)| has != name));
        assert!(absent.map(|name| coalesce.get(name)).all(|value| value.is_none()), "{driver}");
        let mut written = Writer::default();
        encode_coalesce(&coalesce, &mut written);
        assert_eq!(written.bytes(), &answer(parameters)[24..], "{driver}");
    }
}

#[test]
fn profiles__are_nested_twice() {
    let step = |usec, pkts| ProfileStep { usec: Some(usec), pkts: Some(pkts), comps: None };
    let mut coalesce = Coalesce::new().with(AdaptiveRx, 1);
    coalesce.rx_profile = Some(vec![step(1, 256), step(8, 256), step(64, 256)]);
    let mut written = Writer::default();
    encode_coalesce(&coalesce, &mut written);
    // RX_PROFILE, nested: IRQ_MODERATION, nested: USEC and PKTS.
    let first = [
        5, 0, 11, 0, 1, 0, 0, 0, 64, 0, 29, 0x80, 20, 0, 1, 0x80, 8, 0, 1, 0, 1, 0, 0, 0, 8, 0, 2,
        0, 0, 1, 0, 0,
    ];
    assert_eq!(written.bytes()[..first.len()], first);
    assert_eq!(parse::<Coalesce>(written.bytes()).unwrap(), coalesce);
    let text = serde_json::to_string(&coalesce).unwrap();
    assert!(
        text.starts_with(r#"{"parameters":{"adaptive-rx":1},"rx_profile":[{"usec":1"#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<Coalesce>(&text).unwrap(), coalesce);
}

#[test]
fn lengths__that_lie__are_errors_at_any_depth() {
    let whole = answer(DRIVERS[2].1);
    for length in [0_u16, 1, 3, 0xffff] {
        let mut bytes = whole.clone();
        bytes[24..26].copy_from_slice(&length.to_le_bytes());
        let left = bytes.len() - 24;
        let claimed = length.into();
        assert_eq!(parse::<Coalesce>(&bytes), Err(Malformed::Length { claimed, left }));
    }
    // A profile within a profile within a profile: only what belongs there is looked at.
    let mut nested = Writer::default();
    nested.nest(29, |a| {
        a.nest(29, |b| {
            b.nest(1, |c| {
                c.put(1, &[1, 2, 3]);
            });
        });
    });
    assert_eq!(parse::<Coalesce>(nested.bytes()).unwrap().rx_profile, Some(Vec::new()));
    let mut wrong = Writer::default();
    wrong.nest(29, |profile| {
        profile.nest(1, |step| {
            step.put(1, &[1, 2, 3]);
        });
    });
    let expected = Err(Malformed::Value { kind: 1, length: 3 });
    assert_eq!(parse::<Coalesce>(wrong.bytes()), expected);
    // A number that does not fit is none.
    let mut large = Writer::default();
    large.put_u64(2, 1 << 32);
    assert_eq!(parse::<Coalesce>(large.bytes()), Err(Malformed::Value { kind: 2, length: 8 }));
}

/// A message of the kernel: length, type, flags, sequence number, port, payload.
fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(16 + payload.len()).unwrap().to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(7_u32.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

#[test]
fn refusals__carry_the_kernels_sentence() {
    let mut said = Writer::default();
    said.put_u32(2, 40).put_text(1, "cannot modify an unsupported parameter");
    let quoted = write(0x20, 7, 0, &[20, 1, 0, 0, 9]);
    let mut whole = (-95_i32).to_ne_bytes().to_vec();
    whole.extend(&quoted);
    whole.resize(whole.len().next_multiple_of(4), 0);
    whole.extend(said.bytes());
    let mut capped = (-95_i32).to_ne_bytes().to_vec();
    capped.extend(&quoted[..16]);
    capped.extend(said.bytes());
    let expected =
        Message::End { code: 95, said: Some("cannot modify an unsupported parameter".into()) };
    for datagram in [message(2, 0x200, &whole), message(2, 0x300, &capped)] {
        assert_eq!(read(&datagram, 7).unwrap(), std::slice::from_ref(&expected));
        assert_eq!(read(&datagram, 8).unwrap(), [], "it belongs to another request");
    }
    let without = message(2, 0x100, &capped[..20]);
    assert_eq!(read(&without, 7).unwrap(), [Message::End { code: 95, said: None }]);
}

#[test]
fn datagrams__of_several_messages_and_odd_ends() {
    let mut datagram = message(0x20, 2, &[1, 1, 0, 0]);
    datagram.extend(message(1, 0, &[]));
    datagram.extend(message(3, 2, &[0; 4]));
    let expected = [Message::Answer(&[1, 1, 0, 0]), Message::End { code: 0, said: None }];
    assert_eq!(read(&datagram, 7).unwrap(), expected);
    assert_eq!(read(&message(3, 2, &[]), 7).unwrap(), [Message::End { code: 0, said: None }]);
    let least = message(2, 0, &i32::MIN.to_ne_bytes());
    assert_eq!(read(&least, 7).unwrap(), [Message::End { code: i32::MAX, said: None }]);
    assert!(read(&message(2, 0, &[1]), 7).is_err());
    for length in [0_u32, 15, 17, u32::MAX] {
        let mut bytes = message(0x20, 0, &[]);
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        assert!(read(&bytes, 7).is_err(), "{length}");
    }
    for end in 1..16 {
        assert!(read(&message(0x20, 0, &[])[..end], 7).is_err(), "{end}");
    }
}
