//! Address vectors: numbers for addresses, in the order in which they were inserted.
//!
//! That is what a table is; a map may have any numbers, so it has the same.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, PoisonError, RwLock};

use libc::{EINVAL, ENOSYS};
use mx::address::Address;

use crate::abi::constants::{FI_ADDR_UNSPEC, FI_AV_TABLE, FI_AV_UNSPEC, FI_CLASS_AV, FI_EVENT};
use crate::abi::fid::{Fid, FidOps, bind_eq, close};
use crate::abi::objects::{AvAttr, AvOps, FidAv, FidDomain};
use crate::abi::{arg_ref, fid_ref, out};
use crate::address::{self, LENGTH};

#[derive(Debug, Default)]
pub(crate) struct Addresses {
    list: RwLock<Vec<Option<Address>>>,
}

impl Addresses {
    pub(crate) fn get(&self, number: u64) -> Option<Address> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        *list.get(usize::try_from(number).ok()?)?
    }

    pub(crate) fn number_of(&self, address: Address) -> Option<u64> {
        let list = self.list.read().unwrap_or_else(PoisonError::into_inner);
        let index = list.iter().position(|known| *known == Some(address))?;
        Some(index as u64)
    }

    pub(crate) fn insert(&self, address: Address) -> u64 {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        list.push(Some(address));
        list.len() as u64 - 1
    }

    /// The number is not used again. False if it was not used.
    pub(crate) fn remove(&self, number: u64) -> bool {
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        let place = usize::try_from(number).ok().and_then(|number| list.get_mut(number));
        place.is_some_and(|place| place.take().is_some())
    }
}

#[repr(C)]
pub(crate) struct Av {
    fid: FidAv,
    pub(crate) addresses: Arc<Addresses>,
}

static FID: FidOps = FidOps { close: close::<Av>, bind: bind_eq, ..FidOps::REFUSES };

static OPS: AvOps = AvOps { insert, remove, lookup, straddr, ..AvOps::REFUSES };

pub(crate) unsafe extern "C" fn open(
    _domain: *mut FidDomain,
    attr: *mut AvAttr,
    place: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    let Some(attr) = arg_ref!(attr) else { return -EINVAL };
    // Vectors with a name are shared between processes.
    if !attr.name.is_null() || attr.flags & FI_EVENT != 0 || attr.rx_ctx_bits != 0 {
        return -ENOSYS;
    }
    if !(FI_AV_UNSPEC..=FI_AV_TABLE).contains(&attr.av_type) {
        return -EINVAL;
    }
    let fid = Fid { class: FI_CLASS_AV, context, ops: &raw const FID };
    let fid = FidAv { fid, ops: &raw const OPS };
    out!(place, Box::into_raw(Box::new(Av { fid, addresses: Arc::default() })).cast());
    0
}

/// Addresses lie one after the other. Returns how many were inserted; the numbers of others say
/// that they were not.
unsafe extern "C" fn insert(
    av: *mut FidAv,
    addresses: *const c_void,
    count: usize,
    numbers: *mut u64,
    _flags: u64,
    _context: *mut c_void,
) -> c_int {
    let av = fid_ref!(av, Av);
    let mut inserted = 0;
    for index in 0..count {
        let at = addresses.cast::<[u8; LENGTH]>().wrapping_add(index);
        let Some(bytes) = arg_ref!(at) else { return -EINVAL };
        let number = address::decode(*bytes).map(|address| av.addresses.insert(address));
        inserted += c_int::from(number.is_some());
        if !numbers.is_null() {
            out!(numbers.wrapping_add(index), number.unwrap_or(FI_ADDR_UNSPEC));
        }
    }
    inserted
}

unsafe extern "C" fn remove(av: *mut FidAv, numbers: *mut u64, count: usize, _: u64) -> c_int {
    let av = fid_ref!(av, Av);
    for index in 0..count {
        let Some(number) = arg_ref!(numbers.wrapping_add(index)) else { return -EINVAL };
        if !av.addresses.remove(*number) {
            return -EINVAL;
        }
    }
    0
}

unsafe extern "C" fn lookup(
    av: *mut FidAv,
    number: u64,
    place: *mut c_void,
    length: *mut usize,
) -> c_int {
    let Some(address) = fid_ref!(av, Av).addresses.get(number) else { return -EINVAL };
    give_address(address, place, length);
    0
}

unsafe extern "C" fn straddr(
    _av: *mut FidAv,
    address: *const c_void,
    buffer: *mut c_char,
    length: *mut usize,
) -> *const c_char {
    let bytes = arg_ref!(address.cast::<[u8; LENGTH]>()).copied().unwrap_or_default();
    let text = address::decode(bytes).map_or("?".to_owned(), |address| address.to_string());
    let room = arg_ref!(length).copied().unwrap_or(0);
    give_text(&text, buffer, room);
    out!(length, text.len() + 1);
    buffer
}

/// Writes as much of an address as there is room for, and how long it is. False if that was not
/// all.
pub(crate) fn give_address(address: Address, place: *mut c_void, length: *mut usize) -> bool {
    let bytes = address::encode(address);
    let room = arg_ref!(length).copied().unwrap_or(0);
    for (index, byte) in bytes.iter().take(room).enumerate() {
        out!(place.cast::<u8>().wrapping_add(index), *byte);
    }
    out!(length, bytes.len());
    room >= bytes.len()
}

pub(crate) fn give_text(text: &str, place: *mut c_char, room: usize) {
    let Some(most) = room.checked_sub(1).filter(|_| !place.is_null()) else { return };
    let bytes = text.bytes().take(most).chain([0]);
    for (index, byte) in bytes.enumerate() {
        out!(place.cast::<u8>().wrapping_add(index), byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mx::address::NicId;

    #[test]
    fn numbers_count_up_and_are_not_used_again() {
        let address = |endpoint| Address { nic: NicId([2; 6]), endpoint };
        let addresses = Addresses::default();
        assert_eq!([1, 2, 3].map(|number| addresses.insert(address(number))), [0, 1, 2]);
        assert!(addresses.remove(1) && !addresses.remove(1) && !addresses.remove(9));
        assert_eq!(addresses.get(0), Some(address(1)));
        assert_eq!(addresses.get(1), None);
        assert_eq!(addresses.insert(address(2)), 3);
        assert_eq!(addresses.get(FI_ADDR_UNSPEC), None);
        assert_eq!([1, 2, 7].map(|it| addresses.number_of(address(it))), [Some(0), Some(3), None]);
    }

    #[test]
    fn texts_end_with_a_zero_however_short_the_room() {
        for room in 0..6 {
            let mut place = [b'x'; 8];
            give_text("abcd", place.as_mut_ptr().cast(), room);
            let kept = room.saturating_sub(1).min(4);
            assert_eq!(place[..kept], b"abcd"[..kept]);
            assert_eq!(place.contains(&0), room > 0);
        }
    }
}
