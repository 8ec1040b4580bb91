//! libfabric's binary interface, as far as a provider of this kind needs it.
//!
//! Written by hand after the headers of 1.17 (`rdma/fabric.h`, `fi_domain.h`, `fi_endpoint.h`,
//! `fi_tagged.h`, `fi_eq.h`, `fi_cm.h`, `providers/fi_prov.h`); `tests.rs` compares it with them.
//! libfabric is not linked: the symbol versions of an older one would choose older layouts.

use std::ffi::{c_char, c_int};

use libc::ENOSYS;

/// Structures of C. All fields are numbers, addresses, or such structures.
macro_rules! c_struct {
    ($($Name:ident { $($field:ident: $type:ty),* $(,)? })*) => {$(
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $Name {
            $(pub(crate) $field: $type,)*
        }

        impl Default for $Name {
            fn default() -> Self {
                // SAFETY: zeros are a value of every field.
                // JUSTIFICATION: zero is what C leaves out, and addresses have no default.
                unsafe { std::mem::MaybeUninit::zeroed().assume_init() }
            }
        }
    )*};
}

/// Tables of functions. Each begins with its size, so that a caller that knows a longer one does
/// not look beyond it.
macro_rules! c_table {
    ($($Name:ident { $($call:ident($($arg:ty),* $(,)?) -> $result:ty;)* })*) => {$(
        #[repr(C)]
        pub(crate) struct $Name {
            pub(crate) size: usize,
            $(pub(crate) $call: unsafe extern "C" fn($($arg),*) -> $result,)*
        }

        impl $Name {
            /// Every call says that it is not there.
            pub(crate) const REFUSES: Self = Self {
                size: size_of::<Self>(),
                $($call: {
                    unsafe extern "C" fn refuses($(_: $arg),*) -> $result {
                        <$result as $crate::abi::Refused>::VALUE
                    }
                    refuses
                },)*
            };
        }
    )*};
}

/// What a call returns that is not there.
pub(crate) trait Refused {
    const VALUE: Self;
}

impl Refused for c_int {
    const VALUE: Self = -ENOSYS;
}

impl Refused for isize {
    const VALUE: Self = -(ENOSYS as Self);
}

impl Refused for u64 {
    const VALUE: Self = 0;
}

impl Refused for *const c_char {
    const VALUE: Self = std::ptr::null();
}

pub(crate) mod constants;
pub(crate) mod fid;
pub(crate) mod info;
pub(crate) mod objects;
#[cfg(test)]
mod tests;
pub(crate) mod transfers;

macro_rules! fid_ref {
    ($fid:expr, $object:ty) => {{
        let object: *mut $object = $fid.cast();
        // SAFETY: the caller passes an object that this provider handed out as this type, and that
        // is not closed yet (fi_close(3)); all of its parts may be shared between threads.
        // JUSTIFICATION: C knows objects by their address only.
        unsafe { &*object }
    }};
}

macro_rules! fid_take {
    ($fid:expr, $object:ty) => {{
        let object: *mut $object = $fid.cast();
        // SAFETY: this provider made it with `Box::into_raw`, and its owner closes it once
        // and does not use it again.
        // JUSTIFICATION: C owns objects by their address only.
        unsafe { Box::from_raw(object) }
    }};
}

macro_rules! out {
    ($place:expr, $value:expr) => {{
        let (place, value) = ($place, $value);
        // SAFETY: the caller passes the address of a variable for the result.
        // JUSTIFICATION: C returns results this way.
        unsafe { place.write(value) }
    }};
}

macro_rules! arg_ref {
    ($pointer:expr) => {{
        let pointer = $pointer;
        // SAFETY: it is null, or the address of such a structure, which is not changed meanwhile.
        // JUSTIFICATION: C passes attributes and messages this way.
        unsafe { pointer.as_ref() }
    }};
}

pub(crate) use {arg_ref, fid_ref, fid_take, out};
