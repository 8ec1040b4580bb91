//! Sends and receives.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use mx::ids::PeerId;
use mx::matching::Match;
use mx_io::endpoint::{MxError, RequestId};

use crate::abi::{
    earmark_mx_endpoint_addr_t, earmark_mx_endpoint_t, earmark_mx_request_t, earmark_mx_segment_t,
};
use crate::codes::earmark_mx_return_t;
use crate::guard::{Failure, place};
use crate::handles::{self, Kind, OpenEndpoint};
use crate::memory::{CallerSegments, Outgoing, lent};

/// Sends a message. The request ends when its memory may be used again; whether the message was
/// received only earmark_mx_issend() tells. Without a request the end is not reported, and the
/// memory may be used again when this returns.
///
/// # Safety
/// The list has so many segments, and their memory stays as it is until the request has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn earmark_mx_isend(
    endpoint: earmark_mx_endpoint_t,
    segments: *const earmark_mx_segment_t,
    segments_count: u32,
    destination: earmark_mx_endpoint_addr_t,
    match_info: u64,
    context: *mut c_void,
    request: Option<&mut MaybeUninit<earmark_mx_request_t>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let from = lent!(segments, segments_count)?;
        send(open, destination, match_info, from, false, Issue { context, request })
    })
}

/// Sends a message. The request ends when the message was received.
///
/// # Safety
/// As for earmark_mx_isend().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn earmark_mx_issend(
    endpoint: earmark_mx_endpoint_t,
    segments: *const earmark_mx_segment_t,
    segments_count: u32,
    destination: earmark_mx_endpoint_addr_t,
    match_info: u64,
    context: *mut c_void,
    request: Option<&mut MaybeUninit<earmark_mx_request_t>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let from = lent!(segments, segments_count)?;
        send(open, destination, match_info, from, true, Issue { context, request })
    })
}

/// Receives the first message that fits: one whose match information, as far as the mask has bits,
/// is this. Messages come from anybody.
///
/// # Safety
/// The list has so many segments, and their memory is left alone until the request has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn earmark_mx_irecv(
    endpoint: earmark_mx_endpoint_t,
    segments: *const earmark_mx_segment_t,
    segments_count: u32,
    match_info: u64,
    match_mask: u64,
    context: *mut c_void,
    request: Option<&mut MaybeUninit<earmark_mx_request_t>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let into = lent!(segments, segments_count)?;
        let wanted = Match { info: match_info, mask: match_mask };
        receive(open, None, wanted, into, Issue { context, request })
    })
}

/// Receives the first message that fits and that comes from this peer.
///
/// # Safety
/// As for earmark_mx_irecv().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn earmark_mx_irecv_from(
    endpoint: earmark_mx_endpoint_t,
    segments: *const earmark_mx_segment_t,
    segments_count: u32,
    source: earmark_mx_endpoint_addr_t,
    match_info: u64,
    match_mask: u64,
    context: *mut c_void,
    request: Option<&mut MaybeUninit<earmark_mx_request_t>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let into = lent!(segments, segments_count)?;
        let source = Some(open.peer(source)?);
        let wanted = Match { info: match_info, mask: match_mask };
        receive(open, source, wanted, into, Issue { context, request })
    })
}

fn send(
    open: &OpenEndpoint,
    destination: earmark_mx_endpoint_addr_t,
    match_info: u64,
    from: CallerSegments,
    synchronous: bool,
    issue: Issue<'_>,
) -> Result<(), Failure> {
    let peer = open.peer(destination)?;
    let is_eager = !synchronous && from.length() <= open.eager_max;
    // An eager message is read again after its end, so it is copied; of what is announced, its
    // receiver says when it has all. With many copies on their way, nothing more is sent eagerly.
    let announces = synchronous || is_eager && open.copies.are_many() && issue.request.is_some();
    let copies = issue.request.is_none() || is_eager && !announces;
    let source = if copies { Outgoing::copied(&from, &open.copies) } else { Outgoing::Lent(from) };
    let send = |context| {
        let sent = open.mx.with_engine(|engine, now| {
            if announces {
                engine.issend(now, peer, match_info, source, context)
            } else {
                engine.isend(now, peer, match_info, source, context)
            }
        });
        sent.map(RequestId::Send)
    };
    issue.make(open, Kind::Send, send)
}

fn receive(
    open: &OpenEndpoint,
    source: Option<PeerId>,
    wanted: Match,
    into: CallerSegments,
    issue: Issue<'_>,
) -> Result<(), Failure> {
    // Without one, no end would say when the memory may be read.
    let request = Some(place(issue.request, "request")?);
    let receive = |context| {
        let posted =
            open.mx.with_engine(|engine, now| engine.irecv(now, source, wanted, into, context));
        posted.map(RequestId::Receive)
    };
    Issue { request, ..issue }.make(open, Kind::Receive, receive)
}

/// What the program gives for a request: its context, and a place for the handle.
struct Issue<'a> {
    context: *mut c_void,
    request: Option<&'a mut MaybeUninit<earmark_mx_request_t>>,
}

impl Issue<'_> {
    /// Makes a request; without a place for its handle, its end is not reported.
    fn make(
        self,
        open: &OpenEndpoint,
        kind: Kind,
        make: impl FnOnce(u64) -> Result<RequestId, MxError>,
    ) -> Result<(), Failure> {
        match self.request {
            Some(place) => {
                place.write(open.make(kind, self.context, make)?);
            }
            None => open.mx.forget(make(0)?),
        }
        Ok(())
    }
}
