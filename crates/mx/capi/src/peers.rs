//! Peers: connecting to them, their addresses, what the program keeps of them, hosts by name.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr::without_provenance_mut;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mx::address::Address;
use mx::status::RequestError;
use mx_io::discovery::DiscoveredEndpoint;
use mx_io::endpoint::{Label, MxError, RequestId};

use crate::abi::{
    EARMARK_MX_INFINITE, earmark_mx_endpoint_addr_t, earmark_mx_endpoint_t, earmark_mx_request_t,
};
use crate::codes::{Return, earmark_mx_return_t};
use crate::guard::{Failure, give, guard, place};
use crate::handles::{self, Kind, OpenEndpoint, lock, nic_number, nic_of, place_of};

/// How long one who connects leaves the end of that to others who wait.
const SLICE: Duration = Duration::from_millis(5);
/// As good as for ever.
const LONG: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// A timeout in milliseconds; nothing if it is never over.
pub(crate) fn timeout(milliseconds: u32) -> Option<Duration> {
    (milliseconds != EARMARK_MX_INFINITE).then(|| Duration::from_millis(milliseconds.into()))
}

/// Connects to the endpoint with this number at this interface, which has to have this key. The
/// timeout is in milliseconds. Connecting to a peer that there is already finds out whether it
/// still is.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_connect(
    endpoint: earmark_mx_endpoint_t,
    nic_id: u64,
    endpoint_id: u32,
    key: u32,
    timeout: u32,
    addr: Option<&mut MaybeUninit<earmark_mx_endpoint_addr_t>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let addr = place(addr, "addr")?;
        let address = address(nic_id, endpoint_id)?;
        addr.write(connect(open, address, key, self::timeout(timeout).unwrap_or(LONG))?);
        Ok(())
    })
}

/// Begins to connect; the request ends when that is done, after the timeout at the latest, and its
/// status has the address of the peer. EARMARK_MX_STATUS_RESTARTED: there was a connection to an
/// earlier life of the peer, begin again.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_iconnect(
    endpoint: earmark_mx_endpoint_t,
    nic_id: u64,
    endpoint_id: u32,
    key: u32,
    timeout: u32,
    match_info: u64,
    context: *mut c_void,
    request: Option<&mut MaybeUninit<earmark_mx_request_t>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let request = place(request, "request")?;
        let address = address(nic_id, endpoint_id)?;
        let _alone = lock(&open.connecting);
        alone(open, address)?;
        let span = self::timeout(timeout).unwrap_or(LONG);
        request.write(open.make(Kind::Connect(address), context, |context| {
            open.mx.iconnect_with(address, key, span, Label { match_info, context })
        })?);
        Ok(())
    })
}

/// The address of this endpoint itself. To send to oneself, connect to it first.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_get_endpoint_addr(
    endpoint: earmark_mx_endpoint_t,
    addr: Option<&mut MaybeUninit<earmark_mx_endpoint_addr_t>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        place(addr, "addr")?.write(handles::addr(0, open.mx.address()));
        Ok(())
    })
}

/// The interface and the number of the endpoint at an address.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_decompose_endpoint_addr(
    addr: earmark_mx_endpoint_addr_t,
    nic_id: Option<&mut MaybeUninit<u64>>,
    endpoint_id: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    guard(|| {
        let Address { nic, endpoint } = place_of(addr);
        give(nic_id, nic_number(nic));
        give(endpoint_id, endpoint.into());
        Ok(())
    })
}

/// Gives a pointer of the program's to a peer.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_set_endpoint_addr_context(
    endpoint: earmark_mx_endpoint_t,
    addr: earmark_mx_endpoint_addr_t,
    context: *mut c_void,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let is_there = open.mx.set_peer_context(open.peer(addr)?, context.addr() as u64);
        if is_there { Ok(()) } else { Err(no_peer(addr)) }
    })
}

/// The pointer that the program gave to a peer; NULL before that.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_get_endpoint_addr_context(
    endpoint: earmark_mx_endpoint_t,
    addr: earmark_mx_endpoint_addr_t,
    context: Option<&mut MaybeUninit<*mut c_void>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let context = place(context, "context")?;
        let found = open.mx.peer_context(open.peer(addr)?).ok_or_else(|| no_peer(addr))?;
        context.write(without_provenance_mut(found as usize));
        Ok(())
    })
}

/// The interface of the host with this name, by asking for it, for so many milliseconds at most;
/// the number is that of its lowest endpoint. Over udp no host can be asked.
///
/// # Safety
/// `name` is NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn earmark_mx_hostname_to_nic_id(
    endpoint: earmark_mx_endpoint_t,
    name: *const c_char,
    timeout: u32,
    nic_id: Option<&mut MaybeUninit<u64>>,
    endpoint_id: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        if name.is_null() {
            let text = "name of a host is NULL; pass one";
            return Err(Failure::new(Return::EARMARK_MX_BAD_ARGUMENT, text));
        }
        // SAFETY: it is a string.
        // JUSTIFICATION: C passes strings by their address.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let found = search(open, Some(&name), timeout, |_| true)?;
        let Some(DiscoveredEndpoint { address, .. }) = found else {
            let text = format!(
                "host {name}: no host of that name has answered; see who does: \
                 earmark mx peers --port packet:IFACE"
            );
            return Err(Failure::new(Return::EARMARK_MX_HOST_NOT_FOUND, text));
        };
        give(nic_id, nic_number(address.nic));
        give(endpoint_id, address.endpoint.into());
        Ok(())
    })
}

/// The name of the host that has this interface, by asking for it; it is cut off where there is no
/// room.
///
/// # Safety
/// `name` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn earmark_mx_nic_id_to_hostname(
    endpoint: earmark_mx_endpoint_t,
    nic_id: u64,
    timeout: u32,
    name: *mut c_char,
    size: usize,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let found = search(open, None, timeout, |found| found.address.nic == nic_of(nic_id))?;
        let Some(found) = found else {
            let text = format!("interface {}: no endpoint there has answered", nic_of(nic_id));
            return Err(Failure::new(Return::EARMARK_MX_HOST_NOT_FOUND, text));
        };
        // SAFETY: there is room for so many bytes.
        // JUSTIFICATION: C passes memory by its address.
        unsafe { put_text(&found.host, name, size) };
        Ok(())
    })
}

/// Writes a text and a zero where there is room for `size` bytes.
///
/// # Safety
/// `at` is NULL or has room for `size` bytes.
pub(crate) unsafe fn put_text(text: &str, at: *mut c_char, size: usize) {
    if at.is_null() || size == 0 {
        return;
    }
    let length = text.len().min(size - 1);
    let bytes = text.as_ptr();
    // SAFETY: `length` is below the room, and no more than the text has.
    // JUSTIFICATION: C passes memory by its address.
    unsafe { std::ptr::copy_nonoverlapping(bytes, at.cast::<u8>(), length) };
    // SAFETY: as above: there is room for one more.
    // JUSTIFICATION: as above.
    unsafe { at.wrapping_add(length).write(0) };
}

/// The first endpoint of a host, or of all, that fits.
fn search(
    open: &OpenEndpoint,
    host: Option<&str>,
    milliseconds: u32,
    fits: impl Fn(&DiscoveredEndpoint) -> bool,
) -> Result<Option<DiscoveredEndpoint>, Failure> {
    // A search without a time limit asks in rounds.
    let until = timeout(milliseconds).map(|span| Instant::now() + span);
    loop {
        let left = until.map_or(LONG, |until| until.saturating_duration_since(Instant::now()));
        let round = left.min(Duration::from_millis(300));
        let found = open.mx.discover(host, round)?.into_iter().find(|found| fits(found));
        if found.is_some() || left.is_zero() || open.closing.load(Ordering::Acquire) {
            return Ok(found);
        }
    }
}

fn connect(
    open: &OpenEndpoint,
    address: Address,
    key: u32,
    span: Duration,
) -> Result<earmark_mx_endpoint_addr_t, Failure> {
    let _alone = lock(&open.connecting);
    alone(open, address)?;
    let until = Instant::now() + span;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        *lock(&open.connected) = None;
        let request = open.mx.iconnect(address, key, left)?;
        let result = connected(open, request, until)?;
        match (result, request) {
            (Ok(()), RequestId::Connect(peer)) => return Ok(open.give(peer, address)),
            // That was a connection to an earlier life, which is over.
            (Err(error), _) if !error.is_of_earlier_instance() || Instant::now() >= until => {
                return Err(MxError::Connect { address, error }.into());
            }
            _ => {}
        }
    }
}

/// How an attempt ends. A thread that waits for any request may get the completion in place of this
/// one.
fn connected(
    open: &OpenEndpoint,
    request: RequestId,
    until: Instant,
) -> Result<Result<(), RequestError>, Failure> {
    loop {
        // The engine ends the attempt in time; this is for an end that went astray.
        let left = (until + SLICE).saturating_duration_since(Instant::now());
        let completed = open.mx.wait(request, Some(left.min(SLICE)))?;
        let elsewhere = || {
            let seen = *lock(&open.connected);
            seen.filter(|(peer, _)| RequestId::Connect(*peer) == request).map(|(_, result)| result)
        };
        if let Some(result) = completed.map(|completed| completed.status.result).or_else(elsewhere)
        {
            return Ok(result);
        }
        if open.closing.load(Ordering::Acquire) {
            return Ok(Err(RequestError::Aborted));
        }
        if left.is_zero() {
            open.mx.forget(request);
            return Ok(Err(RequestError::Timeout));
        }
    }
}

/// An error if a request connects to this address: both would wait for one completion.
fn alone(open: &OpenEndpoint, address: Address) -> Result<(), Failure> {
    if open.connects_to(address) {
        let text = format!("connect to {address}: a request does so already; wait for that one");
        return Err(Failure::new(Return::EARMARK_MX_BUSY, text));
    }
    Ok(())
}

fn address(nic_id: u64, endpoint_id: u32) -> Result<Address, Failure> {
    let endpoint = u8::try_from(endpoint_id).ok().filter(|_| nic_id >> 48 == 0);
    let endpoint = endpoint.ok_or_else(|| {
        let text = format!(
            "connect to {nic_id:#x}/{endpoint_id}: an interface has 48 bits, an endpoint is 0 to 254"
        );
        Failure::new(Return::EARMARK_MX_BAD_ARGUMENT, text)
    })?;
    Ok(Address { nic: nic_of(nic_id), endpoint })
}

fn no_peer(addr: earmark_mx_endpoint_addr_t) -> Failure {
    let text = format!("{} is no peer, or lost; connect to it", place_of(addr));
    Failure::new(Return::EARMARK_MX_BAD_ADDRESS, text)
}
