//! Two hosts on this machine, a wire between them, and a program in the first one.
//!
//! ```text
//! cargo run -p earmark-lab --example two_hosts -- ping -c 3 b
//! ```
//!
//! It needs no root where user namespaces are allowed and `/dev/net/tun` may be opened.

use std::error::Error;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lab::{Lab, LabSettings};
use sys::privilege::become_capable;

#[path = "../tests/common/wire.rs"]
mod wire;

fn main() -> ExitCode {
    match run() {
        Ok(status) => {
            let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
            ExitCode::from(code.to_le_bytes()[0])
        }
        Err(error) => {
            eprintln!("two_hosts: {error}");
            ExitCode::from(125)
        }
    }
}

fn run() -> Result<ExitStatus, Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or("no program; try: two_hosts ping -c 3 b")?;
    let privilege = become_capable()?;
    let lab = Lab::create(&LabSettings::default())?;
    for host in &lab.hosts {
        eprintln!("host {}: pid {} ({privilege:?})", host.name(), host.pid());
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let wire = scope.spawn(|| wire::carry(&lab.taps, &stop));
        let mut command = Command::new(program);
        let status = lab.hosts[0].spawn(command.args(arguments)).map(|mut child| child.wait());
        stop.store(true, Ordering::Relaxed);
        let carried = wire.join().expect("the wire does not panic")?;
        eprintln!("{carried} frames carried");
        Ok(status??)
    })
}
