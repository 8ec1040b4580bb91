//! Messages that have come and that no receive has taken.

use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mx::endpoint::ProbedMessage;
use mx::ids::PeerId;
use mx::matching::Match;

use crate::abi::{earmark_mx_endpoint_addr_t, earmark_mx_endpoint_t, earmark_mx_status_t};
use crate::codes::{earmark_mx_return_t, earmark_mx_status_code_t as Code};
use crate::completion::{Answer, NAP};
use crate::guard::Failure;
use crate::handles::{self, OpenEndpoint};
use crate::peers::timeout;

/// How long one who waits for a message looks again and again before it sleeps in between.
const EAGER: Duration = Duration::from_micros(200);

/// Whether a message has come that fits and that no receive has taken; it goes on waiting. If so,
/// result is 1, and the status has its source, match information and length.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_iprobe(
    endpoint: earmark_mx_endpoint_t,
    match_info: u64,
    match_mask: u64,
    status: Option<&mut MaybeUninit<earmark_mx_status_t>>,
    result: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    earmark_mx_probe(endpoint, 0, match_info, match_mask, status, result)
}

/// Waits until a message has come that fits, as for earmark_mx_iprobe(), with a timeout as for
/// earmark_mx_wait().
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_probe(
    endpoint: earmark_mx_endpoint_t,
    timeout: u32,
    match_info: u64,
    match_mask: u64,
    status: Option<&mut MaybeUninit<earmark_mx_status_t>>,
    result: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let answer = Answer::new(status, result)?;
        let wanted = Match { info: match_info, mask: match_mask };
        probe(open, None, wanted, timeout, answer)
    })
}

/// As earmark_mx_probe(), for a message from this peer.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_probe_from(
    endpoint: earmark_mx_endpoint_t,
    timeout: u32,
    source: earmark_mx_endpoint_addr_t,
    match_info: u64,
    match_mask: u64,
    status: Option<&mut MaybeUninit<earmark_mx_status_t>>,
    result: Option<&mut MaybeUninit<u32>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let (source, answer) = (open.peer(source)?, Answer::new(status, result)?);
        let wanted = Match { info: match_info, mask: match_mask };
        probe(open, Some(source), wanted, timeout, answer)
    })
}

/// Waits for a message. Messages that no receive waits for wake no thread, so this polls.
fn probe(
    open: &OpenEndpoint,
    source: Option<PeerId>,
    wanted: Match,
    timeout: u32,
    answer: Answer<'_>,
) -> Result<(), Failure> {
    let timeout = self::timeout(timeout);
    let start = Instant::now();
    let wakeups = open.wakeups.load(Ordering::Acquire);
    loop {
        let found = open.mx.iprobe(source, wanted)?;
        let spent = start.elapsed();
        let is_over = timeout.is_some_and(|timeout| spent >= timeout)
            || open.wakeups.load(Ordering::Acquire) != wakeups
            || open.closing.load(Ordering::Acquire);
        if found.is_some() || is_over {
            let status = found.map(|found| status_of(open, found));
            return answer.write(open, status).map(drop);
        }
        if spent < EAGER {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
        }
    }
}

fn status_of(open: &OpenEndpoint, found: ProbedMessage) -> earmark_mx_status_t {
    let ProbedMessage { peer, match_info, length, .. } = found;
    earmark_mx_status_t {
        code: Code::EARMARK_MX_STATUS_SUCCESS,
        flags: 0,
        source: open.address(peer),
        match_info,
        msg_length: length,
        xfer_length: 0,
        context: null_mut(),
        reserved: [0; 4],
    }
}
