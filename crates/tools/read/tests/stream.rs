//! Inputs that are longer than what is looked at together.

use std::io::{BufReader, Read};

use read::{InputKind, Options, ReadResult, ReadSession};

/// Lines of a text that is made while it is read.
struct Lines<F> {
    line: F,
    count: u32,
    at: u32,
    rest: Vec<u8>,
}

impl<F: FnMut(u32) -> String> Read for Lines<F> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.rest.is_empty() && self.at < self.count {
            self.rest = (self.line)(self.at).into_bytes();
            self.at += 1;
        }
        let count = self.rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Ok(count)
    }
}

/// What a text of so many lines says.
fn read(name: &str, count: u32, line: impl FnMut(u32) -> String) -> ReadResult {
    let mut session = ReadSession::new(Options::default());
    let lines = Lines { line, count, at: 0, rest: Vec::new() };
    session.stream(name, BufReader::new(lines)).unwrap();
    session.finish()
}

const LINES: u32 = 90_000;

#[test]
fn a_long_run_of_ping_is_one_series_with_all_of_its_round_trips() {
    let answer = read("ping.log", LINES + 3, |at| match at {
        0 => "PING web1 (192.0.2.7) 56(84) bytes of data.\n".into(),
        at if at <= LINES => {
            let us = if at % 2 == 0 { 300 } else { 100 };
            format!("64 bytes from 192.0.2.7: icmp_seq={at} ttl=64 time=0.{us} ms\n")
        }
        at if at == LINES + 1 => format!("{LINES} packets transmitted, {LINES} received\n"),
        _ => "rtt min/avg/max/mdev = 0.100/0.200/0.300/0.100 ms\n".into(),
    });
    let [taken] = &answer.taken[..] else { panic!("{:?}", answer.taken) };
    assert_eq!((taken.kind, taken.not_understood), (InputKind::Ping, 0));
    assert_eq!((taken.line, taken.lines), (1, LINES as usize + 3));
    let [series] = &answer.round_trips[..] else { panic!("{:?}", answer.round_trips.len()) };
    assert_eq!((series.source.as_str(), series.count), ("ping web1", LINES.into()));
    let figures = [series.min_us, series.mean_us, series.max_us].map(Option::unwrap);
    assert_eq!(figures, [100.0, 200.0, 300.0]);
    let says = answer.verdict.unwrap().says;
    assert!(says.iter().any(|line| line.contains("2 levels")), "{says:?}");
}

#[test]
fn peers_of_a_long_log_are_one_series_each() {
    let count = 45_000;
    let answer = read("rawstats", count, |at| {
        let peer = at % 3;
        let second = 3_900_000_000_u64 + u64::from(at);
        format!(
            "60000 {at}.0 192.0.2.{peer} 192.0.2.9 {second}.000100 {second}.000200 {second}.000210 \
             {second}.000400 4 4 1 10 -20 0.0 0.0 .GPS. \n"
        )
    });
    let counts: Vec<u64> = answer.round_trips.iter().map(|series| series.count).collect();
    assert_eq!(counts, [u64::from(count / 3); 3]);
    let p50 = answer.round_trips[1].p50_us.unwrap();
    assert!((p50 - 290.0).abs() < 0.01, "{p50}");
}

#[test]
fn of_many_readings_the_first_and_the_last_count() {
    let readings = 70_000;
    let answer = read("watch.txt", 3 * readings, |at| {
        let (reading, line) = (at / 3, at % 3);
        match line {
            0 => "            CPU0       CPU1\n".into(),
            1 => format!(" 30:  {}  0  PCI-MSI 1-edge  eth0-TxRx-0\n", 1000 + reading),
            _ => "\n".into(),
        }
    });
    let [ratio] = &answer.between[..] else { panic!("{:?}", answer.between) };
    assert_eq!(ratio.interrupts, u64::from(readings) - 1);
    let unlisted = answer.notes.iter().find(|note| note.contains("not listed")).unwrap();
    let listed = answer.taken.len();
    assert!(unlisted.starts_with(&(readings as usize - listed).to_string()), "{unlisted}");
}

#[test]
fn a_column_and_other_text_may_be_long() {
    let answer = read("column", 480_000, |at| format!("{}.000000\n", 50 + at % 4));
    assert_eq!(answer.taken[0].kind, InputKind::Column);
    let series = &answer.round_trips[0];
    assert_eq!((series.count, series.mean_us), (480_000, Some(51.5)));

    // One line without an end, and what follows it.
    let mut session = ReadSession::new(Options::default());
    let long = std::io::repeat(b'x').take(20 << 20);
    let after = &b"\nCoalesce parameters for eth0:\nrx-usecs: 3\n"[..];
    session.stream("-", BufReader::new(long.chain(after))).unwrap();
    let answer = session.finish();
    assert_eq!(answer.devices[0].name, "eth0");
    assert_eq!(answer.notes, ["-: 1 line of other text"]);
}

#[test]
fn json_may_be_cut_by_the_end_of_a_piece() {
    let steps = 90_000;
    let answer = read("iperf3.json", steps + 2, |at| match at {
        0 => "{\n\"intervals\": [\n".into(),
        at if at == steps + 1 => "{}], \"end\": {} }\n".into(),
        at => format!("{{\"streams\": [{{\"rtt\": {}, \"bytes\": 1448000}}]}},\n", 100 + at % 2),
    });
    assert_eq!(answer.taken[0].kind, InputKind::Iperf3);
    assert_eq!(answer.round_trips[0].count, u64::from(steps));
}
