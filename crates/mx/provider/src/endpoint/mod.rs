//! Endpoints: made, bound, enabled, closed. What is sent and received is in the files beside this.

mod calls;
mod ended;
mod live;
mod object;
mod receive;
mod remote;
mod send;
mod tables;

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use libc::{EINVAL, EIO, ENODEV, ENOPROTOOPT, ENOSYS};

use self::live::Live;
use self::object::{CompletionSide, Ep, Setup};
use crate::abi::constants::{
    FI_CLASS_AV, FI_CLASS_CNTR, FI_CLASS_CQ, FI_CLASS_EP, FI_CLASS_EQ, FI_DIRECTED_RECV,
    FI_EBADFLAGS, FI_ENABLE, FI_ENOAV, FI_ENOCQ, FI_EOPBADSTATE, FI_ETOOSMALL, FI_GETOPSFLAG,
    FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, FI_READ, FI_RECV, FI_RMA, FI_SELECTIVE_COMPLETION,
    FI_SEND, FI_SETOPSFLAG, FI_SOURCE, FI_TRANSMIT, FI_WRITE,
};
use crate::abi::fid::{Fid, FidOps};
use crate::abi::info::Info;
use crate::abi::objects::FidDomain;
use crate::abi::transfers::{CmOps, EpOps, FidEp};
use crate::abi::{arg_ref, fid_ref, fid_take, out};
use crate::av::{Av, give_address};
use crate::bound::{Bound, Driven};
use crate::cntr::Cntr;
use crate::cq::Cq;
use crate::domain::Domain;
use crate::fault::warn;
use crate::settings;

/// What is left at least of a buffer for several messages, unless a program says otherwise.
const MIN_LEFT: usize = 64;

impl Live {
    fn bound(&self) -> impl Iterator<Item = &Bound> {
        let sides = [&self.tx, &self.rx];
        let queues = sides.into_iter().filter_map(|side| Some(&side.queue.as_ref()?.bound));
        let counters = sides.map(|side| &side.counter).into_iter();
        let counters = counters.chain([&self.writes, &self.reads]);
        queues.chain(counters.filter_map(|counter| Some(&counter.as_ref()?.bound)))
    }
}

static FID: FidOps = FidOps { close, bind, control, ..FidOps::REFUSES };
static OPS: EpOps = EpOps { cancel, getopt, setopt, ..EpOps::REFUSES };
static CM: CmOps = CmOps { getname, ..CmOps::REFUSES };

pub(crate) unsafe extern "C" fn open(
    domain: *mut FidDomain,
    info: *mut Info,
    place: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    let Some(info) = arg_ref!(info) else { return -EINVAL };
    let (tx, rx) = (CompletionSide::default(), CompletionSide::default());
    let flags = arg_ref!(info.tx_attr).map_or(0, |attr| attr.op_flags);
    tx.op_flags.store(flags, Ordering::Relaxed);
    let flags = arg_ref!(info.rx_attr).map_or(0, |attr| attr.op_flags);
    rx.op_flags.store(flags, Ordering::Relaxed);
    let directed = info.caps & FI_DIRECTED_RECV != 0;
    let regions = Arc::clone(&fid_ref!(domain, Domain).regions);
    let remote = info.caps & FI_RMA != 0;
    let reports_sources = info.caps & FI_SOURCE != 0;
    let (least_left, usual) = (MIN_LEFT, Setup::default());
    let setup = Setup { tx, rx, regions, directed, reports_sources, remote, least_left, ..usual };
    let fid = FidEp {
        fid: Fid { class: FI_CLASS_EP, context, ops: &raw const FID },
        ops: &raw const OPS,
        cm: &raw const CM,
        msg: &raw const tables::untagged::OPS,
        rma: &raw const tables::rma::OPS,
        tagged: &raw const tables::tagged::OPS,
        atomic: std::ptr::null(),
        collective: std::ptr::null(),
    };
    let ep = Ep { fid, setup: Mutex::new(setup), live: OnceLock::new() };
    out!(place, Box::into_raw(Box::new(ep)).cast());
    0
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    let ep = fid_take!(fid, Ep);
    let Some(live) = ep.live.into_inner() else { return 0 };
    let driven: Arc<dyn Driven> = Arc::<Live>::clone(&live);
    live.bound().for_each(|bound| bound.remove(&driven));
    drop(driven);
    match Arc::try_unwrap(live) {
        Ok(live) => live.close(),
        Err(_) => warn("an endpoint is closed while another thread uses it; messages may be lost"),
    }
    0
}

unsafe extern "C" fn bind(fid: *mut Fid, other: *mut Fid, flags: u64) -> c_int {
    let ep = fid_ref!(fid, Ep);
    if ep.live.get().is_some() {
        return -FI_EOPBADSTATE;
    }
    let mut setup = ep.setup.lock().unwrap_or_else(PoisonError::into_inner);
    let setup = &mut *setup;
    let sides = [(FI_TRANSMIT, &mut setup.tx), (FI_RECV, &mut setup.rx)];
    let chosen = sides.into_iter().filter(|(flag, _)| flags & flag != 0);
    match fid_ref!(other, Fid).class {
        FI_CLASS_AV => setup.addresses = Some(Arc::clone(&fid_ref!(other, Av).addresses)),
        FI_CLASS_EQ => {}
        FI_CLASS_CQ => {
            if flags & !(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) != 0 {
                return -FI_EBADFLAGS;
            }
            for (_, side) in chosen {
                side.queue = Some(Arc::clone(&fid_ref!(other, Cq).queue));
                side.selective = flags & FI_SELECTIVE_COMPLETION != 0;
            }
        }
        FI_CLASS_CNTR => {
            // Counters of what this provider does not do stay at 0.
            let counter = &fid_ref!(other, Cntr).counter;
            for (_, side) in chosen {
                side.counter = Some(Arc::clone(counter));
            }
            for (flag, place) in [(FI_WRITE, &mut setup.writes), (FI_READ, &mut setup.reads)] {
                if flags & flag != 0 {
                    *place = Some(Arc::clone(counter));
                }
            }
        }
        _ => return -EINVAL,
    }
    0
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    let ep = fid_ref!(fid, Ep);
    match command {
        FI_ENABLE => enable(ep),
        FI_GETOPSFLAG | FI_SETOPSFLAG => {
            let Some(flags) = arg_ref!(argument.cast::<u64>()).copied() else { return -EINVAL };
            let setup = ep.setup.lock().unwrap_or_else(PoisonError::into_inner);
            let live = ep.live.get();
            let (tx, rx) = live.map_or((&setup.tx, &setup.rx), |live| (&live.tx, &live.rx));
            let side = if flags & FI_SEND != 0 { tx } else { rx };
            if command == FI_GETOPSFLAG {
                out!(argument.cast::<u64>(), side.flags());
            } else {
                side.op_flags.store(flags & !(FI_SEND | FI_RECV), Ordering::Relaxed);
            }
            0
        }
        _ => -ENOSYS,
    }
}

fn enable(ep: &Ep) -> c_int {
    let mut setup = ep.setup.lock().unwrap_or_else(PoisonError::into_inner);
    if ep.live.get().is_some() {
        return -FI_EOPBADSTATE;
    }
    let Some(addresses) = setup.addresses.clone() else { return -FI_ENOAV };
    let has_no_queue = |side: &CompletionSide| side.queue.is_none() && side.counter.is_none();
    if has_no_queue(&setup.tx) && has_no_queue(&setup.rx) {
        return -FI_ENOCQ;
    }
    let Some(settings) = settings::get() else { return -ENODEV };
    let remote = setup.remote;
    let live = match Live::open(settings, addresses, std::mem::take(&mut *setup)) {
        Ok(live) => Arc::new(live),
        Err(error) => {
            warn(&error.to_string());
            return -EIO;
        }
    };
    if remote && let Err(error) = live.accept_requests() {
        return -error;
    }
    let driven: Arc<dyn Driven> = Arc::<Live>::clone(&live);
    live.bound().for_each(|bound| bound.add(&driven));
    for queue in [&live.tx, &live.rx].into_iter().filter_map(|side| side.queue.as_ref()) {
        if let Some(bell) = &queue.bell {
            live.mx.add_bell(bell);
        }
    }
    // No other thread has set it: the lock is held.
    let _ = ep.live.set(live);
    0
}

unsafe extern "C" fn cancel(fid: *mut Fid, context: *mut c_void) -> isize {
    let Some(live) = fid_ref!(fid, Ep).live.get() else { return -(FI_EOPBADSTATE as isize) };
    live.cancel(context as usize)
}

unsafe extern "C" fn getname(fid: *mut Fid, place: *mut c_void, length: *mut usize) -> c_int {
    let Some(live) = fid_ref!(fid, Ep).live.get() else { return -FI_EOPBADSTATE };
    if give_address(live.address, place, length) { 0 } else { -FI_ETOOSMALL }
}

unsafe extern "C" fn getopt(
    fid: *mut Fid,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut usize,
) -> c_int {
    if (level, name) != (FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV) {
        return -ENOPROTOOPT;
    }
    if arg_ref!(length).is_none_or(|length| *length < size_of::<usize>()) {
        return -FI_ETOOSMALL;
    }
    let ep = fid_ref!(fid, Ep);
    let set = || ep.setup.lock().unwrap_or_else(PoisonError::into_inner).least_left;
    let least = ep.live.get().map_or_else(set, |live| live.least_left.load(Ordering::Relaxed));
    out!(value.cast::<usize>(), least);
    out!(length, size_of::<usize>());
    0
}

unsafe extern "C" fn setopt(
    fid: *mut Fid,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: usize,
) -> c_int {
    if (level, name) != (FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV) {
        return -ENOPROTOOPT;
    }
    let value = arg_ref!(value.cast::<usize>()).filter(|_| length >= size_of::<usize>());
    let Some(least) = value else { return -EINVAL };
    let ep = fid_ref!(fid, Ep);
    match ep.live.get() {
        Some(live) => live.least_left.store(*least, Ordering::Relaxed),
        None => ep.setup.lock().unwrap_or_else(PoisonError::into_inner).least_left = *least,
    }
    0
}
