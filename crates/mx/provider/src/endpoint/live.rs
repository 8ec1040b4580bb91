//! An endpoint that is enabled.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use libc::EINVAL;
use mx::address::Address;
use mx::config::Config;
use mx::ids::{MessageId, PeerId};
use mx_io::endpoint::{Endpoint, EndpointOptions, MxError};
use mx_io::port::faulty::FaultyPort;
use mx_io::port::{LAST_ENDPOINT, open_free};

use super::object::{CompletionSide, Setup};
use crate::av::Addresses;
use crate::bits::HEADER;
use crate::bound::Driven;
use crate::cntr::Counter;
use crate::fault::{self, warn};
use crate::message::{Backlog, Outgoing, ReceiveBuffer};
use crate::regions::Regions;
use crate::settings::ProviderSettings;

pub(super) type Turn<'a> = mx_io::endpoint::Turn<'a, Outgoing, ReceiveBuffer>;

const BATCH: usize = 64;
/// How long an endpoint that is closed waits for its peers to have everything.
const LINGER: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectedPeer {
    pub(super) id: PeerId,
    pub(super) is_self: bool,
}

pub(crate) struct Live {
    pub(super) mx: Endpoint<Outgoing, ReceiveBuffer>,
    pub(super) address: Address,
    pub(super) addresses: Arc<Addresses>,
    peers: RwLock<Vec<Option<ConnectedPeer>>>,
    pub(super) tx: CompletionSide,
    pub(super) rx: CompletionSide,
    pub(super) writes: Option<Arc<Counter>>,
    pub(super) reads: Option<Arc<Counter>>,
    /// The memory that peers may use.
    pub(super) regions: Arc<Regions>,
    pub(super) transfers: AtomicU32,
    pub(super) reports_sources: bool,
    /// Receives may name the peer that they want messages from.
    pub(super) directed: bool,
    pub(super) backlog: Backlog,
    /// Messages that were claimed, by the context of the receive that did.
    pub(super) claims: Mutex<HashMap<usize, MessageId>>,
    /// A buffer for several messages is given back when less than this is left of it.
    pub(super) least_left: AtomicUsize,
    pub(super) eager_max: usize,
    settings: &'static ProviderSettings,
}

impl Driven for Live {
    fn progress(&self) {
        self.pass_on();
    }

    fn ring_next(&self) -> bool {
        // What is broken is reported to a caller that reads.
        self.mx.ring_next().unwrap_or(false)
    }
}

impl Live {
    /// Opens an endpoint on the port that the settings name, with the first number that is free.
    pub(super) fn open(
        settings: &'static ProviderSettings,
        addresses: Arc<Addresses>,
        setup: Setup,
    ) -> Result<Self, MxError> {
        let Setup { tx, rx, writes, reads, regions, directed, reports_sources, least_left, .. } =
            setup;
        let mut port = open_free(&settings.port, 0..=LAST_ENDPOINT)?;
        if !settings.faults.rules().is_empty() {
            port = Box::new(FaultyPort::new(port, &settings.faults));
        }
        let config = Config {
            mtu: port.mtu(),
            small_max: 512,
            // Of 32 KiB, as programs and MPIs send them.
            eager_max: HEADER as u32 + (32 << 10),
            head: HEADER as u8,
            peer_timeout: span(settings.peer_timeout),
            ..Config::default()
        };
        let mtu = port.mtu();
        let mx = Endpoint::open(port, config, EndpointOptions::default())?;
        let address = mx.address();
        if settings.verbose {
            warn(&format!("endpoint {address} on {}, MTU {mtu}", settings.port));
        }
        Ok(Self {
            mx,
            address,
            addresses,
            peers: RwLock::default(),
            tx,
            rx,
            writes,
            reads,
            regions,
            transfers: AtomicU32::new(0),
            reports_sources,
            directed,
            backlog: Backlog::default(),
            claims: Mutex::default(),
            least_left: AtomicUsize::new(least_left),
            eager_max: config.eager_max as usize,
            settings,
        })
    }

    /// The peer at this address of the user's. It is connected the first time it is needed, and
    /// messages wait until it is.
    pub(super) fn peer(&self, number: u64) -> Result<ConnectedPeer, c_int> {
        let index = usize::try_from(number).map_err(|_| EINVAL)?;
        let known = self.peers.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(peer)) = known.get(index) {
            return Ok(*peer);
        }
        drop(known);
        let address = self.addresses.get(number).ok_or(EINVAL)?;
        let timeout = span(self.settings.peer_timeout);
        let key = Config::default().key;
        let connect = self.mx.with_engine(|engine, now| engine.connect(now, address, key, timeout));
        let id = connect.map_err(|error| fault::of_error(&error))?;
        let peer = ConnectedPeer { id, is_self: address == self.address };
        let mut peers = self.peers.write().unwrap_or_else(PoisonError::into_inner);
        if peers.len() <= index {
            peers.resize(index + 1, None);
        }
        peers[index] = Some(peer);
        Ok(peer)
    }

    pub(super) fn drain(&self) {
        while self.pass_on() > 0 {}
    }

    /// Passes on some of what has ended, and says how many they were.
    fn pass_on(&self) -> usize {
        let passed = self.mx.drain(BATCH, |turn, end| self.ended(turn, end));
        passed.unwrap_or_else(|error| {
            // Every request is refused from now on, which programs may not notice if they only
            // wait: this is reported once.
            fault::of_error(&error);
            0
        })
    }

    /// Closes the endpoint, and waits a while for its peers to have everything.
    pub(super) fn close(self) {
        let (address, verbose) = (self.address, self.settings.verbose);
        let (counters, port) = self.mx.counters();
        if let Err(error) = self.mx.close(LINGER) {
            warn(&error.to_string());
        }
        if verbose {
            warn(&format!(
                "endpoint {address} closed: {} messages sent, {} received, {} frames resent, {} \
                 frames lost for want of room",
                counters.messages_sent, counters.messages_received, counters.resent, port.overrun
            ));
        }
    }
}

fn span(span: Duration) -> base::time::Duration {
    base::time::Duration::from_nanos(span.as_nanos().try_into().unwrap_or(u64::MAX))
}
