//! What a probe heard, in a file: to be judged again, elsewhere or later, without any traffic.
//!
//! JSON Lines: the first line is [`Origin`], each other one a train. Times are nanoseconds; those
//! of sending and receiving are the prober's clock's, `far` are the far host's.

use std::io::{BufRead, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use base::time::Duration;
use infer::{Far, Length, MeasuredTrain, PlannedProbe, Probe, Purpose, Train};
use serde::{Deserialize, Serialize};
use sys::files;

use super::prober::EchoKind;

const SCHEMA: &str = "earmark-trains/1";

/// No recording has more bytes, trains or packets, nor any of its trains. A probe sends some
/// thousands, half of them in its longest train; to compare them all takes time by their square.
const LARGEST: u64 = 16 << 20;
const MOST_TRAINS: usize = 4_000;
const MOST_PACKETS: usize = 50_000;
const MOST_IN_A_TRAIN: usize = 4_096;

/// What was probed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    schema: String,
    /// The name or the address that was probed.
    pub host: String,
    /// The echo that answered.
    pub kind: EchoKind,
}

impl Origin {
    /// Of `host`, in the schema of this build.
    pub fn new(host: impl Into<String>, kind: EchoKind) -> Self {
        Self { schema: SCHEMA.to_owned(), host: host.into(), kind }
    }
}

#[derive(Serialize, Deserialize)]
struct Row {
    purpose: String,
    /// Its packets were as long as the way takes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    full: bool,
    quiet: u64,
    packets: Vec<Packet>,
}

#[derive(Serialize, Deserialize)]
struct Packet {
    /// When it was to leave, after the begin of its train.
    at: u64,
    sent: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    received: Option<u64>,
    /// When the NIC received it, by its own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nic: Option<u64>,
    /// When the far kernel received the request, and when it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    far: Option<(u64, u64)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    silent: bool,
    /// For how long the far side was asked to wait.
    #[serde(default, skip_serializing_if = "is_zero")]
    wait: u64,
}

const fn is_zero(wait: &u64) -> bool {
    *wait == 0
}

/// Writes a recording into a file.
pub fn write(path: &Path, origin: &Origin, heard: &[MeasuredTrain]) -> Result<()> {
    let mut lines = Vec::new();
    put(&mut lines, origin, heard)
        .and_then(|()| Ok(files::write(path, &lines)?))
        .with_context(|| format!("write recording {}", path.display()))
}

/// Writes a recording.
pub fn put(mut out: impl Write, origin: &Origin, heard: &[MeasuredTrain]) -> Result<()> {
    writeln!(out, "{}", serde_json::to_string(origin)?)?;
    for heard in heard {
        writeln!(out, "{}", serde_json::to_string(&row(heard))?)?;
    }
    Ok(out.flush()?)
}

/// Reads what [`write`](fn@write) wrote.
pub fn read(path: &Path) -> Result<(Origin, Vec<MeasuredTrain>)> {
    let parsed = files::read(path, LARGEST).map_err(Into::into).and_then(|text| parse(&*text));
    parsed.with_context(|| format!("read recording {}", path.display()))
}

/// Reads what [`put`] wrote.
pub fn parse(input: impl BufRead) -> Result<(Origin, Vec<MeasuredTrain>)> {
    let mut lines = input.lines();
    let first = lines.next().context("it is empty")??;
    let origin: Origin =
        serde_json::from_str(&first).context("line 1 does not say what was recorded")?;
    ensure!(origin.schema == SCHEMA, "its schema is {}, not {SCHEMA}", origin.schema);
    let (mut heard, mut packets) = (Vec::new(), 0);
    for (line, number) in lines.zip(0..) {
        let row: Row =
            serde_json::from_str(&line?).with_context(|| format!("line {}", number + 2))?;
        packets += row.packets.len();
        let is_bounded = heard.len() < MOST_TRAINS
            && packets <= MOST_PACKETS
            && row.packets.len() <= MOST_IN_A_TRAIN;
        ensure!(
            is_bounded,
            "line {}: a recording has at most {MOST_TRAINS} trains, and {MOST_PACKETS} packets, \
             {MOST_IN_A_TRAIN} of them in a train",
            number + 2
        );
        heard.push(train(number, &row).with_context(|| format!("line {}", number + 2))?);
    }
    Ok((origin, heard))
}

fn row(heard: &MeasuredTrain) -> Row {
    let packet = |(send, probe): (&PlannedProbe, &Probe)| Packet {
        at: send.at.as_nanos(),
        sent: probe.sent,
        received: probe.received,
        nic: probe.nic,
        far: probe.far.map(|far| (far.received, far.sent)),
        silent: probe.silent,
        wait: send.wait.as_nanos(),
    };
    let Train { purpose, length, quiet, ref sends, .. } = heard.train;
    let full = length == Length::Full;
    let packets = sends.iter().zip(&heard.probes).map(packet).collect();
    Row { purpose: purpose.name().to_owned(), full, quiet: quiet.as_nanos(), packets }
}

fn train(number: u32, row: &Row) -> Result<MeasuredTrain> {
    let purpose = Purpose::ALL.into_iter().find(|purpose| purpose.name() == row.purpose);
    let purpose = purpose.with_context(|| format!("no train has purpose {:?}", row.purpose))?;
    let send = |packet: &Packet| PlannedProbe {
        at: Duration::from_nanos(packet.at),
        silent: packet.silent,
        wait: Duration::from_nanos(packet.wait),
    };
    let probe = |packet: &Packet| Probe {
        sent: packet.sent,
        received: packet.received,
        nic: packet.nic,
        far: packet.far.map(|(received, sent)| Far { received, sent }),
        silent: packet.silent,
    };
    let sends = row.packets.iter().map(send).collect();
    let probes: Vec<Probe> = row.packets.iter().map(probe).collect();
    let is_backwards = |probe: &Probe| probe.received.is_some_and(|at| at < probe.sent);
    ensure!(!probes.iter().any(is_backwards), "an answer came before its request");
    let length = if row.full { Length::Full } else { Length::Short };
    Ok(MeasuredTrain {
        train: Train { number, purpose, length, quiet: Duration::from_nanos(row.quiet), sends },
        probes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"schema":"earmark-trains/1","host":"10.9.0.2","kind":"udp"}
{"purpose":"lone","quiet":2500000,"packets":[{"at":0,"sent":10,"received":90,"nic":7,"far":[1050,1051]}]}
{"purpose":"primed","quiet":0,"packets":[{"at":0,"sent":10,"silent":true},{"at":5,"sent":16}]}
{"purpose":"spaced","full":true,"quiet":0,"packets":[{"at":0,"sent":10},{"at":5,"sent":16,"wait":900}]}
"#;

    #[test]
    fn what_was_read_is_written_again() {
        let (origin, heard) = parse(GOOD.as_bytes()).unwrap();
        assert_eq!(origin, Origin::new("10.9.0.2", EchoKind::Udp));
        assert_eq!(heard.len(), 3);
        assert_eq!(heard[0].probes[0].nic, Some(7));
        assert_eq!(heard[0].probes[0].far, Some(Far { received: 1050, sent: 1051 }));
        assert!(heard[1].probes[0].silent && !heard[1].probes[1].silent);
        let mut written = Vec::new();
        put(&mut written, &origin, &heard).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), GOOD);
    }

    #[test]
    fn what_is_no_recording_is_refused_by_line() {
        let refused = |text: &str| format!("{:#}", parse(text.as_bytes()).unwrap_err());
        assert_eq!(refused(""), "it is empty");
        assert!(refused("{}").starts_with("line 1 does not say"), "{}", refused("{}"));
        assert!(refused(&GOOD.replace("udp", "carrier pigeon")).starts_with("line 1 does not say"));
        assert!(refused(&GOOD.replace("trains/1", "trains/9")).contains("earmark-trains/9"));
        assert!(refused(&GOOD.replace("lone", "long")).starts_with("line 2: no train"));
        assert!(refused(&GOOD.replace("90,", "9,")).contains("before its request"));
        assert!(refused(&GOOD[..GOOD.len() - 9]).starts_with("line 4"));
    }

    #[test]
    fn a_recording_has_a_bounded_size() {
        let lines: Vec<&str> = GOOD.lines().collect();
        let with = |rows: &str, times| {
            let text = [&[lines[0]][..], &vec![rows; times][..]].concat().join("\n");
            parse(text.as_bytes()).map_err(|error| format!("{error:#}"))
        };
        let refused = |rows: &str, times| {
            let refused = with(rows, times).unwrap_err();
            assert!(refused.contains("a recording has at most 4000 trains"), "{refused}");
        };
        assert_eq!(with(lines[1], MOST_TRAINS).unwrap().1.len(), MOST_TRAINS);
        refused(lines[1], MOST_TRAINS + 1);
        let train = |packets| {
            let packets = vec![r#"{"at":0,"sent":1}"#; packets].join(",");
            format!(r#"{{"purpose":"lone","quiet":0,"packets":[{packets}]}}"#)
        };
        assert!(with(&train(MOST_IN_A_TRAIN), MOST_PACKETS / MOST_IN_A_TRAIN).is_ok());
        refused(&train(MOST_IN_A_TRAIN), MOST_PACKETS / MOST_IN_A_TRAIN + 1);
        refused(&train(MOST_IN_A_TRAIN + 1), 1);
        let path = std::env::temp_dir().join(format!("earmark-long-{}", std::process::id()));
        std::fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
        for (path, why) in
            [(path.as_path(), "larger than 16777216"), (Path::new("/dev/zero"), "a device")]
        {
            let refused = format!("{:#}", read(path).unwrap_err());
            assert!(refused.contains(why), "{refused}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
