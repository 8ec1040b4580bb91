//! The constants as a machine of the model world, in the format of [`model::machine`].

use std::fmt::Write as _;

use toml::Value;

use super::Calibration;
use bench::environment::Environment;
use bench::ratio::Spread;

/// Cache lines of a channel: ring, buffer, socket and endpoint of one message. The machine
/// `clovertown` was fitted to 2265 ns for them, which would be 140 ns a line.
const LINES: f64 = 16.0;

/// Ahead of the constants. What the file does not have costs nothing.
const HEAD: &str = "# The cable was not measured: this is that of virtual time.
[link]
rate_mbit = 1000
latency_ns = 20000

# Not measured, and free here: attach, dma, event, idle_exit (a part of wake), page.
[constants]
";

/// What is taken from another machine, since only a whole stack shows it.
const ASSUMED: [(&str, f64); 4] =
    [("moved_low", 0.074), ("moved_send", 2.0), ("moved_reply", 0.5), ("jitter", 0.3)];

impl Calibration {
    /// The file for `bench --world model --machine FILE`. A constant that came out as nothing, on
    /// a machine that is too busy, is left out.
    pub fn machine(&self) -> String {
        let Environment { cpus, cpu_model, kernel, date, .. } = &self.environment;
        let title = format!("this machine: {cpus} x {cpu_model}, Linux {kernel}, {date}");
        let cores = (*cpus).clamp(1, 256);
        let mut text = format!("title = {}\ncores = {cores}\n\n{HEAD}", Value::from(title));
        for (name, value, source) in self.measured() {
            add(&mut text, name, value, "measured", &source);
        }
        for (name, value) in ASSUMED {
            add(&mut text, name, value, "assumed", "as on the clovertown");
        }
        text
    }

    /// Name, value and source of each constant that was measured.
    fn measured(&self) -> Vec<(&'static str, f64, String)> {
        let Self { invalid_frames, datagrams, send_ns, cores, .. } = self;
        let source = |what: &str, Spread { median, min, max }: Spread| {
            let [median, min, max] = [median, min, max].map(rounded);
            format!("earmark calibrate: {what}; median {median}, {min} to {max} over the rounds")
        };
        let plain = [
            (
                "interrupt",
                "slope over the interrupts for each dropped frame",
                invalid_frames.interrupt_ns,
            ),
            ("packet", "a dropped frame without an interrupt", Some(invalid_frames.packet_ns)),
            ("send", "CPU time of a program for a frame that it sends", Some(*send_ns)),
            (
                "wake",
                "from a write until the thread that slept in a read of it runs",
                Some(cores.wake_ns),
            ),
            ("library", "a system call that reads one byte of a socket", Some(cores.call_ns)),
            (
                "copy",
                "1448 bytes at a time, not in caches, into a buffer",
                Some(cores.copy_ns_per_byte),
            ),
        ];
        let plain = plain.into_iter().filter_map(|(name, what, spread)| {
            spread.map(|spread| (name, spread.median, source(what, spread)))
        });
        let handler = datagrams.packet_ns.median - invalid_frames.packet_ns.median;
        let what = "a datagram up to its socket, less a dropped frame";
        let handler = ("handler", handler, source(what, datagrams.packet_ns));
        let moved = cores.line_ns.map(|line| {
            let what = "a cache line from core to core, of which a channel is assumed to have 16";
            ("moved", line.median * LINES, source(what, line))
        });
        let all = plain.chain([handler]).chain(moved);
        all.filter(|(_, value, _)| *value > 0.0).collect()
    }
}

fn add(text: &mut String, name: &str, value: f64, origin: &str, source: &str) {
    let (value, source) = (rounded(value), Value::from(source));
    // Writing to a string does not fail.
    let _ =
        writeln!(text, "{name} = {{ value = {value}, origin = '{origin}', source = {source} }}");
}

/// Without digits that mean nothing.
fn rounded(value: f64) -> f64 {
    let scale = if value.abs() < 10.0 { 1e3 } else { 1.0 };
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::Constants;
    use crate::calibrate::cores::CoreCosts;
    use model::machine::{Machine, Origin};

    #[test]
    fn a_machine_file_is_what_the_model_reads() {
        let spread = |median: f64| Spread { median, min: median / 2.0, max: median * 2.0 };
        let cores = CoreCosts {
            wake_ns: spread(3_000.0),
            call_ns: spread(300.0),
            copy_ns_per_byte: spread(0.08),
            line_ns: Some(spread(70.0)),
        };
        let constants = |packet: f64| Constants {
            interrupt_ns: Some(spread(900.0)),
            packet_ns: spread(packet),
        };
        let mut calibration = Calibration {
            invalid_frames: constants(500.0),
            datagrams: constants(1_250.0),
            send_ns: spread(-1.0),
            cores,
            points: Vec::new(),
            missed: Vec::new(),
            environment: Environment {
                cpu_model: "a \"quoted\" \\ model".into(),
                ..Environment::of("live")
            },
        };
        let machine = Machine::parse(&calibration.machine(), &[]).unwrap();
        let costs = machine.constants.costs;
        assert_eq!((costs.interrupt, costs.packet, costs.handler), (900.0, 500.0, 750.0));
        assert_eq!((costs.copy, costs.library, costs.moved), (0.08, 300.0, 1_120.0));
        assert_eq!((costs.send, machine.fitted()), (0.0, 0), "what was not seen is left out");
        let list = &machine.constants.list;
        assert_eq!(list.iter().filter(|it| it.origin == Origin::Measured).count(), 7);
        assert!(list.iter().all(|it| it.value > 0.0 && it.source.len() > 5), "{list:?}");
        assert!(machine.title.contains("a \"quoted\" \\ model"), "{}", machine.title);
        calibration.environment.cpus = 1_000;
        assert_eq!(Machine::parse(&calibration.machine(), &[]).unwrap().cores, 256);
    }
}
