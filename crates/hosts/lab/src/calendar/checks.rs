//! What a guest's clock says to its calendar, and writes into the memory that both share.
//!
//! Each operation is a byte and what belongs to it. Time does not go back, no guest asks to run
//! before it, and of two guests the one that follows the protocol gets its turn at the end, unless
//! the other one was given up.

use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use base::time::Instant;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::Calendar;
use super::message::{Message, Op, SIZE};

/// Times that a byte chooses.
const TIMES: [u64; 8] = [0, 1, 1_000, 75_000, 1 << 40, u64::MAX / 2, u64::MAX - 1, u64::MAX];

/// Lets a guest do what the bytes say.
///
/// # Panics
/// If time goes back.
pub(crate) fn replay(bytes: &[u8]) {
    let name = format!("earmark-clock-{}-{:?}", std::process::id(), std::thread::current().id());
    let address = SocketAddr::from_abstract_name(name).expect("it is short");
    let listener = UnixListener::bind_addr(&address).expect("no other test has it");
    let guests = vec![("a".to_owned(), listener)];
    let mut calendar = Calendar::new(guests).expect("there is memory");
    let mut guest = UnixStream::connect_addr(&address).expect("it listens");
    guest.set_nonblocking(true).expect("it takes it");
    let (mut memory, mut now) = (None, calendar.now());
    let mut input = bytes.iter().copied();
    while let Some(what) = input.next() {
        let value = TIMES[usize::from(what / 16) % 8];
        let seq = u32::from(what);
        match what % 16 {
            op @ 0..=8 => {
                let message = Message { op: Op::ALL[usize::from(op)], seq, time: value };
                let _ = guest.write_all(&message.to_bytes());
            }
            9 => {
                let count = usize::from(input.next().unwrap_or(0)) % (2 * SIZE);
                let bytes: Vec<u8> = input.by_ref().take(count).collect();
                let _ = guest.write_all(&bytes);
            }
            10 => drop(calendar.accept(0)),
            11 => {
                drop(calendar.begin_next());
                memory = memory.or_else(|| passed(&guest));
            }
            12 => {
                // What its kernel writes: whether it shares, when it wants to run, the time.
                let at = [4_096, 4_100, 4_104, 16, 8, 24, 4_160][usize::from(what / 16) % 7];
                let value = TIMES[usize::from(input.next().unwrap_or(0)) % 8];
                if let Some(memory) = &memory {
                    File::write_all_at(memory, &value.to_ne_bytes(), at).expect("there is room");
                }
            }
            13 => calendar.advance_to(Instant::from_nanos(value.min(1 << 41))),
            14 if calendar.wake(0).is_err() => return,
            14 => drop(calendar.take_kick(0)),
            _ => {
                calendar.run_next(Some(Instant::from_nanos(value)), |_, _| u64::MAX);
                let _ = guest.read(&mut [0; 4 * SIZE]);
            }
        }
        // A guest that says what no clock says is given up.
        if let Err(why) = calendar.listen(0) {
            assert!(why.contains("guest a"), "{why}");
            return;
        }
        assert!(calendar.now() >= now, "{:?} after {now:?}", calendar.now());
        now = calendar.now();
        assert!(calendar.next_request().is_none_or(|next| next >= now));
    }
}

/// The memory that the calendar has passed to the guest.
pub(super) fn passed(guest: &UnixStream) -> Option<File> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut ack = [0; 64 * SIZE];
    let mut bytes = [IoSliceMut::new(&mut ack)];
    recvmsg(guest, &mut bytes, &mut control, RecvFlags::empty()).ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next().map(File::from),
        _ => None,
    })
}
