//! The offer of this provider, compared with the hints of a program.

use std::ffi::c_int;

use crate::abi::constants::{
    FI_AV_TABLE, FI_AV_UNSPEC, FI_COMPLETION, FI_DELIVERY_COMPLETE, FI_DIRECTED_RECV, FI_EP_RDM,
    FI_EP_UNSPEC, FI_INJECT, FI_INJECT_COMPLETE, FI_LOCAL_COMM, FI_MR_BASIC, FI_MSG, FI_MULTI_RECV,
    FI_ORDER_SAS, FI_PROGRESS_AUTO, FI_PROGRESS_UNSPEC, FI_PROV_SPECIFIC, FI_READ, FI_RECV,
    FI_REMOTE_COMM, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_RMA, FI_SEND, FI_SOURCE, FI_TAGGED,
    FI_THREAD_SAFE, FI_THREAD_UNSPEC, FI_TRANSMIT_COMPLETE, FI_WRITE,
};
use crate::bits::TAG;
use crate::memory;

pub(crate) const PROTOCOL: u32 = FI_PROV_SPECIFIC | 0x4d58;
/// The name of the fabric: all who speak MX on the same segment.
pub(crate) const FABRIC: &str = "mx";
/// Messages up to here may be injected. They are copied whether they are injected or not.
pub(crate) const INJECT: usize = 16 << 10;
const CQ_DATA: usize = 8;
/// The length of a queue, which only programs count that want to know one.
const QUEUE: usize = 4096;
/// Bytes of the longest message.
const MESSAGE: usize = 1 << 40;

const KINDS: u64 = FI_MSG | FI_TAGGED;
const REMOTE: u64 = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
const DIRECTIONS: u64 = FI_SEND | FI_RECV;
const REACH: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;
const CAPS: u64 = KINDS | DIRECTIONS | REACH | FI_MULTI_RECV | FI_DIRECTED_RECV | REMOTE;
const ASKED_FOR: u64 = FI_SOURCE;
/// What only one direction has.
pub(crate) const OUTWARD: u64 = FI_SEND | FI_READ | FI_WRITE;
pub(crate) const INWARD: u64 = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
const TX_FLAGS: u64 =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
const RX_FLAGS: u64 = FI_COMPLETION | FI_MULTI_RECV;

/// What a program wants of one direction; 0 where it does not care.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Direction {
    pub(crate) caps: u64,
    pub(crate) op_flags: u64,
    pub(crate) msg_order: u64,
    pub(crate) comp_order: u64,
    pub(crate) inject_size: usize,
    pub(crate) size: usize,
    pub(crate) iov_limit: usize,
}

/// What a program wants; 0 where it does not care.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints<'a> {
    pub(crate) caps: u64,
    pub(crate) addr_format: u32,
    pub(crate) tx: Direction,
    pub(crate) rx: Direction,
    pub(crate) ep_type: c_int,
    pub(crate) protocol: u32,
    pub(crate) max_msg_size: usize,
    pub(crate) tag_format: u64,
    pub(crate) contexts: usize,
    pub(crate) auth_key_size: usize,
    pub(crate) domain: Option<&'a str>,
    pub(crate) fabric: Option<&'a str>,
    pub(crate) threading: c_int,
    pub(crate) control_progress: c_int,
    pub(crate) data_progress: c_int,
    pub(crate) av_type: c_int,
    pub(crate) cq_data_size: usize,
    pub(crate) domain_caps: u64,
    pub(crate) mr_mode: c_int,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) caps: u64,
    pub(crate) tx_flags: u64,
    pub(crate) rx_flags: u64,
    pub(crate) order: u64,
    pub(crate) queue: [usize; 2],
    pub(crate) threading: c_int,
    pub(crate) control_progress: c_int,
    pub(crate) data_progress: c_int,
    pub(crate) av_type: c_int,
    pub(crate) message: usize,
    pub(crate) tag_format: u64,
    pub(crate) cq_data: usize,
    pub(crate) segments: usize,
    pub(crate) domain_caps: u64,
}

/// The offer for these hints on the interface of this name, or what cannot be met.
///
/// What is refused here is what libfabric would otherwise take for granted, and layer other
/// providers on it.
pub(crate) fn offer(wanted: &Hints<'_>, interface: &str) -> Result<Offer, &'static str> {
    let refusals = [
        (wanted.caps & !(CAPS | ASKED_FOR) != 0, "a capability, such as atomics"),
        (
            wanted.caps & REMOTE != 0 && wanted.mr_mode & FI_MR_BASIC != 0,
            "memory that is registered as FI_MR_BASIC",
        ),
        (wanted.tx.caps & !(CAPS | ASKED_FOR) != 0, "a capability of sends"),
        (wanted.rx.caps & !(CAPS | ASKED_FOR) != 0, "a capability of receives"),
        (wanted.domain_caps & !REACH != 0, "a capability of the domain"),
        (!is_any_of(wanted.ep_type, FI_EP_UNSPEC, FI_EP_RDM), "a type of endpoint but FI_EP_RDM"),
        (![0, PROTOCOL].contains(&wanted.addr_format), "a format of addresses"),
        (![0, PROTOCOL].contains(&wanted.protocol), "a protocol"),
        (wanted.max_msg_size > MESSAGE, "messages of such a length"),
        (wanted.tag_format > TAG, "tags of 64 bits"),
        (wanted.contexts > 1, "several contexts of an endpoint"),
        (wanted.auth_key_size > 0, "an authorization key"),
        (wanted.domain.is_some_and(|name| name != interface), "another domain"),
        (wanted.fabric.is_some_and(|name| name != FABRIC), "another fabric"),
        (wanted.cq_data_size > CQ_DATA, "so much remote CQ data"),
        (wanted.tx.op_flags & !TX_FLAGS != 0, "a flag of sends"),
        (wanted.rx.op_flags & !RX_FLAGS != 0, "a flag of receives"),
        (wanted.tx.inject_size > INJECT, "so long messages to inject"),
        (wanted.tx.iov_limit > memory::MAX_PARTS, "so many segments to send"),
        (wanted.rx.iov_limit > memory::MAX_PARTS, "so many segments to receive"),
        ((wanted.tx.msg_order | wanted.rx.msg_order) & !FI_ORDER_SAS != 0, "an order of messages"),
        (wanted.tx.comp_order | wanted.rx.comp_order != 0, "an order of completions"),
    ];
    if let Some((_, what)) = refusals.iter().find(|(refused, _)| *refused) {
        return Err(what);
    }
    let or = |value: c_int, unspecified: c_int, ours: c_int| {
        if value == unspecified { ours } else { value }
    };
    // A direction that is not named is meant as well.
    let caps = match wanted.caps {
        0 if wanted.mr_mode & FI_MR_BASIC != 0 => CAPS & !REMOTE,
        0 => CAPS,
        caps if caps & DIRECTIONS == 0 => caps | DIRECTIONS,
        caps => caps,
    };
    let caps = match caps & REMOTE {
        FI_RMA => caps | REMOTE,
        _ => caps,
    };
    Ok(Offer {
        caps: caps | REACH,
        tx_flags: wanted.tx.op_flags,
        rx_flags: wanted.rx.op_flags,
        order: FI_ORDER_SAS,
        queue: [wanted.tx.size.max(QUEUE), wanted.rx.size.max(QUEUE)],
        threading: or(wanted.threading, FI_THREAD_UNSPEC, FI_THREAD_SAFE),
        control_progress: or(wanted.control_progress, FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO),
        data_progress: or(wanted.data_progress, FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO),
        av_type: or(wanted.av_type, FI_AV_UNSPEC, FI_AV_TABLE),
        message: MESSAGE,
        tag_format: TAG,
        cq_data: CQ_DATA,
        segments: memory::MAX_PARTS,
        domain_caps: REACH,
    })
}

fn is_any_of(value: c_int, a: c_int, b: c_int) -> bool {
    value == a || value == b
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `FI_ATOMIC` and `FI_COLLECTIVE`.
    const UNKNOWN: [u64; 2] = [1 << 4, 1 << 6];
    /// `FI_EP_MSG` and `FI_EP_DGRAM`.
    const TYPES: [c_int; 2] = [1, 2];

    fn get(change: impl FnOnce(&mut Hints<'static>)) -> Result<Offer, &'static str> {
        let mut wanted = Hints::default();
        change(&mut wanted);
        offer(&wanted, "eth0")
    }

    #[test]
    fn who_wants_nothing_in_particular_gets_everything() {
        let offer = get(|_| ()).unwrap();
        assert_eq!(offer.caps, CAPS);
        assert_eq!(offer.threading, FI_THREAD_SAFE);
        assert_eq!(offer.av_type, FI_AV_TABLE);
        assert_eq!(offer.tag_format.leading_zeros(), 1);
    }

    #[test]
    fn requests_are_granted_as_they_are() {
        let tagged = get(|wanted| wanted.caps = FI_TAGGED).unwrap();
        assert_eq!(tagged.caps, FI_TAGGED | DIRECTIONS | REACH);
        let sends = get(|wanted| wanted.caps = FI_MSG | FI_SEND).unwrap();
        assert_eq!(sends.caps, FI_MSG | FI_SEND | REACH);
        let sources = get(|wanted| wanted.caps = FI_MSG | FI_SOURCE).unwrap();
        assert_eq!(sources.caps, FI_MSG | FI_SOURCE | DIRECTIONS | REACH);
        let remote = get(|wanted| wanted.caps = FI_RMA).unwrap();
        assert_eq!(remote.caps, REMOTE | DIRECTIONS | REACH);
        let writes = get(|wanted| wanted.caps = FI_MSG | FI_RMA | FI_WRITE).unwrap();
        assert_eq!(writes.caps & REMOTE, FI_RMA | FI_WRITE);
        let basic = get(|wanted| wanted.mr_mode = FI_MR_BASIC).unwrap();
        assert_eq!(basic.caps & REMOTE, 0);
        let map = get(|wanted| (wanted.av_type, wanted.threading, wanted.tx.size) = (1, 3, 9999));
        let map = map.unwrap();
        assert_eq!((map.av_type, map.threading, map.queue), (1, 3, [9999, QUEUE]));
        assert!(get(|wanted| wanted.domain = Some("eth0")).is_ok());
        // MPICH's and Open MPI's.
        assert!(get(|wanted| wanted.tag_format = TAG >> 2).is_ok());
    }

    #[test]
    fn what_cannot_be_met_is_refused() {
        for cap in UNKNOWN {
            assert!(get(|wanted| wanted.caps = FI_TAGGED | cap).is_err());
            assert!(get(|wanted| wanted.tx.caps = cap).is_err());
        }
        for ep_type in TYPES {
            assert!(get(|wanted| wanted.ep_type = ep_type).is_err());
        }
        assert!(get(|wanted| (wanted.caps, wanted.mr_mode) = (FI_RMA, FI_MR_BASIC)).is_err());
        assert!(get(|wanted| wanted.tag_format = u64::MAX).is_err());
        assert!(get(|wanted| wanted.addr_format = 1).is_err());
        assert!(get(|wanted| wanted.contexts = 2).is_err());
        assert!(get(|wanted| wanted.contexts = usize::MAX).is_err());
        assert!(get(|wanted| wanted.domain = Some("eth1")).is_err());
        assert!(get(|wanted| wanted.fabric = Some("10.0.0.0/24")).is_err());
        assert!(get(|wanted| wanted.cq_data_size = 16).is_err());
        assert!(get(|wanted| wanted.tx.inject_size = INJECT + 1).is_err());
        assert!(get(|wanted| wanted.rx.iov_limit = 5).is_err());
        assert!(get(|wanted| wanted.rx.comp_order = 1).is_err());
        assert!(get(|wanted| wanted.tx.msg_order = FI_ORDER_SAS | 1).is_err());
    }
}
