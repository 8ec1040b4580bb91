//! Requests of peers for memory, in any bytes: what is read and written again is the same, and no
//! byte changes or is read but those that were registered.

use crate::abi::constants::{FI_REMOTE_READ, FI_REMOTE_WRITE};
use crate::bits::{HEADER, data, header, refusal, refused};
use crate::regions::{Region, Regions};
use crate::rma::{LENGTH, Operation, RmaRequest};

/// Bytes before what is registered, in it, and behind.
const BEFORE: usize = 64;
const REGISTERED: usize = 100;
const ALL: usize = 256;

const KEY: u64 = 7;

/// Serves a request, if it is one.
///
/// # Panics
/// If a promise is not kept.
pub fn request(bytes: &[u8]) {
    if let Some(header_bytes) = bytes.first_chunk::<HEADER>() {
        let (data, refused) = (data(header_bytes), refused(header_bytes));
        assert!(data.is_none() || refused.is_none());
        assert!(data.is_none() || header(data) == *header_bytes);
        assert!(refused.is_none_or(|error| refusal(error)[..5] == header_bytes[..5]));
    }
    let Some((request, rest)) = RmaRequest::decode(bytes) else { return };
    let again = [&request.encode()[..], rest].concat();
    assert_eq!(RmaRequest::decode(&again), Some((request, rest)));
    assert_eq!(rest.len(), bytes.len() - LENGTH);
    let mut memory = [0x55_u8; ALL];
    let regions = Regions::default();
    let start = memory.as_mut_ptr().wrapping_add(BEFORE).expose_provenance();
    let access = [FI_REMOTE_READ, FI_REMOTE_WRITE, FI_REMOTE_READ | FI_REMOTE_WRITE];
    let access = access[request.id as usize % access.len()];
    assert!(regions.add(KEY, Region { start, length: REGISTERED, access }));
    let writes = request.operation != Operation::Read;
    let Ok(found) = regions.find(request.key, request.offset, request.length, writes) else {
        return;
    };
    assert!(
        request.key == KEY && access & if writes { FI_REMOTE_WRITE } else { FI_REMOTE_READ } != 0
    );
    assert!(request.offset + request.length <= REGISTERED as u64);
    assert_eq!(found.length() as u64, request.length);
    let at = BEFORE + request.offset as usize;
    if request.operation == Operation::Write {
        found.write(0, rest);
        assert!(memory[at..at + rest.len()] == *rest);
    } else {
        let mut read = vec![0; request.length as usize];
        found.read(0, &mut read);
        assert!(read.iter().all(|byte| *byte == 0x55));
    }
    let is_as_before = |part: &[u8]| part.iter().all(|byte| *byte == 0x55);
    assert!(is_as_before(&memory[..at]) && is_as_before(&memory[at + request.length as usize..]));
}

#[cfg(test)]
#[path = "../../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay_corpus;

    #[test]
    fn provider_requests() {
        assert!(replay_corpus("provider_requests", super::request) > 10);
    }
}
