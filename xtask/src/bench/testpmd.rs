//! Our NIC beside `dpdk-testpmd` as what joins two vhost-user ports: the same drivers, rings and
//! frames, in turns.
//!
//! Both have one thread that spins, beside that of the drivers. Ours also classifies and moderates;
//! testpmd moves packets from port to port as they are (`--forward-mode=io`).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use super::environment::Environment;
use super::figure::{Figure, Goal};
use super::files;
use super::vhost::{Run, SECONDS, SIZES};
use crate::{repo, shell};

/// The version of the file's layout.
const SCHEMA: &str = "earmark-testpmd/1";

/// What is asked: as many frames as testpmd moves.
const GOAL: Goal = Goal::AtLeast(1.0);

/// How long testpmd may take to have its sockets.
const START_WITHIN: Duration = Duration::from_secs(30);

#[derive(clap::Args)]
pub(super) struct Options {
    /// Runs of each, in turn; the table shows their median
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Where to write the figures, from the root of the repository
    #[arg(long, default_value = "docs/results/testpmd.json")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    environment: Environment,
    /// What testpmd says of itself.
    testpmd: String,
    figures: Vec<Figure>,
}

/// Measures, prints, writes the file.
pub(super) fn run(options: &Options) -> Result<()> {
    let environment = Environment::read()?;
    let testpmd =
        env::var_os("EARMARK_TESTPMD").map_or("/usr/bin/dpdk-testpmd".into(), PathBuf::from);
    ensure!(
        testpmd.is_file(),
        "there is no {}; install it with: apt-get install dpdk-dev, or name another one in \
         EARMARK_TESTPMD",
        testpmd.display()
    );
    let program = files::build("earmark-vhost", "vhost_cost")?;
    let mut figures = Vec::new();
    for (direction, ways) in [("one", "one way"), ("both", "both ways")] {
        for size in SIZES {
            let bytes = size.to_string();
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..options.runs {
                let task = ["time", direction, &bytes, SECONDS];
                ours.push(Run::new(&program, &task)?.rate());
                let [a, b] = ["a.sock", "b.sock"];
                let peer = Testpmd::start(&testpmd, [a, b])?;
                let [a, b] = [a, b].map(|name| peer.directory.join(name).display().to_string());
                let task = ["at", direction, &bytes, SECONDS, &a, &b];
                theirs.push(Run::new(&program, &task)?.rate());
            }
            let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
            let name = |who: &str| format!("{who}, {ways}, {size}-byte frames");
            figures.push(Figure::new(name("ours"), "frames per second", ours));
            figures.push(Figure::new(name("testpmd"), "frames per second", theirs));
            let ratio = Figure::new(name("ours to testpmd"), "ratio", ratios);
            figures.push(ratio.with_goal(GOAL));
        }
    }
    let version = shell::output(Command::new(&testpmd).args(["--no-huge", "--version"]));
    let version = version.unwrap_or_default().trim().to_owned();
    let report = Report { schema: SCHEMA, environment, testpmd: version, figures };
    println!("\n{}\n{}", report.environment, Figure::HEADING);
    report.figures.iter().for_each(|figure| println!("{figure}"));
    files::write(&report, &options.output)
}

/// A testpmd that joins two ports; it ends with this value.
struct Testpmd {
    child: Child,
    /// Where its sockets are.
    directory: PathBuf,
}

impl Testpmd {
    fn start(program: &Path, sockets: [&str; 2]) -> Result<Self> {
        let directory = repo::target_directory()?.join("testpmd");
        fs::create_dir_all(&directory)?;
        for socket in sockets {
            // One that was killed leaves them.
            let _ = fs::remove_file(directory.join(socket));
        }
        let mut command = Command::new(program);
        command.args(["-l", "0-1", "--no-huge", "-m", "256", "--no-pci", "--no-telemetry"]);
        command.arg(format!("--file-prefix=earmark-{}", std::process::id()));
        for (number, socket) in sockets.into_iter().enumerate() {
            let path = directory.join(socket);
            command.arg(format!("--vdev=net_vhost{number},iface={}", path.display()));
        }
        command.args(["--", "--forward-mode=io", "--total-num-mbufs=8192"]);
        let log = fs::File::create(directory.join("log"))?;
        command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log);
        let line = shell::line(&command);
        let child = command.spawn().with_context(|| format!("starting `{line}`"))?;
        let started = Self { child, directory };
        let begun = Instant::now();
        while !sockets.iter().all(|socket| started.directory.join(socket).exists()) {
            ensure!(
                begun.elapsed() < START_WITHIN,
                "`{line}` has no sockets: {}",
                fs::read_to_string(started.directory.join("log")).unwrap_or_default()
            );
            sleep(Duration::from_millis(50));
        }
        Ok(started)
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        // It has nothing that has to be put away but its sockets.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
