//! One frame and one list of rules, through parser, rules and port, held against what must be
//! true of any.

use nic::headers::{self, Headers};
use nic::lanes::Lanes;
use nic::marker::{Classification, Rules};
use nic::port::{MAX_FRAME, MIN_FRAME, Port, PortSettings, RejectedFrame};
use nic::time::Instant;

/// What the fuzz target `parse_frame` does with its input: rules in text, a line feed, a frame.
pub fn replay(bytes: &[u8]) {
    let split = bytes.iter().position(|&byte| byte == b'\n');
    let (text, frame) = split.map_or((&b""[..], bytes), |at| (&bytes[..at], &bytes[at + 1..]));
    let rules: Rules =
        std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
    assert_eq!(rules.to_string().parse(), Ok(rules.clone()), "rules as they print");

    let parsed = headers::parse(frame);
    if let Ok(headers) = &parsed {
        headers_are_sound(headers, frame);
        assert_eq!(rules.classify(headers), classify(&rules.to_string(), headers), "{rules}");
    }
    let marked = parsed.is_ok_and(|headers| rules.classify(&headers).mark);
    port_receives(&rules, marked, frame);
    lane_receives(&rules, marked, frame);
}

fn headers_are_sound(headers: &Headers, frame: &[u8]) {
    assert_eq!(usize::from(headers.length()), frame.len().min(65_535));
    assert!(headers.vlan_priority().is_none_or(|priority| priority < 8));
    assert!(headers.dscp().is_none_or(|dscp| dscp < 64));
    assert_eq!(headers.dscp().is_some(), headers.protocol().is_some());
    let transport = headers.protocol().is_some_and(|protocol| protocol == 6 || protocol == 17);
    assert!(headers.ports().is_none() || transport, "ports of neither TCP nor UDP");
    assert!(!headers.tcp_psh() || headers.protocol() == Some(6));
    assert!(!headers.mx_mark() || headers.mx_endpoint().is_some());

    // Ethernet pads short frames: what follows the packet must not change what is read of it.
    let mut padded = frame.to_vec();
    padded.extend([0xa5; 46]);
    let padded = headers::parse(&padded).expect("padding breaks nothing");
    let fields = |headers: &Headers| {
        let network = (headers.ether_type(), headers.vlan_priority(), headers.dscp());
        let transport = (headers.protocol(), headers.ports(), headers.tcp_psh());
        (network, transport, *headers.addresses(), headers.is_fragment(), headers.mx_endpoint())
    };
    assert_eq!(fields(&padded), fields(headers));
}

/// The grammar of the rules again, read slowly from their text.
fn classify(rules: &str, headers: &Headers) -> Classification {
    let rules = rules.split(", ").filter(|rule| !rule.is_empty());
    for (index, rule) in (0..).zip(rules) {
        let (mark, tests) = match rule.strip_prefix("unmark ") {
            Some(tests) => (false, tests),
            None => (true, rule),
        };
        if tests.split(" & ").all(|test| holds(test, headers)) {
            return Classification { mark, rule: Some(index) };
        }
    }
    Classification::default()
}

fn holds(test: &str, headers: &Headers) -> bool {
    match test {
        "mx" => return headers.mx_mark(),
        "tcp-psh" => return headers.tcp_psh(),
        _ => {}
    }
    let at = test.find(['=', '!', '<', '>']).expect("an operator");
    let (field, rest) = test.split_at(at);
    let operator =
        rest.trim_end_matches(|digit: char| digit.is_ascii_alphanumeric() || digit == '-');
    let (lo, hi) = range(&rest[operator.len()..]);
    let ports = |protocol| {
        let ports = headers.ports().filter(|_| headers.protocol() == Some(protocol));
        ports.map(|(source, destination)| vec![source, destination])
    };
    let values = match field {
        "ethertype" => Some(vec![headers.ether_type()]),
        "length" => Some(vec![headers.length()]),
        "vlan-priority" => headers.vlan_priority().map(|priority| vec![priority.into()]),
        "dscp" => headers.dscp().map(|dscp| vec![dscp.into()]),
        "tcp-port" => ports(6),
        "udp-port" => ports(17),
        field => panic!("no such field: {field}"),
    };
    let Some(values) = values else { return false };
    match operator {
        "!=" => values.iter().all(|&value| value < lo || value > hi),
        "=" => values.iter().any(|&value| lo <= value && value <= hi),
        ">=" => values.iter().any(|&value| value >= lo),
        "<=" => values.iter().any(|&value| value <= hi),
        operator => panic!("rules do not print {operator}"),
    }
}

fn range(text: &str) -> (u16, u16) {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u16::from_str_radix(hex, 16).expect("hexadecimal"),
        None => text.parse().expect("decimal"),
    };
    let (lo, hi) = text.split_once('-').unwrap_or((text, text));
    (number(lo), number(hi))
}

fn port_receives(rules: &Rules, marked: bool, frame: &[u8]) {
    let settings = PortSettings { queues: 3, ring: 1, rules: rules.clone(), ..Default::default() };
    let mut port = Port::new(settings, Instant::ZERO);
    let fits = (MIN_FRAME..=MAX_FRAME).contains(&frame.len());
    let first = port.receive(Instant::ZERO, frame);
    assert_eq!(first, if fits { Ok(()) } else { Err(RejectedFrame::BadLength(frame)) });
    // The same headers choose the same queue, and its ring holds one packet.
    let second = port.receive(Instant::ZERO, frame);
    assert_eq!(
        second,
        Err(if fits { RejectedFrame::RingFull(frame) } else { RejectedFrame::BadLength(frame) })
    );
    port.advance(Instant::ZERO, &mut ());
    let mut delivered = 0;
    for queue in port.queues_mut() {
        delivered += queue.poll(Instant::ZERO, 64, &mut (), |packet, taken| {
            assert_eq!(packet.descriptor.marked, marked);
            assert_eq!(taken, frame);
        });
    }
    let counters = port.counters();
    assert_eq!(delivered, usize::from(fits));
    assert_eq!(counters.packets + counters.ring_full + counters.bad_length, 2);
    assert_eq!(counters.packets, u64::from(fits));
    assert_eq!(counters.marked, u64::from(fits && marked));
    assert_eq!(counters.malformed, u64::from(fits && headers::parse(frame).is_err()));
}

/// The rules as lanes: what they would mark gets to the queue that nothing else gets to.
fn lane_receives(rules: &Rules, marked: bool, frame: &[u8]) {
    let texts = (0..rules.len() as u8).filter_map(|index| rules.get(index));
    let lane = |rule: &nic::marker::Rule| format!("{rule}{}", if rule.marks() { ":1" } else { "" });
    let text = texts.map(lane).collect::<Vec<_>>().join(", ");
    let lanes: Lanes = text.parse().expect("rules with a queue are lanes");
    assert_eq!(lanes.to_string(), text);
    let settings = PortSettings { queues: 3, ..Default::default() };
    let mut port = Port::new(settings, Instant::ZERO);
    port.set_lanes(lanes).expect("the queue is there");
    if !port.is_lane(1) {
        return;
    }
    let lane = u64::from(port.receive(Instant::ZERO, frame).is_ok() && marked);
    assert_eq!(port.queues()[1].counters().packets, lane);
}
