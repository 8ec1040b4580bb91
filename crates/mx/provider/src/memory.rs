//! Memory of the user that messages are read from and written to.
//!
//! # The contract
//!
//! Between a call that sends or receives and the completion that ends it, the memory that the call
//! named belongs to the provider: the user neither frees it, nor, when sending, changes it, nor,
//! when receiving, looks at it (fi_msg(3), "the buffer may not be accessed until the operation
//! completes"). The provider touches it in no other time:
//!
//! - **Sends.** MX reads an eager message again when frames of it were lost, also after the send
//!   has ended. So what is short enough to be eager is copied when it is sent, and only longer
//!   messages are read from the user's memory, which MX does until their receiver has reported that
//!   it has all.
//! - **Receives.** MX writes into the memory until the receive ends, and gives the place back with
//!   its end; a receive that is cancelled ends before the cancellation is reported.
//! - **Close.** An endpoint is closed by stopping its thread and dropping the engine, before
//!   `fi_close` returns.

use libc::iovec;
use mx_io::memory::Segment;

/// So many parts a message may have.
pub(crate) const MAX_PARTS: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageParts {
    parts: [Segment; MAX_PARTS],
    count: usize,
}

impl AsRef<[Segment]> for MessageParts {
    fn as_ref(&self) -> &[Segment] {
        &self.parts[..self.count]
    }
}

pub(crate) type Segments = mx_io::memory::Segments<MessageParts>;

pub(crate) fn nothing() -> Segments {
    Segments::new(MessageParts { parts: [Segment::NOTHING; MAX_PARTS], count: 0 })
}

/// What is left of memory in one piece after so many bytes.
pub(crate) fn rest(of: &Segments, skip: usize) -> Segments {
    of_one(first(of).after(skip))
}

pub(crate) fn first(of: &Segments) -> Segment {
    of.parts().first().copied().unwrap_or(Segment::NOTHING)
}

fn of_one(segment: Segment) -> Segments {
    let mut parts = [Segment::NOTHING; MAX_PARTS];
    parts[0] = segment;
    Segments::new(MessageParts { parts, count: 1 })
}

/// Memory in one piece.
///
/// # Safety
/// The contract above holds for `length` bytes at `at`, until the request has ended that this
/// memory, or a copy of it, is used for.
pub(crate) unsafe fn one(at: *mut u8, length: usize) -> Segments {
    // SAFETY: it is lent, as the caller says.
    // JUSTIFICATION: C passes memory by its address.
    of_one(unsafe { Segment::new(at, length) })
}

/// Memory that a list describes; `None` if it is too long.
///
/// # Safety
/// The list has `count` entries, and the contract above holds for each of them, as in `one`.
pub(crate) unsafe fn of(list: *const iovec, count: usize) -> Option<Segments> {
    if count > MAX_PARTS {
        return None;
    }
    let mut parts = [Segment::NOTHING; MAX_PARTS];
    for (index, part) in parts[..count].iter_mut().enumerate() {
        // SAFETY: `index` is below `count`, the length of the list.
        // JUSTIFICATION: C passes lists by their address.
        let iovec = unsafe { list.wrapping_add(index).read() };
        // SAFETY: it is lent, as the caller says.
        // JUSTIFICATION: C passes memory by its address.
        *part = unsafe { Segment::new(iovec.iov_base.cast(), iovec.iov_len) };
    }
    Some(Segments::new(MessageParts { parts, count }))
}

macro_rules! borrow_iov {
    ($how:ident, $start:expr, $length:expr) => {{
        let (start, length) = ($start, $length);
        // SAFETY: the caller of this provider keeps to the contract of `memory.rs`.
        // JUSTIFICATION: C passes memory by its address.
        unsafe { $crate::memory::$how(start, length) }
    }};
}

pub(crate) use borrow_iov;

#[cfg(test)]
mod tests {
    use super::*;

    fn list(parts: &mut [&mut [u8]]) -> Vec<iovec> {
        let iovec = |part: &mut &mut [u8]| iovec {
            iov_base: part.as_mut_ptr().cast(),
            iov_len: part.len(),
        };
        parts.iter_mut().map(iovec).collect()
    }

    #[test]
    fn more_parts_than_there_is_room_for_are_refused() {
        let mut parts = [[0_u8; 1]; MAX_PARTS + 1];
        let mut parts: Vec<&mut [u8]> = parts.iter_mut().map(|part| &mut part[..]).collect();
        let iovecs = list(&mut parts);
        assert!(borrow_iov!(of, iovecs.as_ptr(), MAX_PARTS + 1).is_none());
        assert_eq!(borrow_iov!(of, iovecs.as_ptr(), MAX_PARTS).unwrap().length(), MAX_PARTS);
        assert_eq!(borrow_iov!(of, std::ptr::null(), 0).unwrap().length(), 0);
    }
}
