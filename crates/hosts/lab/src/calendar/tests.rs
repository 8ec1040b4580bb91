use std::fs::File;
use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use super::checks::passed;
use super::message::{Message, Op, SIZE};
use super::*;

fn say(stream: &mut UnixStream, op: Op) {
    stream.write_all(&Message { op, seq: 1, time: 0 }.to_bytes()).unwrap();
}

/// A calendar with one guest that waits, the guest's end, and the memory that it was given.
fn waiting(shares: bool) -> (Calendar, UnixStream, File) {
    let test = std::thread::current();
    let name = format!("earmark-calendar-{}-{:?}", std::process::id(), test.id());
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let guests = vec![("a".to_owned(), UnixListener::bind_addr(&address).unwrap())];
    let mut calendar = Calendar::new(guests).unwrap();
    let mut guest = UnixStream::connect_addr(&address).unwrap();
    say(&mut guest, Op::Start);
    assert!(calendar.accept(0).unwrap());
    calendar.listen(0).unwrap();
    calendar.begin_next().unwrap();
    let memory = passed(&guest).unwrap();
    if shares {
        memory.write_all_at(&1_u32.to_ne_bytes(), 4_096).unwrap();
    }
    say(&mut guest, Op::Wait);
    calendar.listen(0).unwrap();
    assert_eq!(calendar.state(0), State::Waiting);
    (calendar, guest, memory)
}

#[test]
fn interrupt_is_sent_when_the_turn_is_the_guests_and_before_its_message() {
    let (mut calendar, mut guest, memory) = waiting(true);
    calendar.advance_to(Instant::from_nanos(700));
    assert_eq!(calendar.next_request(), None);
    calendar.wake(0).unwrap();
    assert_eq!(calendar.next_request(), Some(Instant::from_nanos(700)));
    guest.set_nonblocking(true).unwrap();
    let mut bytes = [0; SIZE];
    calendar.run_next(Some(Instant::from_nanos(900)), |number, sees_interrupts| {
        assert_eq!((number, sees_interrupts), (0, false));
        assert!(guest.read(&mut bytes).is_err(), "RUN comes after the interrupt");
        let mut header = [0; 26];
        memory.read_exact_at(&mut header, 0).unwrap();
        assert_eq!(header[8..16], 900_u64.to_ne_bytes(), "until when it may run");
        assert_eq!(header[16..24], 700_u64.to_ne_bytes(), "the time");
        assert_eq!(header[24..], 0_u16.to_ne_bytes(), "who runs");
        0
    });
    guest.read_exact(&mut bytes).unwrap();
    let run = Message::from_bytes(bytes).unwrap();
    assert_eq!((run.op, run.time), (Op::Run, 700));
    assert_eq!(calendar.next_request(), None);
}

#[test]
fn interrupts_and_kicks_are_bits_in_memory_of_kernels_that_look_there() {
    let (mut calendar, mut guest, memory) = waiting(true);
    const CLIENT: u64 = 4_096;
    memory.write_all_at(&(1_u32 | 1 << 30).to_ne_bytes(), CLIENT).unwrap();
    calendar.wake(0).unwrap();
    calendar.run_next(None, |_, sees_interrupts| {
        assert!(sees_interrupts);
        0b101
    });
    let mut raised = [0; 8];
    memory.read_exact_at(&mut raised, CLIENT + 64).unwrap();
    assert_eq!(raised, 0b101_u64.to_ne_bytes());
    memory.write_all_at(&(1_u32 << 31).to_ne_bytes(), CLIENT + 4).unwrap();
    assert!(!calendar.take_kick(0), "its turn is not over");
    say(&mut guest, Op::Wait);
    calendar.listen(0).unwrap();
    assert!(calendar.take_kick(0));
    assert!(!calendar.take_kick(0));
}

#[test]
fn guest_without_shared_memory_cannot_be_interrupted() {
    let (mut calendar, _guest, _memory) = waiting(false);
    let refused = calendar.wake(0).unwrap_err();
    assert!(refused.contains("guest a: its kernel is too old"), "{refused}");
}
