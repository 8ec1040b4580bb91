//! `fi_getinfo`: hints come in, an offer goes out, in memory that libfabric frees.

pub(crate) mod offer;

use std::ffi::{CStr, CString, c_char, c_int};

use libc::{ENODATA, ENOMEM};
use mx::address::Address;
use mx_io::port::PortSpec;

use self::offer::{Attributes, FABRIC, offer};
use crate::abi::constants::{FI_SOURCE, version};
use crate::abi::info::{DomainAttr, FabricAttr, Info};
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

fn read(hints: &Info) -> Attributes<'_> {
    let (domain, fabric) = (arg_ref!(hints.domain_attr), arg_ref!(hints.fabric_attr));
    Attributes {
        caps: hints.caps,
        addr_format: hints.addr_format,
        tx: arg_ref!(hints.tx_attr).copied().unwrap_or_default(),
        rx: arg_ref!(hints.rx_attr).copied().unwrap_or_default(),
        ep: arg_ref!(hints.ep_attr).copied().unwrap_or_default(),
        domain: domain.copied().unwrap_or_default(),
        domain_name: domain.and_then(|domain| text(domain.name)),
        fabric_name: fabric.and_then(|fabric| text(fabric.name)),
    }
}

fn write(
    offer: &Attributes<'_>,
    interface: &str,
    api_version: u32,
    destination: Option<Address>,
) -> Option<*mut Info> {
    let (dest_addr, dest_addrlen) = match destination {
        Some(address) => (allocate(address::encode(address))?.cast(), address::LENGTH),
        None => (std::ptr::null_mut(), 0),
    };
    // libfabric fills in the name of the provider.
    let fabric = FabricAttr {
        name: string(FABRIC)?,
        prov_version: VERSION,
        api_version,
        ..FabricAttr::default()
    };
    allocate(Info {
        caps: offer.caps,
        addr_format: offer.addr_format,
        dest_addrlen,
        dest_addr,
        tx_attr: allocate(offer.tx)?,
        rx_attr: allocate(offer.rx)?,
        ep_attr: allocate(offer.ep)?,
        domain_attr: allocate(DomainAttr { name: string(interface)?, ..offer.domain })?,
        fabric_attr: allocate(fabric)?,
        ..Info::default()
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
