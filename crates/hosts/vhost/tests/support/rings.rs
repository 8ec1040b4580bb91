//! Any guest memory, and a ring anywhere in it, which the device then serves.
//!
//! ```text
//!   size, shift of the descriptor table, of the available and of the used ring    1 byte each
//!   base, and whether there are event indices                                     3 bytes
//!   how many changes follow, and the changes: place, value                        1 + 4 bytes each
//!   the beginning of memory                                                       the rest
//! ```

use std::sync::atomic::{AtomicU16, Ordering};

use vhost::transport::memory::Memory;
use vhost::transport::message::{Region, VringAddress};
use vhost::transport::reaper::{ForeignFd, Reaper};
use vhost::transport::ring::{Chain, MAX_SEGMENTS, Ring};

use super::frontend::memory;
use super::input::Input;

/// Two regions that touch for the guest and not for the frontend, and one at the end of addresses.
const SIZE: u64 = 0x1000;
const REGIONS: [Region; 3] = [
    Region { guest_address: 0, size: SIZE, user_address: 0x10_0000, file_offset: 0 },
    Region { guest_address: SIZE, size: SIZE, user_address: 0x20_0000, file_offset: SIZE },
    Region {
        guest_address: u64::MAX - SIZE,
        size: SIZE,
        user_address: u64::MAX - SIZE,
        file_offset: 2 * SIZE,
    },
];

/// Chains that are served at most, which is more than a ring holds.
const CHAINS: usize = 300;

/// Makes the memory and the ring that `bytes` describe, and serves it as a device does.
pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let size = 1_u32.checked_shl(input.u8().into()).unwrap_or(100);
    // Mostly in order and aligned; a fuzzer finds the rest.
    let mut address = |from: u64| from.wrapping_add(u64::from(input.u8()) * 4);
    let address = VringAddress {
        index: 0,
        flags: 0,
        descriptors: address(0x10_0000),
        available: address(0x10_0800),
        used: address(0x20_0000),
        log: 0,
    };
    let (base, event_index) = (input.u16(), input.u8() & 1 == 0);
    let changes: Vec<_> = (0..input.u8()).map(|_| (u64::from(input.u16()), input.u16())).collect();

    let file = memory(3 * SIZE);
    let image = input.rest();
    rustix::io::pwrite(&file, &image[..image.len().min(3 * SIZE as usize)], 0).expect("memory");
    let reaper = Reaper::start().expect("a thread");
    let fds = [(); 3].map(|()| ForeignFd::new(file.try_clone().expect("a descriptor"), &reaper));
    let guest = Memory::map(&REGIONS, &fds, &reaper).expect("good regions");
    let Ok(mut ring) = Ring::new(&guest, &address, size, base, event_index) else { return };
    assert!(size.is_power_of_two());
    // The driver changes something whenever the device has served a chain.
    let mut change = changes.iter().map(|(at, value)| {
        let _ = rustix::io::pwrite(&file, &value.to_le_bytes(), at % (3 * SIZE));
    });
    let used = guest.area::<AtomicU16>(address.used, 2, 4).expect("the ring has one");
    let mut chain = Chain::default();
    let mut room = [0; 64];
    for _ in 0..CHAINS {
        chain.clear();
        let before = ring.base();
        let Ok(taken) = ring.take(&guest, &mut chain) else { return };
        let Some(head) = taken else {
            ring.ask_for_kick();
            if ring.available().is_ok_and(|available| available == 0) && change.next().is_none() {
                break;
            }
            continue;
        };
        assert!(u32::from(head) < size);
        assert_eq!(ring.base(), before.wrapping_add(1));
        assert!(chain.readable.len() + chain.writable.len() <= MAX_SEGMENTS);
        for segment in &chain.readable {
            let length = (segment.length as usize).min(room.len());
            let _ = guest.read(segment.address, &mut room[..length]);
        }
        for segment in &chain.writable {
            let length = (segment.length as usize).min(room.len());
            let _ = guest.write(segment.address, &room[..length]);
        }
        ring.add_used(head, room.len() as u32);
        assert!(ring.flush_used());
        assert_eq!(used.load(1, Ordering::Relaxed), ring.published());
        let _ = ring.driver_event();
        change.next();
    }
    assert!(!guest.is_poisoned());
}
