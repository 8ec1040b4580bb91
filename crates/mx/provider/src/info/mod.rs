//! `fi_getinfo`: hints come in, an offer goes out, in memory that libfabric frees.

pub(crate) mod offer;

use std::ffi::{CStr, CString, c_char, c_int};

use libc::{ENODATA, ENOMEM};
use mx::address::Address;
use mx_io::port::PortSpec;

use self::offer::{Direction, FABRIC, Hints, INJECT, INWARD, OUTWARD, Offer, PROTOCOL, offer};
use crate::abi::constants::{FI_EP_RDM, FI_RM_ENABLED, FI_SOURCE, version};
use crate::abi::info::{DomainAttr, EpAttr, FabricAttr, Info, RxAttr, TxAttr};
use crate::abi::{arg_ref, out};
use crate::fault::warn;
use crate::{address, settings};

pub(crate) const VERSION: u32 = version(0, 1);

/// Zeros after each structure, for callers that know longer ones.
const ROOM_TO_GROW: usize = 256;

pub(crate) unsafe extern "C" fn getinfo(
    api_version: u32,
    node: *const c_char,
    _service: *const c_char,
    flags: u64,
    hints: *const Info,
    place: *mut *mut Info,
) -> c_int {
    let Some(settings) = settings::get() else { return -ENODATA };
    let node = text(node);
    let destination = node.and_then(address::parse);
    if node.is_some() && (destination.is_none() || flags & FI_SOURCE != 0) {
        return -ENODATA;
    }
    let interface = domain_name(&settings.port);
    let hints = arg_ref!(hints);
    let wanted = hints.map(read).unwrap_or_default();
    let offer = match offer(&wanted, &interface) {
        Ok(offer) => offer,
        Err(what) => {
            if settings.verbose {
                warn(&format!("not offered: the program wants {what}"));
            }
            return -ENODATA;
        }
    };
    match write(&offer, &interface, api_version, destination) {
        Some(info) => {
            out!(place, info);
            0
        }
        None => -ENOMEM,
    }
}

/// What the domain is called: the interface, or the address.
fn domain_name(port: &PortSpec) -> String {
    match port {
        PortSpec::Packet { interface, .. } => interface.clone(),
        other => other.to_string(),
    }
}

fn text<'a>(pointer: *const c_char) -> Option<&'a str> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: it is a string of the caller's, which lives while it looks at it.
    // JUSTIFICATION: C passes text by its address.
    let text = unsafe { CStr::from_ptr(pointer) };
    // What is no text is no name of ours.
    text.to_str().ok().or(Some("?"))
}

fn read(hints: &Info) -> Hints<'_> {
    let mut wanted = Hints { caps: hints.caps, addr_format: hints.addr_format, ..Hints::default() };
    if let Some(tx) = arg_ref!(hints.tx_attr) {
        wanted.tx = Direction {
            caps: tx.caps,
            op_flags: tx.op_flags,
            msg_order: tx.msg_order,
            comp_order: tx.comp_order,
            inject_size: tx.inject_size,
            size: tx.size,
            iov_limit: tx.iov_limit,
        };
    }
    if let Some(rx) = arg_ref!(hints.rx_attr) {
        wanted.rx = Direction {
            caps: rx.caps,
            op_flags: rx.op_flags,
            msg_order: rx.msg_order,
            comp_order: rx.comp_order,
            inject_size: 0,
            size: rx.size,
            iov_limit: rx.iov_limit,
        };
    }
    if let Some(ep) = arg_ref!(hints.ep_attr) {
        wanted.ep_type = ep.ep_type;
        wanted.protocol = ep.protocol;
        wanted.max_msg_size = ep.max_msg_size;
        wanted.tag_format = ep.mem_tag_format;
        wanted.contexts = ep.tx_ctx_cnt.max(ep.rx_ctx_cnt);
        wanted.auth_key_size = ep.auth_key_size;
    }
    if let Some(domain) = arg_ref!(hints.domain_attr) {
        wanted.domain = text(domain.name);
        wanted.threading = domain.threading;
        wanted.control_progress = domain.control_progress;
        wanted.data_progress = domain.data_progress;
        wanted.av_type = domain.av_type;
        wanted.cq_data_size = domain.cq_data_size;
        wanted.domain_caps = domain.caps;
        wanted.mr_mode = domain.mr_mode;
    }
    if let Some(fabric) = arg_ref!(hints.fabric_attr) {
        wanted.fabric = text(fabric.name);
    }
    wanted
}

fn write(
    offer: &Offer,
    interface: &str,
    api_version: u32,
    destination: Option<Address>,
) -> Option<*mut Info> {
    let [tx_size, rx_size] = offer.queue;
    let tx = TxAttr {
        caps: offer.caps & !INWARD,
        mode: 0,
        op_flags: offer.tx_flags,
        msg_order: offer.order,
        comp_order: 0,
        inject_size: INJECT,
        size: tx_size,
        iov_limit: offer.segments,
        rma_iov_limit: 1,
        tclass: 0,
    };
    let rx = RxAttr {
        caps: offer.caps & !OUTWARD,
        mode: 0,
        op_flags: offer.rx_flags,
        msg_order: offer.order,
        comp_order: 0,
        total_buffered_recv: 0,
        size: rx_size,
        iov_limit: offer.segments,
    };
    let (dest_addr, dest_addrlen) = match destination {
        Some(address) => (allocate(address::encode(address))?.cast(), address::LENGTH),
        None => (std::ptr::null_mut(), 0),
    };
    allocate(Info {
        next: std::ptr::null_mut(),
        caps: offer.caps,
        mode: 0,
        addr_format: PROTOCOL,
        src_addrlen: 0,
        dest_addrlen,
        src_addr: std::ptr::null_mut(),
        dest_addr,
        handle: std::ptr::null_mut(),
        tx_attr: allocate(tx)?,
        rx_attr: allocate(rx)?,
        ep_attr: allocate(endpoint(offer))?,
        domain_attr: allocate(domain(offer, interface)?)?,
        fabric_attr: allocate(FabricAttr {
            fabric: std::ptr::null_mut(),
            name: string(FABRIC)?,
            // libfabric fills it in.
            prov_name: std::ptr::null_mut(),
            prov_version: VERSION,
            api_version,
        })?,
        nic: std::ptr::null_mut(),
    })
}

fn endpoint(offer: &Offer) -> EpAttr {
    EpAttr {
        ep_type: FI_EP_RDM,
        protocol: PROTOCOL,
        protocol_version: 1,
        max_msg_size: offer.message,
        msg_prefix_size: 0,
        max_order_raw_size: 0,
        max_order_war_size: 0,
        max_order_waw_size: 0,
        mem_tag_format: offer.tag_format,
        tx_ctx_cnt: 1,
        rx_ctx_cnt: 1,
        auth_key_size: 0,
        auth_key: std::ptr::null_mut(),
    }
}

fn domain(offer: &Offer, interface: &str) -> Option<DomainAttr> {
    /// Endpoints of an interface, at most.
    const ENDPOINTS: usize = 255;
    /// Queues, counters and regions of memory, of which there may be any number.
    const MANY: usize = 1 << 16;
    Some(DomainAttr {
        domain: std::ptr::null_mut(),
        name: string(interface)?,
        threading: offer.threading,
        control_progress: offer.control_progress,
        data_progress: offer.data_progress,
        resource_mgmt: FI_RM_ENABLED,
        av_type: offer.av_type,
        mr_mode: 0,
        mr_key_size: size_of::<u64>(),
        cq_data_size: offer.cq_data,
        cq_cnt: MANY,
        ep_cnt: ENDPOINTS,
        tx_ctx_cnt: ENDPOINTS,
        rx_ctx_cnt: ENDPOINTS,
        max_ep_tx_ctx: 1,
        max_ep_rx_ctx: 1,
        max_ep_stx_ctx: 0,
        max_ep_srx_ctx: 0,
        cntr_cnt: MANY,
        mr_iov_limit: 1,
        caps: offer.domain_caps,
        mode: 0,
        auth_key: std::ptr::null_mut(),
        auth_key_size: 0,
        max_err_data: 0,
        mr_cnt: MANY,
        tclass: 0,
    })
}

/// Puts a value where `free` may be called on it, followed by zeros. None if there is no memory.
fn allocate<T>(value: T) -> Option<*mut T> {
    // SAFETY: the size is not 0, and no type of libfabric's needs more alignment than `calloc`
    // guarantees.
    // JUSTIFICATION: libfabric frees this with `free`.
    let place = unsafe { libc::calloc(1, size_of::<T>() + ROOM_TO_GROW) }.cast::<T>();
    if place.is_null() {
        return None;
    }
    out!(place, value);
    Some(place)
}

fn string(text: &str) -> Option<*mut c_char> {
    let text = CString::new(text).ok()?;
    // SAFETY: it is a string that ends with a zero.
    // JUSTIFICATION: libfabric frees this with `free`.
    let copy = unsafe { libc::strdup(text.as_ptr()) };
    (!copy.is_null()).then_some(copy)
}
