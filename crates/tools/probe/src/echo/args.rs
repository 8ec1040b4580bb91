//! What `earmark echo` takes.

use std::net::IpAddr;

use super::wire::PORT;

/// What `earmark echo` takes.
#[derive(clap::Args, Clone, Debug)]
pub struct EchoArgs {
    /// On this port, UDP and TCP
    #[arg(long, default_value_t = PORT)]
    pub(super) port: u16,
    /// At this address of this host alone; without it, at all of them
    #[arg(long, value_name = "IP")]
    pub(super) listen: Option<IpAddr>,
    /// Answer this address alone; may be given more than once. Without it, all
    #[arg(long, value_name = "IP")]
    pub(super) allow: Vec<IpAddr>,
    /// Answer at most so many datagrams a second to one address; half as many may come at once
    #[arg(long, value_name = "PER_SECOND", default_value_t = 20_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) rate: u32,
    /// Work for so many microseconds before each answer
    #[arg(long, default_value_t = 0, hide = true)]
    pub(super) work_us: u64,
    /// Gather so many requests, and answer them together
    #[arg(long, default_value_t = 1, hide = true)]
    pub(super) gather: usize,
    /// But wait for no more of them so many microseconds after the first
    #[arg(long, default_value_t = 0, hide = true)]
    pub(super) gather_us: u64,
}
