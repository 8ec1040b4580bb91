//! Packets byte by byte, and exchanges in virtual time.

use super::*;
use crate::script::{Did, Script};
use crate::{Column, WorkloadSpec};
use alloc::vec::Vec;

/// 2026-11-15 12:00:00.5 UTC.
const NOON_NS: u64 = 1_794_744_000_500_000_000;

#[test]
fn timestamps_round_trip_to_the_nanosecond() {
    for nanos in [0, 1, 2, 499_999_999, 500_000_001, 999_999_999] {
        let wall_ns = NOON_NS - 500_000_000 + nanos;
        assert_eq!(from_ntp(to_ntp(wall_ns), NOON_NS), i128::from(wall_ns));
    }
    // The era rolls over on 2036-02-07 06:28:16 UTC, 2^32 s after 1900.
    let rollover_ns = ((1u64 << 32) - UNIX_EPOCH_S) * 1_000_000_000;
    assert_eq!(to_ntp(rollover_ns), 0);
    assert_eq!(from_ntp(0, rollover_ns - 5), i128::from(rollover_ns));
    assert_eq!(from_ntp(to_ntp(rollover_ns - 5), rollover_ns + 5), i128::from(rollover_ns) - 5);
    // A server may say anything: 68 years before this is before 1970.
    let far = from_ntp(to_ntp(NOON_NS) ^ 1 << 63, NOON_NS);
    assert_eq!(far, i128::from(NOON_NS) - (1_i128 << 31) * 1_000_000_000);
}

#[test]
fn a_known_packet() {
    let packet = Packet {
        mode: MODE_SERVER,
        stratum: 1,
        reference: 0x0102_0304_0506_0708,
        origin: 0x1112_1314_1516_1718,
        receive: 0x2122_2324_2526_2728,
        transmit: 0x3132_3334_3536_3738,
    };
    let expected: [u8; 48] = [
        0x24, 0x01, 0x06, 0xec, 0, 0, 0, 0, 0, 0, 0, 0, 127, 127, 1, 1, // header
        0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, // reference
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, // origin
        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, // receive
        0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, // transmit
    ];
    assert_eq!(packet.encode(), expected);
    assert_eq!(Packet::decode(&expected), Some(packet));
    assert_eq!(Packet::decode(&expected[..47]), None);
    assert_eq!(to_ntp(0), 2_208_988_800 << 32, "the Unix epoch in NTP time");
    assert_eq!(to_ntp(1_500_000_000), (2_208_988_801 << 32) | 0x8000_0000, "half a second");
}

/// One exchange between two state machines whose clocks agree; returns the record.
fn exchange(request_ns: u64, response_ns: u64) -> Script<NtpClient> {
    let spec = NtpClientSpec { interval_us: 5000, random_phase: false, ..Default::default() };
    let mut client = Script::new(NtpClient::new(&spec, 1), 100_000_000);
    let mut server = Script::new(NtpServer::new(&NtpServerSpec::default()), 100_000_000);
    client.wall_offset_ns = NOON_NS;
    server.wall_offset_ns = NOON_NS;
    server.start();
    let Did::Send(0, poll) = client.start() else { panic!("polls at once") };
    assert_eq!(poll[0], 0x23, "no leap warning, version 4, client");
    assert_eq!(client.sent(100, 0), Did::Wait(Some(5_000_000)));
    let t2 = request_ns;
    assert_eq!(server.received(t2, 0, &poll), Did::Compute(0));
    let t3 = t2 + 2000;
    let Did::Send(0, answer) = server.handle(t3, WorkloadEvent::Computed) else {
        panic!("answers")
    };
    assert_eq!(answer[24..32], poll[40..48], "origin is the poll's transmit timestamp");
    client.received(t3 + response_ns, 0, &answer);
    client
}

#[test]
fn a_hold_on_requests_moves_the_offset_by_half_of_it() {
    let before = exchange(100_000 + 393_000 - 50_000, 100_000);
    let after = exchange(100_000, 100_000);
    let only = |script: &Script<NtpClient>, timing| script.timing(timing).sum_ns;
    assert_eq!(only(&after, Timing::Offset), 0);
    assert_eq!(only(&before, Timing::Offset), 171_500);
    assert_eq!(only(&before, Timing::RequestHalf), 443_000);
    assert_eq!(only(&before, Timing::ResponseHalf), 100_000);
    assert_eq!(only(&before, Timing::RoundTrip) - only(&after, Timing::RoundTrip), 343_000);
}

#[test]
fn a_hold_on_responses_makes_the_offset_negative() {
    assert_eq!(exchange(100_000, 300_000).timing(Timing::Offset).sum_ns, -100_000);
}

#[test]
fn the_series_holds_every_exchange() {
    let workload = WorkloadSpec::NtpClient(NtpClientSpec::default());
    let series = exchange(443_000, 100_000).recorder.into_record(&workload, 0, 0).series.unwrap();
    use Timing::{Offset, RequestHalf, ResponseHalf, RoundTrip};
    let timings = [RoundTrip, RequestHalf, ResponseHalf, Offset].map(Column::Timing);
    assert_eq!(series.columns[0], Column::Time);
    assert_eq!(series.columns[1..], timings);
    assert_eq!(series.rows, [[545_000, 543_000, 443_000, 100_000, 171_500]]);
}

#[test]
fn polls_are_lost_after_the_timeout_and_strays_ignored() {
    let spec = NtpClientSpec { interval_us: 5000, random_phase: false, timeout_ms: 7 };
    let mut client = Script::new(NtpClient::new(&spec, 1), 100_000_000);
    client.start();
    client.sent(1, 0);
    client.received(10, 0, b"not an NTP packet");
    assert_eq!(client.counter(Counter::Stray), 1);
    assert!(matches!(client.woke(5_000_000), Did::Send(..)));
    client.sent(5_000_001, 0);
    assert!(matches!(client.woke(10_000_000), Did::Send(..)));
    assert_eq!(client.counter(Counter::Lost), 1);
    client.sent(10_000_001, 0);
    // Held up for 3 intervals: one poll, then the schedule again.
    assert!(matches!(client.woke(26_000_000), Did::Send(..)));
    assert_eq!(client.sent(26_000_001, 0), Did::Wait(Some(30_000_000)));
}

#[test]
fn random_phases_follow_from_the_seed_and_stay_in_their_interval() {
    let spec = NtpClientSpec { interval_us: 5000, ..Default::default() };
    let run = |seed| -> Vec<u64> {
        let mut client = Script::new(NtpClient::new(&spec, seed), 100_000_000);
        let mut did = client.start();
        let mut polls = Vec::new();
        let mut at = 0;
        while did != Did::Done {
            did = match did {
                Did::Wait(until) => {
                    at = until.unwrap();
                    client.woke(at)
                }
                _ => {
                    polls.push(at);
                    client.sent(at, 0)
                }
            };
        }
        polls
    };
    let polls = run(3);
    assert_eq!(polls.len(), 20);
    assert!(polls.iter().zip(0..).all(|(at, k)| (k * 5_000_000..(k + 1) * 5_000_000).contains(at)));
    assert_eq!(polls, run(3));
    assert_ne!(polls, run(4));
}
