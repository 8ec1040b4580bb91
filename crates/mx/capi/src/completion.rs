//! Completions: each is returned once, and then the request is gone.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mx::matching::Match;
use mx_io::endpoint::{Completed, MxError, RequestId};

use crate::abi::{earmark_mx_endpoint_t, earmark_mx_request_t, earmark_mx_status_t};
use crate::codes::{Return, earmark_mx_return_t};
use crate::guard::{Failure, give, guard, place};
use crate::handles::{self, Kind, OpenEndpoint};
use crate::memory::CallerSegments;
use crate::peers::timeout;

/// Whether a request has ended. If so, result is 1, the status is filled in, and the request is
/// NULL from then on; otherwise result is 0.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_test(
    endpoint: earmark_mx_endpoint_t,
    request: Option<&mut earmark_mx_request_t>,
    status: Option<&mut MaybeUninit<earmark_mx_status_t>>,
    result: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    one(endpoint, request, status, result, |open, wanted| open.mx.test(wanted))
}

/// Waits until a request has ended, for so many milliseconds, or EARMARK_MX_INFINITE. Otherwise as
/// earmark_mx_test(): a timeout is no error, and neither is earmark_mx_wakeup().
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_wait(
    endpoint: earmark_mx_endpoint_t,
    request: Option<&mut earmark_mx_request_t>,
    timeout: u32,
    status: Option<&mut MaybeUninit<earmark_mx_status_t>>,
    result: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    one(endpoint, request, status, result, |open, wanted| {
        open.mx.wait(wanted, self::timeout(timeout))
    })
}

/// Whether any request has ended whose match information, as far as the mask has bits, is this:
/// that of the message, or for connecting that of the request.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_test_any(
    endpoint: earmark_mx_endpoint_t,
    match_info: u64,
    match_mask: u64,
    status: Option<&mut MaybeUninit<earmark_mx_status_t>>,
    result: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let answer = Answer::new(status, result)?;
        let wanted = matching(match_info, match_mask)?;
        answer.write(open, any(open, || open.mx.test_any(wanted))?).map(drop)
    })
}

/// Waits until any request has ended that fits, as for earmark_mx_test_any(), with a timeout as for
/// earmark_mx_wait().
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_wait_any(
    endpoint: earmark_mx_endpoint_t,
    timeout: u32,
    match_info: u64,
    match_mask: u64,
    status: Option<&mut MaybeUninit<earmark_mx_status_t>>,
    result: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let answer = Answer::new(status, result)?;
        let wanted = matching(match_info, match_mask)?;
        let until = self::timeout(timeout).map(|span| Instant::now() + span);
        let left = || until.map(|until| until.saturating_duration_since(Instant::now()));
        let ended = any(open, || open.mx.wait_any(wanted, left()))?;
        answer.write(open, ended).map(drop)
    })
}

/// The request that has ended first, of those whose end has not been reported; its end is still to
/// be tested. Result is 0 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_ipeek(
    endpoint: earmark_mx_endpoint_t,
    request: Option<&mut MaybeUninit<earmark_mx_request_t>>,
    result: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    earmark_mx_peek(endpoint, 0, request, result)
}

/// Waits until any request has ended, and tells which as earmark_mx_ipeek(), with a timeout as for
/// earmark_mx_wait().
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_peek(
    endpoint: earmark_mx_endpoint_t,
    timeout: u32,
    request: Option<&mut MaybeUninit<earmark_mx_request_t>>,
    result: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let (request, result) = (place(request, "request")?, place(result, "result")?);
        open.mx.progress()?;
        let context = open.mx.peek_context(self::timeout(timeout))?;
        let handle = context.and_then(|context| open.handle_of(context));
        result.write(handle.is_some().into());
        match handle {
            Some(handle) => {
                request.write(handle);
                Ok(())
            }
            None => goes_on(open),
        }
    })
}

/// The context that a request was given.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_context(
    endpoint: earmark_mx_endpoint_t,
    request: earmark_mx_request_t,
    context: Option<&mut MaybeUninit<*mut c_void>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let context = place(context, "context")?;
        let (_, pending, _) = open.pending(request)?;
        context.write(without_provenance_mut(pending.context));
        Ok(())
    })
}

/// Takes back a receive that no message has come for, or stops waiting for a connection. If that is
/// done, result is 1 and the request is NULL: its end is not reported. If it is too late, result
/// is 0, and the request will end. A send cannot be cancelled.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_cancel(
    endpoint: earmark_mx_endpoint_t,
    request: Option<&mut earmark_mx_request_t>,
    result: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let (request, result) = (held(request)?, place(result, "result")?);
        let (key, pending, wanted) = open.pending(*request)?;
        if pending.kind == Kind::Send {
            let text = "a send cannot be cancelled; wait for it, or forget it";
            return Err(Failure::new(Return::EARMARK_MX_BAD_REQUEST, text));
        }
        let cancelled = open.mx.withdraw(wanted)?;
        if cancelled {
            open.remove(key);
            *request = null_mut();
        }
        result.write(cancelled.into());
        Ok(())
    })
}

/// The end of this request is not reported. Its memory has to stay until the endpoint is closed.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_forget(
    endpoint: earmark_mx_endpoint_t,
    request: Option<&mut earmark_mx_request_t>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let request = held(request)?;
        let (key, _, wanted) = open.pending(*request)?;
        open.mx.forget(wanted);
        open.remove(key);
        *request = null_mut();
        Ok(())
    })
}

/// Lets all threads that wait on this endpoint return, with result 0.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_wakeup(endpoint: earmark_mx_endpoint_t) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        open.wakeups.fetch_add(1, Ordering::AcqRel);
        open.mx.wakeup();
        Ok(())
    })
}

/// Receives and sends what there is. Only an endpoint with EARMARK_MX_PROGRESS_MANUAL needs it.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_progress(endpoint: earmark_mx_endpoint_t) -> earmark_mx_return_t {
    guard(|| {
        handles::endpoint(endpoint)?.mx.progress()?;
        Ok(())
    })
}

fn held(request: Option<&mut earmark_mx_request_t>) -> Result<&mut earmark_mx_request_t, Failure> {
    request.ok_or_else(|| {
        let text = "request is NULL; pass the address of the variable that holds it";
        Failure::new(Return::EARMARK_MX_BAD_ARGUMENT, text)
    })
}

fn matching(match_info: u64, match_mask: u64) -> Result<Match, Failure> {
    if match_info & !match_mask == 0 {
        return Ok(Match { info: match_info, mask: match_mask });
    }
    let text =
        format!("match information {match_info:#x} has bits outside the mask {match_mask:#x}");
    Err(Failure::new(Return::EARMARK_MX_BAD_MATCH_MASK, text))
}

/// Where a call says whether a request has ended, and how.
pub(crate) struct Answer<'a> {
    status: Option<&'a mut MaybeUninit<earmark_mx_status_t>>,
    result: &'a mut MaybeUninit<u32>,
}

impl<'a> Answer<'a> {
    pub(crate) fn new(
        status: Option<&'a mut MaybeUninit<earmark_mx_status_t>>,
        result: Option<&'a mut MaybeUninit<u32>>,
    ) -> Result<Self, Failure> {
        Ok(Self { status, result: place(result, "result")? })
    }

    /// Writes the status of a request that has ended; whether there is one. If there is none, it
    /// is an error that the endpoint is being closed.
    pub(crate) fn write(
        self,
        open: &OpenEndpoint,
        ended: Option<earmark_mx_status_t>,
    ) -> Result<bool, Failure> {
        self.result.write(ended.is_some().into());
        match ended {
            Some(ended) => give(self.status, ended),
            None => goes_on(open)?,
        }
        Ok(ended.is_some())
    }
}

type Ended = Result<Option<Completed<CallerSegments>>, MxError>;

/// The end of one request, which `look` looks for; the request is NULL from then on.
fn one(
    endpoint: earmark_mx_endpoint_t,
    request: Option<&mut earmark_mx_request_t>,
    status: Option<&mut MaybeUninit<earmark_mx_status_t>>,
    result: Option<&mut MaybeUninit<u32>>,
    look: impl FnOnce(&OpenEndpoint, RequestId) -> Ended,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let (request, answer) = (held(request)?, Answer::new(status, result)?);
        let (_, _, wanted) = open.pending(*request)?;
        let ended = look(open, wanted)?.and_then(|completed| open.end(&completed));
        if answer.write(open, ended)? {
            *request = null_mut();
        }
        Ok(())
    })
}

fn any(
    open: &OpenEndpoint,
    take: impl Fn() -> Ended,
) -> Result<Option<earmark_mx_status_t>, Failure> {
    loop {
        let Some(completed) = take()? else { return Ok(None) };
        if let Some(status) = open.end(&completed) {
            return Ok(Some(status));
        }
    }
}

/// One who has waited in vain: an error if the endpoint is being closed.
fn goes_on(open: &OpenEndpoint) -> Result<(), Failure> {
    if open.closing.load(Ordering::Acquire) {
        let text = "this endpoint is being closed by another thread; its requests are void";
        return Err(Failure::new(Return::EARMARK_MX_CLOSING, text));
    }
    Ok(())
}

/// How long a thread sleeps between two looks for something that wakes no thread.
pub(crate) const NAP: Duration = Duration::from_micros(50);
