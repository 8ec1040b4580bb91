//! `earmark echo`: answers probes, over UDP with the kernel's receive stamp and its own send time.
//!
//! # The wire format
//!
//! A request is `EMK1` and a number, then for how many nanoseconds the answer is to wait, and eight
//! bytes of room: 24 bytes, all in network order. An answer is the same with `EMK2`, and in the
//! last sixteen bytes the two times, in nanoseconds since 1970. A request may be longer, up to any
//! datagram, and is then answered with the same bytes behind the times (at once if it does not
//! fit into a frame); or shorter, down
//! to 8 bytes, and then its answer has no times. Over TCP all bytes are sent back as they are.
//!
//! # What it does not answer
//!
//! The address of a datagram may be forged. So an answer is as long as its request and no longer,
//! an answer is never answered, nor is anything else that is no request, nor what comes from a port
//! where another echo may listen: our own, [`PORT`], and those below 1024. Two echoes therefore
//! cannot keep each other busy, whatever is sent to them in the name of the other. One address gets
//! no more than `--rate` answers a second. What is not answered is counted and reported.
//!
//! An answer never waits for longer than [`LONGEST_WAIT`], nor do more than [`MOST_WAITING`]: who
//! asks for more is answered at once. Over TCP, connections are bounded (`streams`).

mod args;
mod datagrams;
mod rate;
mod streams;
mod wire;

pub use args::EchoArgs;
#[doc(hidden)]
pub use datagrams::{prepare, refusal};
pub use wire::{
    Answer, LENGTH, LONGEST_WAIT, MOST_WAITING, PORT, SHORTEST, answer, belong_together, request,
};

use std::fmt::Arguments;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result};

use sys::refusals::Refusals;

/// Answers until it is killed, or a signal ends it. `report` prints a line: where it listens, and
/// now and then and at the end what it has not answered.
pub fn serve(args: &EchoArgs, report: fn(Arguments<'_>)) -> Result<()> {
    let (udp, tcp) = bind(args)?;
    let refusals = Arc::new(Refusals::new("earmark echo", report));
    refusals.report_at_the_end().context("take signals")?;
    report(format_args!("echo on port {}, UDP and TCP; Ctrl-C ends it", args.port));
    let (allow, counted) = (args.allow.clone(), Arc::clone(&refusals));
    let serve = move || {
        let Err(error) = streams::serve(&tcp, &allow, &counted);
        report(format_args!("the echo over TCP has ended: {error}"));
    };
    thread::Builder::new().spawn(serve).context("start a thread")?;
    datagrams::serve(&udp, args, &refusals)
}

fn bind(args: &EchoArgs) -> Result<(UdpSocket, TcpListener)> {
    let port = args.port;
    // A kernel without IPv6 has the other kind of "everywhere".
    let everywhere = [IpAddr::from(Ipv6Addr::UNSPECIFIED), Ipv4Addr::UNSPECIFIED.into()];
    let ips = args.listen.map_or(everywhere.to_vec(), |ip| vec![ip]);
    let addresses: Vec<SocketAddr> = ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
    let udp = UdpSocket::bind(&addresses[..])
        .with_context(|| format!("bind UDP port {port}; choose another with --port"))?;
    let tcp = TcpListener::bind(&addresses[..])
        .with_context(|| format!("bind TCP port {port}; choose another with --port"))?;
    Ok((udp, tcp))
}

/// What tests of others use.
#[cfg(feature = "checks")]
pub mod checks {
    use super::*;

    /// An echo over UDP, until this process ends.
    ///
    /// # Panics
    /// If there is no port for it.
    pub fn start() -> SocketAddr {
        let args = EchoArgs {
            port: 0,
            listen: Some(Ipv4Addr::LOCALHOST.into()),
            allow: Vec::new(),
            rate: 1_000_000,
            work_us: 0,
            gather: 1,
            gather_us: 0,
        };
        let (udp, _) = bind(&args).unwrap();
        let address = udp.local_addr().unwrap();
        thread::spawn(move || datagrams::serve(&udp, &args, &Refusals::new("test", |_| ())));
        address
    }
}

#[cfg(test)]
mod tests {
    use super::wire::ANSWER;
    use super::*;

    #[test]
    fn answers_are_read_and_anything_else_is_not() {
        let mut bytes = request(7, 0);
        assert_eq!(answer(&bytes), Some(Answer { number: 7, times: None }));
        bytes[..4].copy_from_slice(&ANSWER);
        bytes[15] = 1;
        bytes[23] = 2;
        assert_eq!(answer(&bytes), Some(Answer { number: 7, times: Some((1, 2)) }));
        assert_eq!(answer(&bytes[..20]), None);
        assert_eq!(answer(b"something else that came here"), None);
    }
}
