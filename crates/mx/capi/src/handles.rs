//! Handles, and what they stand for.
//!
//! A handle is a key of a table, dressed as a pointer. A key is never used for two objects (as far
//! as 31 bits of versions go), so one that is stale names nothing. Each endpoint has a table of
//! requests, and scrambles their keys in its own way, so that requests of others are none of its.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use mx::address::{Address, NicId};
use mx::ids::PeerId;
use mx::status::RequestError;
use mx_io::endpoint::{Completed, Endpoint, RequestId};
use mx_io::memory::Copies;
use slotmap::{Key, KeyData, SlotMap};

use crate::abi::{
    earmark_mx_endpoint_addr_t, earmark_mx_endpoint_t, earmark_mx_request_t, earmark_mx_status_t,
};
use crate::codes::{self, earmark_mx_return_t as Return};
use crate::guard::{Failure, guard};
use crate::library;
use crate::memory::{CallerSegments, Outgoing};

slotmap::new_key_type! {
    struct EndpointKey;

    pub(crate) struct RequestKey;
}

type Endpoints = SlotMap<EndpointKey, Arc<OpenEndpoint>>;
static ENDPOINTS: LazyLock<RwLock<Endpoints>> = LazyLock::new(RwLock::default);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Send,
    Receive,
    Connect(Address),
}

/// A request whose completion has not been returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) kind: Kind,
    pub(crate) context: usize,
    pub(crate) request: Option<RequestId>,
}

pub(crate) struct OpenEndpoint {
    pub(crate) mx: Endpoint<Outgoing, CallerSegments>,
    pub(crate) mtu: u16,
    /// The longest message that may be sent before anybody asks for it.
    pub(crate) eager_max: usize,
    pub(crate) close_timeout: Duration,
    pub(crate) copies: Arc<Copies>,
    requests: Mutex<SlotMap<RequestKey, Pending>>,
    /// Handles of requests and addresses are keys, with these bits turned.
    salt: u64,
    /// Peers whose address the program has, also when they are lost.
    addresses: RwLock<HashMap<PeerId, Address>>,
    pub(crate) connecting: Mutex<()>,
    /// How an attempt of such a thread ended, if another one came across it.
    pub(crate) connected: Mutex<Option<(PeerId, Result<(), RequestError>)>>,
    /// How often earmark_mx_wakeup() was called.
    pub(crate) wakeups: AtomicU64,
    pub(crate) closing: AtomicBool,
}

impl OpenEndpoint {
    pub(crate) fn new(
        mx: Endpoint<Outgoing, CallerSegments>,
        mtu: u16,
        eager_max: usize,
        close_timeout: Duration,
    ) -> Self {
        Self {
            mx,
            mtu,
            eager_max,
            close_timeout,
            copies: Arc::default(),
            requests: Mutex::default(),
            salt: salt(),
            addresses: RwLock::default(),
            connecting: Mutex::default(),
            connected: Mutex::default(),
            wakeups: AtomicU64::new(0),
            closing: AtomicBool::new(false),
        }
    }

    fn requests(&self) -> MutexGuard<'_, SlotMap<RequestKey, Pending>> {
        lock(&self.requests)
    }

    /// Makes a request: `make` gets the context under which its completion is known.
    pub(crate) fn make<E>(
        &self,
        kind: Kind,
        context: *mut c_void,
        make: impl FnOnce(u64) -> Result<RequestId, E>,
    ) -> Result<earmark_mx_request_t, E> {
        let pending = Pending { kind, context: context.addr(), request: None };
        // It may end, and be completed, before `make` returns.
        let key = self.requests().insert(pending);
        match make(key.data().as_ffi()) {
            Ok(request) => {
                if let Some(pending) = self.requests().get_mut(key) {
                    pending.request = Some(request);
                }
                Ok(self.handle(key))
            }
            Err(error) => {
                self.requests().remove(key);
                Err(error)
            }
        }
    }

    pub(crate) fn pending(
        &self,
        handle: earmark_mx_request_t,
    ) -> Result<(RequestKey, Pending, RequestId), Failure> {
        let key = RequestKey::from(KeyData::from_ffi(handle.addr() as u64 ^ self.salt));
        let pending = self.requests().get(key).copied();
        let found = pending.and_then(|pending| Some((key, pending, pending.request?)));
        found.ok_or_else(|| {
            let text = "this request is NULL, its end has been reported, or it is another \
                        endpoint's; set it to NULL when it ends";
            Failure::new(Return::EARMARK_MX_BAD_REQUEST, text)
        })
    }

    pub(crate) fn handle_of(&self, context: u64) -> Option<earmark_mx_request_t> {
        let key = RequestKey::from(KeyData::from_ffi(context));
        self.requests().contains_key(key).then(|| self.handle(key))
    }

    fn handle(&self, key: RequestKey) -> earmark_mx_request_t {
        without_provenance_mut((key.data().as_ffi() ^ self.salt) as usize)
    }

    pub(crate) fn remove(&self, key: RequestKey) {
        self.requests().remove(key);
    }

    pub(crate) fn connects_to(&self, address: Address) -> bool {
        self.requests().values().any(|pending| pending.kind == Kind::Connect(address))
    }

    /// Removes a request that has ended, and returns its status; `None` if its end is not to be
    /// reported.
    pub(crate) fn end(&self, completed: &Completed<CallerSegments>) -> Option<earmark_mx_status_t> {
        let Completed { request, status, .. } = completed;
        let key = RequestKey::from(KeyData::from_ffi(status.context));
        let Some(pending) = self.requests().remove(key) else {
            if let RequestId::Connect(peer) = request {
                *lock(&self.connected) = Some((*peer, status.result));
            }
            return None;
        };
        let source = status.peer.map_or_else(Default::default, |peer| self.address(peer));
        Some(earmark_mx_status_t {
            code: codes::of(status.result),
            flags: 0,
            source,
            match_info: status.match_info,
            msg_length: status.length,
            xfer_length: status.transferred,
            context: without_provenance_mut(pending.context),
            reserved: [0; 4],
        })
    }

    pub(crate) fn address(&self, peer: PeerId) -> earmark_mx_endpoint_addr_t {
        let known = |at: &RwLock<HashMap<PeerId, Address>>| {
            at.read().unwrap_or_else(PoisonError::into_inner).get(&peer).copied()
        };
        match known(&self.addresses) {
            Some(address) => self.addr(peer, address),
            None => self.give(peer, self.mx.address_of(peer).unwrap_or_default()),
        }
    }

    /// The address of a peer that is there, for the program.
    pub(crate) fn give(&self, peer: PeerId, address: Address) -> earmark_mx_endpoint_addr_t {
        let mut given = self.addresses.write().unwrap_or_else(PoisonError::into_inner);
        given.insert(peer, address);
        self.addr(peer, address)
    }

    fn addr(&self, peer: PeerId, address: Address) -> earmark_mx_endpoint_addr_t {
        addr(peer.data().as_ffi() ^ self.salt, address)
    }

    pub(crate) fn peer(&self, addr: earmark_mx_endpoint_addr_t) -> Result<PeerId, Failure> {
        let peer = PeerId::from(KeyData::from_ffi(addr.stuff[0] ^ self.salt));
        let given = self.addresses.read().unwrap_or_else(PoisonError::into_inner);
        if addr.stuff[0] != 0 && given.contains_key(&peer) {
            return Ok(peer);
        }
        let text = format!(
            "{} is no address that this endpoint has given; connect to it first",
            place_of(addr)
        );
        Err(Failure::new(Return::EARMARK_MX_BAD_ADDRESS, text))
    }
}

/// Takes a lock, whatever panicked in there: what it guards is whole after each single step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bits that no other endpoint has, by Knuth's multiplicative hash.
fn salt() -> u64 {
    /// The lowest bit of a version, which every key has.
    const VERSION: u64 = 1 << 32;
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !VERSION
}

/// An address for C. Its peer is 0 for that of an endpoint itself.
pub(crate) fn addr(peer: u64, address: Address) -> earmark_mx_endpoint_addr_t {
    let place = nic_number(address.nic) << 8 | u64::from(address.endpoint);
    earmark_mx_endpoint_addr_t { stuff: [peer, place] }
}

pub(crate) const fn place_of(addr: earmark_mx_endpoint_addr_t) -> Address {
    Address { nic: nic_of(addr.stuff[1] >> 8), endpoint: addr.stuff[1] as u8 }
}

pub(crate) const fn nic_number(nic: NicId) -> u64 {
    let [a, b, c, d, e, f] = nic.0;
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

pub(crate) const fn nic_of(number: u64) -> NicId {
    let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
    NicId([a, b, c, d, e, f])
}

pub(crate) fn endpoint(handle: earmark_mx_endpoint_t) -> Result<Arc<OpenEndpoint>, Failure> {
    let endpoints = ENDPOINTS.read().unwrap_or_else(PoisonError::into_inner);
    let open = endpoints.get(key_of(handle)).map(Arc::clone);
    open.ok_or_else(|| no_endpoint(handle))
}

/// Runs a call on the endpoint of a handle; see [`guard`].
pub(crate) fn on(
    handle: earmark_mx_endpoint_t,
    call: impl FnOnce(&OpenEndpoint) -> Result<(), Failure>,
) -> Return {
    guard(|| call(&*endpoint(handle)?))
}

pub(crate) fn add(open: OpenEndpoint) -> earmark_mx_endpoint_t {
    let mut endpoints = ENDPOINTS.write().unwrap_or_else(PoisonError::into_inner);
    without_provenance_mut(endpoints.insert(Arc::new(open)).data().as_ffi() as usize)
}

pub(crate) fn take(handle: earmark_mx_endpoint_t) -> Result<Arc<OpenEndpoint>, Failure> {
    let mut endpoints = ENDPOINTS.write().unwrap_or_else(PoisonError::into_inner);
    endpoints.remove(key_of(handle)).ok_or_else(|| no_endpoint(handle))
}

pub(crate) fn count() -> usize {
    ENDPOINTS.read().unwrap_or_else(PoisonError::into_inner).len()
}

fn key_of(handle: earmark_mx_endpoint_t) -> EndpointKey {
    EndpointKey::from(KeyData::from_ffi(handle.addr() as u64))
}

fn no_endpoint(handle: earmark_mx_endpoint_t) -> Failure {
    library::check().err().unwrap_or_else(|| {
        let text = format!("no endpoint is {handle:p}: NULL, or closed; open one first");
        Failure::new(Return::EARMARK_MX_BAD_ENDPOINT, text)
    })
}
