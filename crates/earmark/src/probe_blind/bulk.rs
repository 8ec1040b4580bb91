//! Traffic of others beside a blind case: pings at random, which a far kernel answers at once.

use std::net::Ipv4Addr;
use std::num::NonZeroU64;
use std::thread::sleep;
use std::time::Instant;

use anyhow::{Context, Result};
use blind::{Case, Gaps};
use rustix::net::{SendFlags, send};
use rustix::thread::set_current_timer_slack;

use sys::icmp;

#[derive(clap::Args, Debug)]
pub(crate) struct BulkArgs {
    /// The host to ping
    host: Ipv4Addr,
    /// Packets a second
    #[arg(long)]
    rate: f64,
    /// What the gaps are drawn from
    #[arg(long)]
    seed: u64,
}

/// The words that have this program make the bulk of a case, towards `host`; none if it has none.
pub(super) fn words(case: &Case, host: Ipv4Addr) -> Option<Vec<String>> {
    let (rate, seed) = (case.bulk(), case.seed());
    let words = format!("probe-bulk {host} --rate {rate} --seed {seed}");
    (rate > 0.0).then(|| words.split(' ').map(str::to_owned).collect())
}

/// Sends until it is killed.
pub(crate) fn run(args: &BulkArgs) -> Result<()> {
    set_current_timer_slack(NonZeroU64::new(1)).context("ask for exact timers")?;
    let address = (args.host, 0).into();
    let (socket, _) = icmp::open(address, icmp::PING_FIRST).context("open a socket for pings")?;
    let (identifier, mut packet) = (icmp::identifier(), Vec::new());
    let mut due = Instant::now();
    for (number, gap) in (0_u16..).cycle().zip(Gaps::new(args.rate, args.seed)) {
        due += gap;
        sleep(due.saturating_duration_since(Instant::now()));
        icmp::encode(&mut packet, identifier, number, &[0; 56]);
        // Lost ones do not matter, and answers are not read.
        let _ = send(&socket, &packet, SendFlags::empty());
    }
    Ok(())
}
