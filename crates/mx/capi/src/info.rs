//! Counters and other figures of an endpoint.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use crate::abi::{EARMARK_MX_MAX_SEGMENTS, earmark_mx_endpoint_t};
use crate::codes::{Return, earmark_mx_return_t};
use crate::guard::{Failure, give, place};
use crate::handles;
use crate::handles::nic_number;
use crate::peers::put_text;

/// The interface of an endpoint, 48 bits.
pub const EARMARK_MX_INFO_NIC_ID: u32 = 1;
/// The number of an endpoint.
pub const EARMARK_MX_INFO_ENDPOINT_ID: u32 = 2;
/// Bytes of its largest frame, without the Ethernet header.
pub const EARMARK_MX_INFO_MTU: u32 = 3;
/// Bytes of the longest message that is copied and sent before anybody asks for it.
pub const EARMARK_MX_INFO_EAGER_MAX: u32 = 4;
/// The most segments that a message may have.
pub const EARMARK_MX_INFO_MAX_SEGMENTS: u32 = 5;
/// How many peers are connected.
pub const EARMARK_MX_INFO_PEERS: u32 = 6;
/// How many counters there are.
pub const EARMARK_MX_INFO_COUNTERS: u32 = 7;

/// A figure of an endpoint: one of EARMARK_MX_INFO_NIC_ID and so on.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_get_info(
    endpoint: earmark_mx_endpoint_t,
    key: u32,
    value: Option<&mut MaybeUninit<u64>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let value = place(value, "value")?;
        value.write(match key {
            EARMARK_MX_INFO_NIC_ID => nic_number(open.mx.address().nic),
            EARMARK_MX_INFO_ENDPOINT_ID => open.mx.address().endpoint.into(),
            EARMARK_MX_INFO_MTU => open.mtu.into(),
            EARMARK_MX_INFO_EAGER_MAX => open.eager_max as u64,
            EARMARK_MX_INFO_MAX_SEGMENTS => EARMARK_MX_MAX_SEGMENTS.into(),
            EARMARK_MX_INFO_PEERS => open.mx.peers().len() as u64,
            EARMARK_MX_INFO_COUNTERS => counters(open).len() as u64,
            other => {
                let text = format!("there is no figure {other}; use a constant of the header");
                return Err(Failure::new(Return::EARMARK_MX_BAD_ARGUMENT, text));
            }
        });
        Ok(())
    })
}

/// A counter by its index, 0 to EARMARK_MX_INFO_COUNTERS - 1, with its name, which is cut off where
/// there is no room.
///
/// # Safety
/// `name` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn earmark_mx_get_counter(
    endpoint: earmark_mx_endpoint_t,
    index: u32,
    name: *mut c_char,
    size: usize,
    value: Option<&mut MaybeUninit<u64>>,
) -> earmark_mx_return_t {
    handles::on(endpoint, |open| {
        let counters = counters(open);
        let Some((label, count)) = counters.get(index as usize) else {
            let text = format!("there is no counter {index}: there are {}", counters.len());
            return Err(Failure::new(Return::EARMARK_MX_BAD_ARGUMENT, text));
        };
        give(value, *count);
        // SAFETY: there is room for so many bytes.
        // JUSTIFICATION: C passes memory by its address.
        unsafe { put_text(label, name, size) };
        Ok(())
    })
}

fn counters(open: &handles::OpenEndpoint) -> Vec<(String, u64)> {
    let (engine, port) = open.mx.counters();
    mx_io::report::named(&engine, &port)
}
