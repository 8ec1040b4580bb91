//! This machine and this process, as results name them.

use std::fs;

use bench::environment::Environment;
use bench::shard::without_shard;

/// What can be read of this machine; the rest is the world's to fill in.
pub fn read(world: &str) -> Environment {
    Environment {
        date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        cpu_model: cpu_model(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        load_average: load_average(),
        clock_source: read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        command: command_line(),
        ..Environment::of(world)
    }
}

/// The command line, with the program's name alone where its path would be, and without the shard.
fn command_line() -> String {
    let mut words = std::env::args();
    let _ = words.next();
    std::iter::once("earmark".to_owned()).chain(without_shard(words)).collect::<Vec<_>>().join(" ")
}

fn read_line(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".into(), |text| text.trim().to_owned())
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let model = line.and_then(|line| line.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned())
}

fn load_average() -> f64 {
    let text = read_line("/proc/loadavg");
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}
