//! What Intel's cards are to their drivers, at length: a million frames with checksums in either
//! direction, link flaps, the driver let go and bound again, the drivers' self-tests.
//!
//! All of it runs in virtual time, in `earmark lab`, and each part says what it expects; the suite
//! has the same at less length (`crates/earmark/tests/virtual_intel_card.rs`).

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use super::environment::Environment;
use super::files;
use crate::{repo, shell};

const SCHEMA: &str = "earmark-intel-device/1";

const CARDS: [&str; 2] = ["e1000e", "e1000"];

/// Bytes of payload of a frame of TCP over IPv4 with timestamps, and of a datagram.
const SEGMENT: u64 = 1_448;
const DATAGRAM: u64 = 1_400;

#[derive(clap::Args)]
pub(super) struct Options {
    /// Frames of each transfer
    #[arg(long, default_value_t = 1_000_000)]
    frames: u64,
    /// How often the link goes down and up, and the driver lets the card go and takes it again
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    times: u32,
    /// The `earmark` to use; without it, that of this repository, which is built first
    #[arg(long)]
    program: Option<PathBuf>,
    /// Where to write the figures, from the root of the repository
    #[arg(long, default_value = "docs/results/intel-device.json")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    environment: Environment,
    parts: Vec<Part>,
}

/// Something that was tried with one card, as it was expected to be.
#[derive(Serialize)]
struct Part {
    card: &'static str,
    what: &'static str,
    /// What was counted.
    seen: Value,
    /// Real time that it took, in seconds.
    wall_s: f64,
}

/// Runs all parts, prints them, writes the file.
pub(super) fn run(options: &Options) -> Result<()> {
    let environment = Environment::read()?;
    let program = match &options.program {
        Some(path) => path.clone(),
        None => {
            shell::run(&mut shell::cargo(["build", "--release", "--package", "earmark"]))?;
            repo::target_directory()?.join("release/earmark")
        }
    };
    let mut parts = Vec::new();
    for card in CARDS {
        let bench = Bench { program: program.clone(), card };
        let (frames, times) = (options.frames, options.times);
        type Try<'a> = (&'static str, Box<dyn Fn(&Bench) -> Result<Value> + 'a>);
        let tries: [Try<'_>; 6] = [
            ("self-test", Box::new(Bench::self_test)),
            ("TCP, checked by card and kernel", Box::new(move |it| it.tcp(frames, ""))),
            ("TCP, the other way", Box::new(move |it| it.tcp(frames, "-R"))),
            ("UDP, checked by the kernel alone", Box::new(move |it| it.udp(frames))),
            ("link down and up", Box::new(move |it| it.flap(times))),
            ("unbind and bind", Box::new(move |it| it.rebind(times))),
        ];
        for (what, attempt) in tries {
            let started = Instant::now();
            let seen = attempt(&bench).with_context(|| format!("{card}: {what}"))?;
            let wall_s = started.elapsed().as_secs_f64();
            println!("{card}: {what}: {seen}, {wall_s:.1} s");
            parts.push(Part { card, what, seen, wall_s });
        }
    }
    files::write(&Report { schema: SCHEMA, environment, parts }, &options.output)
}

struct Bench {
    program: PathBuf,
    card: &'static str,
}

impl Bench {
    /// What programs wrote in a lab in virtual time with these options.
    fn lab(&self, options: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(["lab", "run", "--time", "virtual", "--nic", self.card]).args(options);
        shell::output(&mut command)
    }

    fn self_test(&self) -> Result<Value> {
        let text = self.lab(&["--on", "b", "ethtool -t b0 offline"])?;
        ensure!(text.contains("result is PASS"), "{text}");
        let results = text.lines().filter(|line| line.contains("line)"));
        let results: Vec<&str> = results.map(str::trim).collect();
        ensure!(results.len() == 5, "five tests in {text}");
        Ok(results.into())
    }

    /// `iperf3` with `words`, its result, and what both kernels and the receiving card counted.
    fn iperf(&self, words: &str, (receiver, setting): (&str, &str)) -> Result<(Value, Counts)> {
        let count = |host: &str| {
            // The first line has names, the second values.
            let tcp = "awk '/^Tcp:/ {value = $NF} END {print \"TcpInCsumErrors\", value}'";
            let udp = "awk '/^Udp:/ {value = $(NF - 2)} END {print \"UdpInCsumErrors\", value}'";
            format!("{tcp} /proc/net/snmp; {udp} /proc/net/snmp; ethtool -S {host}0")
        };
        let server = format!(
            "{}; iperf3 -s -1 >/dev/null; sleep 0.1; {}",
            setting_on("b", receiver, setting),
            count("b")
        );
        let client =
            format!("{}; iperf3 -4 -c b -J {words}; sleep 3", setting_on("a", receiver, setting));
        let client = if receiver == "a" { format!("{client}; {}", count("a")) } else { client };
        let text = self.lab(&["--on", "b", &server, "--on", "a", &client])?;
        let begin = text.find('{').context("no result of iperf3")?;
        let mut stream = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
        let result = stream.next().context("no result of iperf3")??;
        Ok((result, Counts(text)))
    }

    fn tcp(&self, frames: u64, words: &str) -> Result<Value> {
        // A client that has sent enough closes, whatever is still on its way.
        let bytes = (frames + frames / 50 + 1_000) * SEGMENT;
        let receiver = if words.is_empty() { "b" } else { "a" };
        let (result, counts) = self.iperf(&format!("-n {bytes} {words}"), (receiver, ""))?;
        let (sent, received) = (&result["end"]["sum_sent"], &result["end"]["sum_received"]);
        let seen = serde_json::json!({
            "rx_packets": counts.last("rx_packets")?,
            "rx_csum_offload_good": counts.last("rx_csum_offload_good")?,
            "bytes_received": received["bytes"],
            "retransmits": sent["retransmits"],
        });
        ensure!(seen["rx_packets"].as_u64() >= Some(frames), "{seen}");
        ensure!(seen["retransmits"] == 0, "{seen}");
        counts.has_no_errors()?;
        Ok(seen)
    }

    fn udp(&self, frames: u64) -> Result<Value> {
        let words = format!("-u -b 900M -l {DATAGRAM} -n {}", frames * DATAGRAM);
        let (result, counts) = self.iperf(&words, ("b", "rx off"))?;
        let sum = &result["end"]["sum"];
        let seen = serde_json::json!({
            "rx_packets": counts.last("rx_packets")?,
            "rx_csum_offload_good": counts.last("rx_csum_offload_good")?,
            "packets": sum["packets"],
            "lost_packets": sum["lost_packets"],
        });
        ensure!(seen["rx_packets"].as_u64() >= Some(frames), "{seen}");
        ensure!(seen["lost_packets"] == 0 && seen["rx_csum_offload_good"] == 0, "{seen}");
        counts.has_no_errors()?;
        Ok(seen)
    }

    /// A link that is down for 2 seconds and up for 2, and a ping every 100 ms: both drivers look
    /// at their link a second after it has changed at the latest.
    fn flap(&self, times: u32) -> Result<Value> {
        let mut options = Vec::new();
        for number in 0..times {
            for (after, state) in [(2, "down"), (4, "up")] {
                let at = (4 * number + after).to_string();
                options.extend(["--at".to_owned(), at, format!("b0 link {state}")]);
            }
        }
        let seconds = 4 * times + 4;
        let ping = format!("sleep {seconds}.5; ping -i 0.1 -c 10 -4 b");
        let count = format!("sleep {}; cat /sys/class/net/b0/carrier_changes", seconds + 3);
        options.extend(["--on", "a", &ping, "--on", "b", &count, "--until", "all"].map(Into::into));
        let text = self.lab(&options.iter().map(String::as_str).collect::<Vec<_>>())?;
        let changes = text.lines().find_map(|line| line.trim().parse::<u32>().ok());
        let changes = changes.with_context(|| format!("no count in {text}"))?;
        ensure!(text.contains(" 0% packet loss"), "traffic after {times} flaps: {text}");
        ensure!(changes >= 2 * times, "{changes} changes of the carrier, {times} flaps");
        Ok(serde_json::json!({ "flaps": times, "carrier_changes": changes }))
    }

    fn rebind(&self, times: u32) -> Result<Value> {
        let script = format!(
            "cd /sys/bus/pci/drivers/{}; for time in $(seq {times}); do \
             echo 0000:00:00.0 > unbind; echo 0000:00:00.0 > bind; ip link set eth0 name b0; \
             ip address add 10.9.0.2/24 dev b0; ip link set b0 up; sleep 0.1; ping -c 1 -4 a; done",
            self.card
        );
        let text = self.lab(&["--on", "b", &script])?;
        let answered = text.matches(" 0% packet loss").count();
        ensure!(answered == times as usize, "{answered} of {times} times: {text}");
        Ok(serde_json::json!({ "times": times, "answered": answered }))
    }
}

/// A command that changes an offload of `host`, if that is the receiver and there is one to change.
fn setting_on(host: &str, receiver: &str, setting: &str) -> String {
    if host != receiver || setting.is_empty() {
        return "true".to_owned();
    }
    // `e1000` checks although its feature is off, until it was on.
    format!("ethtool -K {host}0 rx on; ethtool -K {host}0 {setting}; sleep 0.1")
}

/// What kernels and cards printed of their counters.
struct Counts(String);

impl Counts {
    /// Names and values of all lines that have both.
    fn all(&self) -> impl DoubleEndedIterator<Item = (&str, u64)> {
        self.0.lines().filter_map(|line| {
            let mut words = line.trim().split([' ', '\t', ':']).filter(|word| !word.is_empty());
            let pair = (words.next()?, words.next()?.parse().ok()?);
            words.next().is_none().then_some(pair)
        })
    }

    fn last(&self, name: &str) -> Result<u64> {
        let found = self.all().rev().find(|(other, _)| *other == name);
        Ok(found.with_context(|| format!("no {name} in {}", self.0))?.1)
    }

    fn has_no_errors(&self) -> Result<()> {
        self.last("UdpInCsumErrors")?;
        self.last("TcpInCsumErrors")?;
        let is_error = |name: &str| name.contains("error") || name.contains("CsumErrors");
        let wrong: Vec<_> =
            self.all().filter(|(name, count)| is_error(name) && *count > 0).collect();
        ensure!(wrong.is_empty(), "{wrong:?}");
        Ok(())
    }
}
