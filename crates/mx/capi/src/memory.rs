//! Memory of the user that messages are read from and written to.
//!
//! # The contract
//!
//! Between a call that sends or receives and the end of its request, the memory that its segments
//! name belongs to the library: the program neither frees it, nor, when sending, changes it, nor,
//! when receiving, looks at it. The list of segments itself is free when the call returns. The
//! library touches the memory in no other time:
//!
//! - **Sends.** MX reads an eager message again when frames of it were lost, also after the send
//!   has ended. So whatever may be eager is copied when it is sent, and only longer and synchronous
//!   messages are read from the user's memory, which MX does until their receiver has all. A send
//!   without a request is copied, however long: no end says when its memory is free.
//! - **Receives.** MX writes into the memory until the receive ends; a receive that is cancelled
//!   ends before the cancellation is reported.
//! - **Close.** An endpoint is closed by stopping its thread and dropping the engine, before the
//!   call returns.
//! - **Forgotten requests.** The end of such a request is not reported; its memory has to stay
//!   until the endpoint is closed.

use mx_io::memory::Segment;

use crate::abi::{EARMARK_MX_MAX_SEGMENTS, earmark_mx_segment_t};
use crate::codes::earmark_mx_return_t as Return;
use crate::guard::Failure;

#[derive(Debug)]
pub(crate) enum Parts {
    One(Segment),
    Many(Box<[Segment]>),
}

impl AsRef<[Segment]> for Parts {
    fn as_ref(&self) -> &[Segment] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Many(parts) => parts,
        }
    }
}

/// The memory of one message, which a receive writes to.
pub(crate) type CallerSegments = mx_io::memory::Segments<Parts>;

/// A message to send; up to 128 bytes are kept within their request.
pub(crate) type Outgoing = mx_io::memory::Payload<Parts, 128>;

/// The memory that a list describes.
///
/// # Errors
/// If the list is too long or absent, or if memory of it is.
///
/// # Safety
/// A list that is there has `count` entries, and the contract above holds for their memory
/// until the request has ended that this is used for.
pub(crate) unsafe fn of(
    list: *const earmark_mx_segment_t,
    count: u32,
) -> Result<CallerSegments, Failure> {
    let bad = |text: String| Failure::new(Return::EARMARK_MX_BAD_SEGMENTS, text);
    if count > EARMARK_MX_MAX_SEGMENTS {
        let most = EARMARK_MX_MAX_SEGMENTS;
        return Err(bad(format!("message in {count} segments: use {most} at most")));
    }
    if list.is_null() && count > 0 {
        return Err(bad(format!("list of {count} segments is NULL; pass an array of them")));
    }
    let mut total = 0_usize;
    let mut part = |index: usize| {
        // SAFETY: `index` is below `count`, the length of the list, which is there.
        // JUSTIFICATION: C passes lists by their address.
        let segment = unsafe { list.wrapping_add(index).read() };
        let earmark_mx_segment_t { segment_ptr, segment_length: length } = segment;
        if segment_ptr.is_null() && length > 0 {
            return Err(bad(format!(
                "segment {index} has {length} bytes at NULL; pass their address"
            )));
        }
        total = total
            .checked_add(length)
            .filter(|total| *total <= isize::MAX as usize)
            .ok_or_else(|| bad(format!("segment {index} has {length} bytes: too many")))?;
        // SAFETY: it is lent, as the caller says.
        // JUSTIFICATION: C passes memory by its address.
        Ok(unsafe { Segment::new(segment_ptr.cast(), length) })
    };
    let parts = match count {
        1 => Parts::One(part(0)?),
        _ => Parts::Many((0..count as usize).map(part).collect::<Result<_, _>>()?),
    };
    Ok(CallerSegments::new(parts))
}

macro_rules! lent {
    ($list:expr, $count:expr) => {{
        let (list, count) = ($list, $count);
        // SAFETY: the program keeps to the contract of `memory.rs`.
        // JUSTIFICATION: C passes memory by its address.
        unsafe { $crate::memory::of(list, count) }
    }};
}

pub(crate) use lent;

#[cfg(test)]
mod tests {
    use super::*;

    fn list(parts: &mut [&mut [u8]]) -> Vec<earmark_mx_segment_t> {
        let segment = |part: &mut &mut [u8]| earmark_mx_segment_t {
            segment_ptr: part.as_mut_ptr().cast(),
            segment_length: part.len(),
        };
        parts.iter_mut().map(segment).collect()
    }

    #[test]
    fn lists_that_cannot_be_are_refused() {
        let nowhere = |segment_length| earmark_mx_segment_t {
            segment_ptr: std::ptr::null_mut(),
            segment_length,
        };
        let count = EARMARK_MX_MAX_SEGMENTS + 1;
        let many = vec![nowhere(0); count as usize];
        assert!(lent!(many.as_ptr(), count).is_err());
        assert_eq!(lent!(many.as_ptr(), count - 1).unwrap().length(), 0);
        assert!(lent!(std::ptr::null(), 1).is_err());
        assert_eq!(lent!(std::ptr::null(), 0).unwrap().length(), 0);
        assert!(lent!([nowhere(1)].as_ptr(), 1).is_err());
        let mut byte = [0_u8];
        let mut huge = list(&mut [&mut byte, &mut []]);
        huge[0].segment_length = usize::MAX;
        assert!(lent!(huge.as_ptr(), 2).is_err());
    }
}
