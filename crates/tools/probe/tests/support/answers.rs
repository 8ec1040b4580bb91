//! Answers of any bytes, recordings of any text, and any times, which all are judged.
//!
//! The first byte says what the rest is: a packet, the text of a recording, or trains, of which
//! each packet is a few bytes.

use base::time::Duration;
use infer::{Far, Length, MeasuredTrain, PlannedProbe, Probe, Purpose, Train};
use probe::echo;
use probe::fleet;
use probe::prober::{EchoKind, ntp_answer, ping_answer};
use probe::recording::{self, Origin};
use probe::report::Report;
use report::terminal::Width;

use super::input::Input;

/// Trains that are made at most, and packets of each: enough for a verdict.
const TRAINS: usize = 16;
const PACKETS: usize = 40;

/// Times in nanoseconds, or distances, that a byte chooses; beyond them there is a shift.
const TIMES: [u64; 8] = [0, 1, 999, 75_000, 1_000_000, u32::MAX as u64, u64::MAX / 2, u64::MAX];

/// Reads the bytes in the way that the first says.
pub(crate) fn replay(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    match kind % 3 {
        0 => packet(rest),
        1 => text(rest),
        _ => judge(&trains(&mut Input::new(rest))),
    }
}

/// What came back to a request, or came to the echo: it answers requests alone, with as many bytes.
fn packet(bytes: &[u8]) {
    let refusal = |bytes: &[u8]| echo::refusal(bytes, ([10, 0, 0, 1], 40_000).into(), (9, &[]));
    if refusal(bytes).is_none() {
        let mut answer = bytes.to_vec();
        let wait = echo::prepare(&mut answer, 5);
        assert!(answer.len() == bytes.len() && refusal(&answer).is_some());
        assert!(wait.is_zero() || bytes.len() >= echo::LENGTH);
        assert!(bytes.len() < echo::LENGTH || echo::belong_together(&answer, bytes));
    }
    if let Some(answer) = echo::answer(bytes) {
        assert_eq!(bytes[4..8], answer.number.to_be_bytes());
        assert!(echo::belong_together(bytes, bytes));
        let request = echo::request(answer.number, 7);
        assert!(bytes.len() != echo::LENGTH || echo::belong_together(bytes, &request));
    }
    if let Some((number, far)) = ntp_answer(bytes) {
        assert!(bytes[28..32] == number.to_be_bytes() && far.is_some());
    }
    for identifier in [None, Some(7)] {
        if let Some((number, far)) = ping_answer(bytes, identifier) {
            let is_in = bytes.windows(4).any(|word| word == number.to_be_bytes());
            assert!(is_in && far.is_none());
        }
    }
}

/// A recording: what is read and written again is read as the same. Or a list of hosts.
fn text(bytes: &[u8]) {
    if let Ok(hosts) = fleet::parse_hosts(&String::from_utf8_lossy(bytes)) {
        assert_eq!(fleet::parse_hosts(&hosts.join("\n")).ok(), Some(hosts));
    }
    if let Ok((origin, heard)) = recording::parse(bytes) {
        again(&origin, &heard);
        judge(&heard);
    }
}

fn again(origin: &Origin, heard: &[MeasuredTrain]) {
    let mut written = Vec::new();
    recording::put(&mut written, origin, heard).expect("memory takes it");
    let (same_origin, same) = recording::parse(&written[..]).expect("we have written it");
    assert_eq!(&same_origin, origin);
    assert_eq!(same.len(), heard.len());
    for (same, heard) in same.iter().zip(heard) {
        assert_eq!(same.probes, heard.probes);
        assert_eq!(same.train.sends, heard.train.sends);
        assert_eq!(same.train.quiet, heard.train.quiet);
    }
}

/// A time that is one of few, or near to one before it.
fn time(input: &mut Input<'_>, before: u64) -> u64 {
    let how = input.u8();
    let value = TIMES[usize::from(how % 8)];
    match how / 64 {
        0 => before.wrapping_add(u64::from(input.u16())),
        1 => before.wrapping_add(u64::from(input.u16()) << (how / 8 % 8 * 2)),
        2 => value,
        _ => value.wrapping_sub(u64::from(input.u16())),
    }
}

fn trains(input: &mut Input<'_>) -> Vec<MeasuredTrain> {
    let mut heard = Vec::new();
    while !input.is_empty() && heard.len() < TRAINS {
        let (purpose, count) = (usize::from(input.u8()) % 8, usize::from(input.u8()) % PACKETS);
        let quiet = time(input, 0);
        let (mut sends, mut probes) = (Vec::new(), Vec::new());
        let (mut at, mut sent) = (0_u64, time(input, 0));
        // Packets of a regular train, after one that may be anything.
        let (gap, took) = (u64::from(input.u16()) * 16, time(input, 0));
        for place in 0..count {
            let how = if place % 4 == 0 { input.u8() } else { 1 };
            (at, sent) = (at.wrapping_add(gap), sent.wrapping_add(gap));
            if how & 128 != 0 {
                sent = time(input, sent);
            }
            let came = sent.wrapping_add(took).wrapping_add((place as u64 * 7_919) % 5_000);
            let received = (how & 1 != 0 && came >= sent).then_some(came);
            let nic = (how & 2 != 0).then(|| time(input, came));
            let far = (how & 4 != 0).then(|| {
                let received = time(input, sent);
                Far { received, sent: time(input, received) }
            });
            let silent = how & 8 != 0;
            let wait = if how & 16 != 0 { time(input, 0) } else { 0 };
            sends.push(PlannedProbe {
                at: Duration::from_nanos(at),
                silent,
                wait: Duration::from_nanos(wait),
            });
            probes.push(Probe { sent, received, nic, far, silent });
        }
        let length = Length::ALL[heard.len() % 2];
        let train = Train {
            number: heard.len() as u32,
            purpose: Purpose::ALL[purpose],
            length,
            quiet: Duration::from_nanos(quiet),
            sends,
        };
        heard.push(MeasuredTrain { train, probes });
    }
    again(&Origin::new("a", EchoKind::Udp), &heard);
    heard
}

/// Whatever the times are, the verdict is one: about what was heard, in words and as JSON.
fn judge(heard: &[MeasuredTrain]) {
    let packets: usize = heard.iter().map(|heard| heard.probes.len()).sum();
    if packets > TRAINS * PACKETS {
        return;
    }
    let verdict = infer::judge(heard);
    let (answered, asked) = verdict.answered;
    assert!(answered <= asked && asked <= packets);
    for finding in &verdict.findings {
        assert!(finding.usecs.value.is_finite(), "{finding:?}");
    }
    let report = Report::new(&Origin::new("a", EchoKind::Udp), heard, &verdict, None);
    assert!(!report.text(Width::columns(80)).is_empty());
    serde_json::to_string(&report).expect("it is plain data");
}
