//! What two ends of a measurement say to one another: one gives orders, the other follows them.
//!
//! ```text
//!   client                             server
//!     order: what to measure (JSON)  ─▶  posts its receives
//!     ready                          ◀─
//!     messages                       ─▶  each is answered, or
//!     done                           ◀─  all have come
//! ```

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use clap::Args;
use mx::address::Address;
use mx::config::Config;
use mx::ids::PeerId;
use mx::matching::Match;
use mx_io::discovery::{Peers, Target};
use mx_io::endpoint::{Completed, Endpoint, EndpointOptions, RequestId, WaitMode};
use mx_io::port::faulty::{Fault, Faults, FaultyPort, Tally};
use mx_io::port::{self, LAST_ENDPOINT, PortSpec, udp};
use mx_io::report::{Dumper, Reporter, dump_on, serve};
use serde::{Deserialize, Serialize};
use signal_hook::consts::SIGUSR1;
use signal_hook::flag;
use sys::signals::{ENDING, register};

use bench::marks::MarkNames;
use bench::options::Text;
use report::{errln, outln, output};

/// An endpoint as these commands use it.
type BytesEndpoint = Endpoint<Bytes, Vec<u8>>;

/// How long either side waits for the other one.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long hosts on the segment have to answer to their names.
const NAMES: Duration = Duration::from_secs(1);
/// How often one who waits for orders looks whether it has to end.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes of the longest order.
const MAX_ORDER: usize = 1024;
/// The largest message, in bytes, and all that is received at a time.
const MAX_BYTES: usize = 1 << 30;

const ORDER: u64 = 1;
const READY: u64 = 2;
/// Match information of what is measured.
const DATA: u64 = 3;
const DONE: u64 = 4;

/// How a thread waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Wait {
    /// Asleep, until the NIC interrupts
    #[default]
    Sleep,
    /// Looking again and again
    Spin,
    /// Looking for 50 us, then asleep
    Hybrid,
}

impl From<Wait> for WaitMode {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::Sleep => Self::Sleep,
            Wait::Spin => Self::Spin,
            Wait::Hybrid => Self::Hybrid(Duration::from_micros(50)),
        }
    }
}

/// An endpoint, and how it lives.
#[derive(Args, Debug)]
pub(super) struct EndArgs {
    /// Where frames travel: packet:IFACE, udp:ADDR:PORT, udp:IFACE or virtio:SOCKET
    #[arg(long, value_name = "PORT")]
    port: PortSpec,
    /// The number of this endpoint [default: the first from 1 that is free]
    #[arg(long)]
    endpoint: Option<u8>,
    /// The endpoint to measure with: HOST/ENDPOINT, MAC/ENDPOINT, or ADDR:PORT/ENDPOINT; without
    /// it, this is the one that others measure with
    #[arg(long, value_name = "PEER")]
    peer: Option<Target>,
    /// A file of hosts and their addresses, asked before the segment is
    #[arg(long, value_name = "FILE", requires = "peer")]
    peers_file: Option<PathBuf>,
    /// How to wait
    #[arg(long, value_enum, default_value_t)]
    wait: Wait,
    /// Frames that this endpoint marks: all, none, all-rendezvous (all but those), small+pull,
    /// all+halfway
    #[arg(long, value_name = "MARKS", default_value = "all")]
    marks: Text<MarkNames>,
    /// Lose, double or delay frames on purpose, such as drop:medium:100,duplicate:ack:7,delay:50
    #[arg(long, value_name = "FAULTS")]
    faults: Option<Text<Faults>>,
    /// Without --peer: end after the first client
    #[arg(long, conflicts_with = "peer")]
    once: bool,
}

/// An address as users of this port write it.
fn display(port: &PortSpec, address: Address) -> String {
    match port {
        PortSpec::Udp(_) | PortSpec::UdpOn { .. } => {
            format!("{}/{}", udp::socket_address(address.nic), address.endpoint)
        }
        PortSpec::Packet { .. } | PortSpec::Virtio(_) => address.to_string(),
    }
}

/// An endpoint that others may look at.
pub(super) struct Session {
    end: BytesEndpoint,
    tally: Option<Tally>,
    _dumper: Dumper,
    /// None if another endpoint of the same address is looked at already.
    _reporter: Option<Reporter>,
    over: Arc<AtomicBool>,
}

/// The one at the other end.
#[derive(Clone, Debug)]
pub(super) struct Partner {
    id: PeerId,
    /// Its address, as errors name it.
    name: String,
}

/// What is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Task {
    /// Bytes of each message.
    pub(super) size: usize,
    /// How many messages.
    pub(super) count: u64,
    /// How many receives are posted; 0: each message is answered before the next one comes.
    pub(super) depth: usize,
    /// Answers are synchronous sends, too.
    pub(super) synchronous: bool,
}

impl Session {
    fn open(args: &EndArgs) -> Result<Self> {
        let over = Arc::default();
        if args.peer.is_none() {
            // Before the endpoint has a thread, which signals would reach.
            register(ENDING, |signals| {
                let mut signals = signals.into_iter();
                signals.try_for_each(|signal| flag::register(signal, Arc::clone(&over)).map(drop))
            })
            .context("take signals")?;
        }
        let numbers = args.endpoint.map_or(1..=LAST_ENDPOINT, |number| number..=number);
        let mut port = port::open_free(&args.port, numbers)?;
        let mut tally = None;
        if let Some(Text(faults)) = &args.faults {
            let faulty = FaultyPort::new(port, faults);
            tally = Some(faulty.tally());
            port = Box::new(faulty);
        }
        let Text(MarkNames(marks)) = args.marks;
        let config = Config { mtu: port.mtu(), marks, ..Config::default() };
        let end = BytesEndpoint::open(
            port,
            config,
            EndpointOptions { waiting: args.wait.into(), ..EndpointOptions::default() },
        )?;
        let _dumper = dump_on(SIGUSR1, vec![end.observer()]).context("listen to SIGUSR1")?;
        let _reporter = serve(end.observer()).ok();
        Ok(Self { end, tally, _dumper, _reporter, over })
    }

    /// Lets `measure` measure with the peer that `args` name; without one, serves others that do.
    pub(super) fn run(
        args: &EndArgs,
        measure: impl FnOnce(&Self, &Partner) -> Result<()>,
    ) -> Result<()> {
        let session = Self::open(args)?;
        match &args.peer {
            Some(peer) => measure(&session, &session.connect(args, peer)?)?,
            None => session.serve(args)?,
        }
        session.close()
    }

    /// Connects to the one that measures with us.
    fn connect(&self, args: &EndArgs, peer: &Target) -> Result<Partner> {
        let file = args.peers_file.as_deref().map(Peers::read).transpose()?;
        let address = self.end.resolve(peer, &file.unwrap_or_default(), NAMES)?;
        let name = display(&args.port, address);
        let id = self.end.connect(address, 0, TIMEOUT).with_context(|| {
            format!(
                "reach {name}: start `earmark mx perf --port PORT` there, and give the address \
                 that it prints as --peer"
            )
        })?;
        Ok(Partner { id, name })
    }

    /// Asks the server to get ready.
    pub(super) fn order(&self, peer: &Partner, order: &Task) -> Result<()> {
        order.check()?;
        let ready = self.end.irecv(Some(peer.id), Match::exact(READY), Vec::new())?;
        let text = serde_json::to_vec(order)?;
        let sent = self.end.isend(peer.id, ORDER, text.into())?;
        self.wait(peer, sent)?;
        self.wait(peer, ready).map(drop)
    }

    /// Waits for the word that all has come.
    pub(super) fn expect_done(&self, peer: &Partner) -> Result<RequestId> {
        Ok(self.end.irecv(Some(peer.id), Match::exact(DONE), Vec::new())?)
    }

    /// Posts a receive of what is measured.
    pub(super) fn post(&self, peer: &Partner, memory: Vec<u8>) -> Result<RequestId> {
        Ok(self.end.irecv(Some(peer.id), Match::exact(DATA), memory)?)
    }

    /// Sends what is measured.
    pub(super) fn send(
        &self,
        peer: &Partner,
        message: Bytes,
        synchronous: bool,
    ) -> Result<RequestId> {
        Ok(if synchronous {
            self.end.issend(peer.id, DATA, message)?
        } else {
            self.end.isend(peer.id, DATA, message)?
        })
    }

    /// Sends all messages of a task, as many at a time as receives are posted; for how long, in
    /// seconds: from the first message to the word that all have come.
    pub(super) fn send_all(&self, peer: &Partner, task: &Task) -> Result<f64> {
        let done = self.expect_done(peer)?;
        self.order(peer, task)?;
        let message = Bytes::from(vec![0xa5; task.size]);
        let mut under_way = VecDeque::with_capacity(task.depth);
        let begin = Instant::now();
        for _ in 0..task.count {
            if under_way.len() == task.depth
                && let Some(oldest) = under_way.pop_front()
            {
                self.wait(peer, oldest)?;
            }
            under_way.push_back(self.send(peer, message.clone(), task.synchronous)?);
        }
        for sent in under_way {
            self.wait(peer, sent)?;
        }
        self.wait(peer, done)?;
        Ok(begin.elapsed().as_secs_f64())
    }

    /// Waits for a good end.
    pub(super) fn wait(&self, peer: &Partner, request: RequestId) -> Result<Completed<Vec<u8>>> {
        let what = || match request {
            RequestId::Send(_) => format!("send to {}", peer.name),
            RequestId::Receive(_) => format!("receive from {}", peer.name),
            RequestId::Connect(_) => format!("connect to {}", peer.name),
        };
        let Some(completed) = self.end.wait(request, Some(TIMEOUT))? else {
            bail!(
                "{}: nothing for {} s; is the other side still running?\n{}",
                what(),
                TIMEOUT.as_secs(),
                self.end.dump()
            );
        };
        if let Err(error) = completed.status.result {
            bail!("{}: {error}", what());
        }
        Ok(completed)
    }

    /// Follows orders until a signal ends it, or after the first client that has gone.
    fn serve(&self, args: &EndArgs) -> Result<()> {
        outln!("waiting at {}; Ctrl-C ends", display(&args.port, self.end.address()));
        let mut client = None;
        while let Some((id, order)) = self.next_order(client.filter(|_| args.once))? {
            client = Some(id);
            let address = self.end.address_of(id);
            let gone = || "a client that is gone".to_owned();
            let name = address.map_or_else(gone, |address| display(&args.port, address));
            // A client that goes away is no reason to end.
            if let Err(error) = self.obey(&Partner { id, name }, order) {
                errln!("earmark: obey {order:?}: {}", output::message(&error));
            }
        }
        Ok(())
    }

    /// The next order; `None` at the end, which is also that of the `only` client.
    fn next_order(&self, only: Option<PeerId>) -> Result<Option<(PeerId, Task)>> {
        let listen = || self.end.irecv(None, Match::exact(ORDER), vec![0; MAX_ORDER]);
        let mut request = listen()?;
        loop {
            if let Some(completed) = self.end.wait(request, Some(LOOK))? {
                match (Task::read(&completed), completed.status.peer) {
                    (Ok(order), Some(peer)) => return Ok(Some((peer, order))),
                    (Err(error), _) => errln!("earmark: {}", output::message(&error)),
                    (Ok(_), None) => {}
                }
                request = listen()?;
            }
            let gone = only.is_some_and(|only| self.end.peers().iter().all(|it| it.0 != only));
            if gone || self.over.load(Ordering::Relaxed) {
                self.end.forget(request);
                return Ok(None);
            }
        }
    }

    fn obey(&self, peer: &Partner, order: Task) -> Result<()> {
        let posted = (order.depth.max(1) as u64).min(order.count);
        let mut receives = (0..posted)
            .map(|_| self.post(peer, vec![0; order.size]))
            .collect::<Result<VecDeque<_>>>()?;
        let outcome = self.receive_all(peer, order, &mut receives);
        // Those of an order that failed must not take messages of the next one.
        for request in receives {
            if let RequestId::Receive(receive) = request {
                self.end.cancel(receive)?;
            }
            self.end.forget(request);
        }
        outcome
    }

    fn receive_all(
        &self,
        peer: &Partner,
        Task { size, count, depth, synchronous }: Task,
        receives: &mut VecDeque<RequestId>,
    ) -> Result<()> {
        self.notify(peer, READY)?;
        let answer = Bytes::from(vec![0x5a; size]);
        let posted = receives.len() as u64;
        for came in 0..count {
            let Some(receive) = receives.pop_front() else { break };
            let memory = self.wait(peer, receive)?.sink.unwrap_or_default();
            if came + posted < count {
                receives.push_back(self.post(peer, memory)?);
            }
            if depth == 0 {
                let sent = self.send(peer, answer.clone(), synchronous)?;
                self.wait(peer, sent)?;
            }
        }
        self.notify(peer, DONE)
    }

    fn notify(&self, peer: &Partner, what: u64) -> Result<()> {
        let sent = self.end.isend(peer.id, what, Bytes::new())?;
        self.wait(peer, sent).map(drop)
    }

    /// How many faults were made, if any were wanted.
    fn tell_faults(&self) {
        if let Some(tally) = &self.tally {
            let counts = Fault::ALL.map(|fault| format!("{} {}", fault.name(), tally.of(fault)));
            errln!("faults made: {}", counts.join(", "));
        }
    }

    /// Ends in good order.
    fn close(self) -> Result<()> {
        self.tell_faults();
        Ok(self.end.close(TIMEOUT)?)
    }
}

impl Task {
    fn read(completed: &Completed<Vec<u8>>) -> Result<Self> {
        let text = completed.sink.as_deref().unwrap_or_default();
        let text = text.get(..completed.status.transferred as usize).unwrap_or_default();
        let order: Self = serde_json::from_slice(text).context("read an order")?;
        order.check()?;
        Ok(order)
    }

    fn check(&self) -> Result<()> {
        let bytes = self.size.checked_mul(self.depth.max(1));
        ensure!(
            bytes.is_some_and(|bytes| bytes <= MAX_BYTES) && self.depth <= 4096,
            "{} messages of {} bytes at a time: at most 4096, and 1 GiB together",
            self.depth,
            self.size
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_that_take_all_memory_are_refused() {
        let good = Task { size: 1 << 20, count: 1, depth: 1024, synchronous: false };
        assert!(good.check().is_ok());
        for bad in [
            Task { depth: 1025, ..good },
            Task { size: usize::MAX, ..good },
            Task { size: 0, depth: 4097, ..good },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
