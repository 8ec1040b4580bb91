//! What Intel's NICs are to their drivers, at length: a million frames with checksums in either
//! direction, link flaps, the driver let go and bound again, the drivers' self-tests, round trips
//! against [`theory`], and what a round trip takes of real time, beside virtio.
//!
//! All of it runs in virtual time, in `earmark lab`, and each part says what it expects; the suite
//! has the same at less length (`crates/earmark/tests/virtual_intel_card.rs`).

mod theory;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use super::environment::Environment;
use super::figure::Figure;
use super::files;
use super::virtual_time::{Program, figures};
use crate::{repo, shell};

const SCHEMA: &str = "earmark-intel-device/2";

/// Those with registers of their own for everything, and the virtual function.
const CARDS: [&str; 2] = ["e1000e", "e1000"];
const FUNCTION: &str = "iavf";

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
    /// Runs of each NIC, in turn, of which the real time of a round trip is taken
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
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
    real_time: Vec<Figure>,
}

/// Something that was tried with one NIC, as it was expected to be.
#[derive(Serialize)]
struct Part {
    nic: &'static str,
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
    let mut parts = Parts(Vec::new());
    let (frames, times) = (options.frames, options.times);
    for case in &theory::CASES {
        let lab = |options: &[&str]| lab(&program, case.nic, options);
        parts.attempt(case.nic, case.what, || case.play(&lab))?;
    }
    for nic in CARDS {
        let bench = Bench { program: &program, nic };
        parts.attempt(nic, "self-test", || bench.self_test())?;
        parts.attempt(nic, "TCP, checked by card and kernel", || bench.tcp(frames, ""))?;
        parts.attempt(nic, "TCP, the other way", || bench.tcp(frames, "-R"))?;
        parts.attempt(nic, "UDP, checked by the kernel alone", || bench.udp(frames))?;
    }
    for nic in CARDS.into_iter().chain([FUNCTION]) {
        let bench = Bench { program: &program, nic };
        parts.attempt(nic, "link down and up", || bench.flap(times))?;
        parts.attempt(nic, "unbind and bind", || bench.rebind(times))?;
    }
    let real_time = real_time(&program, options.runs)?;
    println!("\n{environment}\n{}", Figure::HEADING);
    real_time.iter().for_each(|figure| println!("{figure}"));
    let parts = parts.0;
    files::write(&Report { schema: SCHEMA, environment, parts, real_time }, &options.output)
}

/// What a round trip takes of it under each NIC, measured in turns.
fn real_time(program: &Path, runs: u32) -> Result<Vec<Figure>> {
    let nics = ["virtio"].into_iter().chain(CARDS).chain([FUNCTION]);
    let program = |nic| Program { path: program.to_owned(), kernel: None, nic };
    let mut sides: Vec<_> = nics.map(|nic| (program(nic), Vec::new())).collect();
    for _ in 0..runs {
        for (program, runs) in &mut sides {
            runs.push(program.measure()?);
        }
    }
    Ok(sides.iter().flat_map(|(program, runs)| figures(program.nic, runs)).collect())
}

struct Parts(Vec<Part>);

impl Parts {
    /// Tries something, prints and keeps what was seen.
    fn attempt(
        &mut self,
        nic: &'static str,
        what: &'static str,
        attempt: impl FnOnce() -> Result<Value>,
    ) -> Result<()> {
        let started = Instant::now();
        let seen = attempt().with_context(|| format!("{nic}: {what}"))?;
        let wall_s = started.elapsed().as_secs_f64();
        let told = match seen.get(theory::LARGEST) {
            Some(largest) => format!("within {largest} ns of theory, twice the same"),
            None => seen.to_string(),
        };
        println!("{nic}: {what}: {told}, {wall_s:.1} s");
        self.0.push(Part { nic, what, seen, wall_s });
        Ok(())
    }
}

/// What programs wrote in a lab in virtual time with these options.
fn lab(program: &Path, nic: &str, options: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(["lab", "run", "--time", "virtual", "--nic", nic]).args(options);
    shell::output(&mut command)
}

/// One NIC, and the program that has it.
struct Bench<'a> {
    program: &'a Path,
    nic: &'static str,
}

impl Bench<'_> {
    fn lab(&self, options: &[&str]) -> Result<String> {
        lab(self.program, self.nic, options)
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

    /// A link that is down for 3 seconds and up for 3, and a ping every 100 ms. An interrupt does
    /// not hurry e1000's watchdog, which is queued already: it looks at the link every 2 seconds.
    fn flap(&self, times: u32) -> Result<Value> {
        let mut options = Vec::new();
        for number in 0..times {
            for (after, state) in [(3, "down"), (6, "up")] {
                let at = (6 * number + after).to_string();
                options.extend(["--at".to_owned(), at, format!("b0 link {state}")]);
            }
        }
        let seconds = 6 * times + 6;
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

    /// The function has a name when it and the physical function have spoken, so half a second.
    fn rebind(&self, times: u32) -> Result<Value> {
        let script = format!(
            "cd /sys/bus/pci/drivers/{}; for time in $(seq {times}); do \
             echo 0000:00:00.0 > unbind; echo 0000:00:00.0 > bind; sleep 0.5; \
             ip link set eth0 name b0; ip address add 10.9.0.2/24 dev b0; ip link set b0 up; \
             sleep 0.5; ping -c 1 -4 a; done",
            self.nic
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
