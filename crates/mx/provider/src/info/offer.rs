//! The offer of this provider, compared with the hints of a program.

use std::ffi::c_int;

use crate::abi::constants::{
    FI_AV_TABLE, FI_AV_UNSPEC, FI_COMPLETION, FI_DELIVERY_COMPLETE, FI_DIRECTED_RECV, FI_EP_RDM,
    FI_EP_UNSPEC, FI_INJECT, FI_INJECT_COMPLETE, FI_LOCAL_COMM, FI_MR_BASIC, FI_MSG, FI_MULTI_RECV,
    FI_ORDER_SAS, FI_PROGRESS_AUTO, FI_PROGRESS_UNSPEC, FI_PROV_SPECIFIC, FI_READ, FI_RECV,
    FI_REMOTE_COMM, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_RM_ENABLED, FI_RMA, FI_SEND, FI_SOURCE,
    FI_TAGGED, FI_THREAD_SAFE, FI_THREAD_UNSPEC, FI_TRANSMIT_COMPLETE, FI_WRITE,
};
use crate::abi::info::{DomainAttr, EpAttr, RxAttr, TxAttr};
use crate::bits::TAG;
use crate::memory;

const PROTOCOL: u32 = FI_PROV_SPECIFIC | 0x4d58;
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
const OUTWARD: u64 = FI_SEND | FI_READ | FI_WRITE;
const INWARD: u64 = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
const TX_FLAGS: u64 =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
const RX_FLAGS: u64 = FI_COMPLETION | FI_MULTI_RECV;

/// What a program wants, with 0 where it does not care; or what it gets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes<'a> {
    pub(crate) caps: u64,
    pub(crate) addr_format: u32,
    pub(crate) tx: TxAttr,
    pub(crate) rx: RxAttr,
    pub(crate) ep: EpAttr,
    pub(crate) domain: DomainAttr,
    pub(crate) domain_name: Option<&'a str>,
    pub(crate) fabric_name: Option<&'a str>,
}

/// What cannot be met of these hints, if anything.
///
/// What is refused here is what libfabric would otherwise take for granted, and layer other
/// providers on it.
fn refusal(wanted: &Attributes<'_>, interface: &str) -> Option<&'static str> {
    let Attributes { caps, addr_format, tx, rx, ep, domain, domain_name, fabric_name } = wanted;
    let is_basic = domain.mr_mode & FI_MR_BASIC != 0;
    let refusals = [
        (caps & !(CAPS | ASKED_FOR) != 0, "a capability, such as atomics"),
        (caps & REMOTE != 0 && is_basic, "memory that is registered as FI_MR_BASIC"),
        (tx.caps & !(CAPS | ASKED_FOR) != 0, "a capability of sends"),
        (rx.caps & !(CAPS | ASKED_FOR) != 0, "a capability of receives"),
        (domain.caps & !REACH != 0, "a capability of the domain"),
        (![FI_EP_UNSPEC, FI_EP_RDM].contains(&ep.ep_type), "a type of endpoint but FI_EP_RDM"),
        (![0, PROTOCOL].contains(addr_format), "a format of addresses"),
        (![0, PROTOCOL].contains(&ep.protocol), "a protocol"),
        (ep.max_msg_size > MESSAGE, "messages of such a length"),
        (ep.mem_tag_format > TAG, "tags of 64 bits"),
        (ep.tx_ctx_cnt.max(ep.rx_ctx_cnt) > 1, "several contexts of an endpoint"),
        (ep.auth_key_size > 0, "an authorization key"),
        (domain_name.is_some_and(|name| name != interface), "another domain"),
        (fabric_name.is_some_and(|name| name != FABRIC), "another fabric"),
        (domain.cq_data_size > CQ_DATA, "so much remote CQ data"),
        (tx.op_flags & !TX_FLAGS != 0, "a flag of sends"),
        (rx.op_flags & !RX_FLAGS != 0, "a flag of receives"),
        (tx.inject_size > INJECT, "so long messages to inject"),
        (tx.iov_limit > memory::MAX_PARTS, "so many segments to send"),
        (rx.iov_limit > memory::MAX_PARTS, "so many segments to receive"),
        ((tx.msg_order | rx.msg_order) & !FI_ORDER_SAS != 0, "an order of messages"),
        (tx.comp_order | rx.comp_order != 0, "an order of completions"),
    ];
    refusals.iter().find(|(is_refused, _)| *is_refused).map(|(_, what)| *what)
}

/// The offer for these hints on the interface of this name, or what cannot be met.
pub(crate) fn offer(
    wanted: &Attributes<'_>,
    interface: &str,
) -> Result<Attributes<'static>, &'static str> {
    if let Some(what) = refusal(wanted, interface) {
        return Err(what);
    }
    // A direction that is not named is meant as well.
    let caps = REACH
        | match wanted.caps {
            0 if wanted.domain.mr_mode & FI_MR_BASIC != 0 => CAPS & !REMOTE,
            0 => CAPS,
            caps if caps & DIRECTIONS == 0 => caps | DIRECTIONS,
            caps => caps,
        };
    let caps = if caps & REMOTE == FI_RMA { caps | REMOTE } else { caps };
    let Attributes { tx, rx, .. } = wanted;
    let domain = domain_for(&wanted.domain);
    let (msg_order, iov_limit) = (FI_ORDER_SAS, memory::MAX_PARTS);
    let tx = TxAttr {
        caps: caps & !INWARD,
        op_flags: tx.op_flags,
        msg_order,
        inject_size: INJECT,
        size: tx.size.max(QUEUE),
        iov_limit,
        rma_iov_limit: 1,
        ..TxAttr::default()
    };
    let rx = RxAttr {
        caps: caps & !OUTWARD,
        op_flags: rx.op_flags,
        msg_order,
        size: rx.size.max(QUEUE),
        iov_limit,
        ..RxAttr::default()
    };
    let ep = EpAttr {
        ep_type: FI_EP_RDM,
        protocol: PROTOCOL,
        protocol_version: 1,
        max_msg_size: MESSAGE,
        mem_tag_format: TAG,
        tx_ctx_cnt: 1,
        rx_ctx_cnt: 1,
        ..EpAttr::default()
    };
    let (domain_name, fabric_name) = (None, None);
    Ok(Attributes { caps, addr_format: PROTOCOL, tx, rx, ep, domain, domain_name, fabric_name })
}

fn domain_for(wanted: &DomainAttr) -> DomainAttr {
    /// Endpoints of an interface, at most.
    const ENDPOINTS: usize = 255;
    /// Queues, counters and regions of memory, of which there may be any number.
    const MANY: usize = 1 << 16;
    let or = |value: c_int, unspecified: c_int, ours: c_int| {
        if value == unspecified { ours } else { value }
    };
    DomainAttr {
        threading: or(wanted.threading, FI_THREAD_UNSPEC, FI_THREAD_SAFE),
        control_progress: or(wanted.control_progress, FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO),
        data_progress: or(wanted.data_progress, FI_PROGRESS_UNSPEC, FI_PROGRESS_AUTO),
        resource_mgmt: FI_RM_ENABLED,
        av_type: or(wanted.av_type, FI_AV_UNSPEC, FI_AV_TABLE),
        mr_key_size: size_of::<u64>(),
        cq_data_size: CQ_DATA,
        cq_cnt: MANY,
        ep_cnt: ENDPOINTS,
        tx_ctx_cnt: ENDPOINTS,
        rx_ctx_cnt: ENDPOINTS,
        max_ep_tx_ctx: 1,
        max_ep_rx_ctx: 1,
        cntr_cnt: MANY,
        mr_iov_limit: 1,
        caps: REACH,
        mr_cnt: MANY,
        ..DomainAttr::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `FI_ATOMIC` and `FI_COLLECTIVE`.
    const UNKNOWN: [u64; 2] = [1 << 4, 1 << 6];
    /// `FI_EP_MSG` and `FI_EP_DGRAM`.
    const TYPES: [c_int; 2] = [1, 2];

    fn get(
        change: impl FnOnce(&mut Attributes<'static>),
    ) -> Result<Attributes<'static>, &'static str> {
        let mut wanted = Attributes::default();
        change(&mut wanted);
        offer(&wanted, "eth0")
    }

    #[test]
    fn who_wants_nothing_in_particular_gets_everything() {
        let offer = get(|_| ()).unwrap();
        assert_eq!(offer.caps, CAPS);
        assert_eq!(offer.domain.threading, FI_THREAD_SAFE);
        assert_eq!(offer.domain.av_type, FI_AV_TABLE);
        assert_eq!(offer.ep.mem_tag_format.leading_zeros(), 1);
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
        let basic = get(|wanted| wanted.domain.mr_mode = FI_MR_BASIC).unwrap();
        assert_eq!(basic.caps & REMOTE, 0);
        let map = get(|wanted| {
            (wanted.domain.av_type, wanted.domain.threading, wanted.tx.size) = (1, 3, 9999);
        });
        let map = map.unwrap();
        assert_eq!((map.domain.av_type, map.domain.threading), (1, 3));
        assert_eq!((map.tx.size, map.rx.size), (9999, QUEUE));
        assert!(get(|wanted| wanted.domain_name = Some("eth0")).is_ok());
        // MPICH's and Open MPI's.
        assert!(get(|wanted| wanted.ep.mem_tag_format = TAG >> 2).is_ok());
    }

    #[test]
    fn what_cannot_be_met_is_refused() {
        for cap in UNKNOWN {
            assert!(get(|wanted| wanted.caps = FI_TAGGED | cap).is_err());
            assert!(get(|wanted| wanted.tx.caps = cap).is_err());
        }
        for ep_type in TYPES {
            assert!(get(|wanted| wanted.ep.ep_type = ep_type).is_err());
        }
        assert!(
            get(|wanted| (wanted.caps, wanted.domain.mr_mode) = (FI_RMA, FI_MR_BASIC)).is_err()
        );
        assert!(get(|wanted| wanted.ep.mem_tag_format = u64::MAX).is_err());
        assert!(get(|wanted| wanted.addr_format = 1).is_err());
        assert!(get(|wanted| wanted.ep.tx_ctx_cnt = 2).is_err());
        assert!(get(|wanted| wanted.ep.rx_ctx_cnt = usize::MAX).is_err());
        assert!(get(|wanted| wanted.domain_name = Some("eth1")).is_err());
        assert!(get(|wanted| wanted.fabric_name = Some("10.0.0.0/24")).is_err());
        assert!(get(|wanted| wanted.domain.cq_data_size = 16).is_err());
        assert!(get(|wanted| wanted.tx.inject_size = INJECT + 1).is_err());
        assert!(get(|wanted| wanted.rx.iov_limit = 5).is_err());
        assert!(get(|wanted| wanted.rx.comp_order = 1).is_err());
        assert!(get(|wanted| wanted.tx.msg_order = FI_ORDER_SAS | 1).is_err());
    }
}
