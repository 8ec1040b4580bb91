//! The calendar with guests that are threads of the test, which speak as the kernel's clock does.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use base::time::Instant;
use lab::calendar::Calendar;
use lab::dataplane::{DataPlaneError, VirtualHandle, VirtualSettings};

use crate::common::{ok, soon};

const ACK: u32 = 0;
const START: u32 = 1;
const REQUEST: u32 = 2;
const WAIT: u32 = 3;
const GET: u32 = 4;
const RUN: u32 = 6;
const GET_TIME_OF_DAY: u32 = 8;

struct Clock {
    stream: UnixStream,
    seq: u32,
}

impl Clock {
    fn say(&mut self, op: u32, seq: u32, time: u64) {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&op.to_ne_bytes());
        bytes[4..8].copy_from_slice(&seq.to_ne_bytes());
        bytes[8..].copy_from_slice(&time.to_ne_bytes());
        self.stream.write_all(&bytes).unwrap();
    }

    fn hear(&mut self) -> (u32, u32, u64) {
        let mut bytes = [0; 16];
        self.stream.read_exact(&mut bytes).unwrap();
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        (word(0), word(4), u64::from_ne_bytes(bytes[8..].try_into().unwrap()))
    }

    /// Says something and waits for the answer's time.
    fn ask(&mut self, op: u32, time: u64) -> u64 {
        self.seq += 1;
        self.say(op, self.seq, time);
        let (answer, seq, time) = self.hear();
        assert_eq!((answer, seq), (ACK, self.seq));
        time
    }

    /// Asks for a turn and waits for it.
    fn sleep_until(&mut self, time: u64) {
        self.ask(REQUEST, time);
        self.ask(WAIT, 0);
        let (op, seq, now) = self.hear();
        assert_eq!((op, now), (RUN, time));
        self.say(ACK, seq, 0);
    }
}

/// Guests that note what they do.
struct ClockWorld {
    handle: VirtualHandle,
    guests: Vec<JoinHandle<()>>,
    notes: Receiver<(usize, u64)>,
}

fn start(calendar: Calendar) -> Result<VirtualHandle, DataPlaneError> {
    VirtualHandle::start(Vec::new(), calendar, VirtualSettings::default(), None)
}

/// A guest for a calendar, and the connection of its clock, which has said nothing yet.
fn guest(name: &str) -> ((String, UnixListener), Clock) {
    let address = format!("earmark-calendar-{}-{name}", std::process::id());
    let address = ok(SocketAddr::from_abstract_name(address));
    let listener = ok(UnixListener::bind_addr(&address));
    let stream = ok(UnixStream::connect_addr(&address));
    ((name.to_owned(), listener), Clock { stream, seq: 0 })
}

/// A calendar of one guest, which has begun.
fn alone(name: &str) -> (VirtualHandle, Clock) {
    let (guest, mut clock) = guest(name);
    let handle = ok(start(ok(Calendar::new(vec![guest]))));
    clock.ask(START, 0);
    (handle, clock)
}

/// Starts a guest for each list of turns, in nanoseconds.
fn world(turns: Vec<Vec<u64>>) -> ClockWorld {
    let (note, notes) = channel();
    let (mut calendar, mut guests) = (Vec::new(), Vec::new());
    for (number, turns) in turns.into_iter().enumerate() {
        let (guest, mut clock) = guest(&format!("order-{number}"));
        calendar.push(guest);
        let note = note.clone();
        guests.push(std::thread::spawn(move || {
            clock.ask(START, number as u64);
            for turn in turns {
                clock.sleep_until(turn);
                assert_eq!(clock.ask(GET, 0), turn);
                note.send((number, turn)).unwrap();
            }
        }));
    }
    let handle = ok(start(ok(Calendar::new(calendar))));
    ClockWorld { handle, guests, notes }
}

#[test]
fn calendar__turns_are_taken_in_the_order_of_time_then_of_guests() {
    let world = world(vec![vec![10, 30, 30_000], vec![10, 20, 40]]);
    world.guests.into_iter().for_each(|guest| guest.join().unwrap());
    let turns: Vec<_> = world.notes.iter().collect();
    assert_eq!(turns, [(0, 10), (1, 10), (1, 20), (0, 30), (1, 40), (0, 30_000)]);
    let over = || world.handle.outlook().is_over;
    soon("all guests are gone", over);
    assert_eq!(
        ok(world.handle.data_plane().call(|plane| plane.now())),
        Instant::from_nanos(30_000)
    );
}

#[test]
fn calendar__planned_commands_come_before_guests_that_run_then() {
    let (note, notes) = channel();
    let (guest, mut clock) = guest("plan");
    let handle = ok(start(ok(Calendar::new(vec![guest]))));
    let planned = note.clone();
    let done = ok(handle.at(Instant::from_nanos(50), move |plane| {
        planned.send("plan").unwrap();
        plane.now()
    }));
    clock.ask(START, 0);
    clock.sleep_until(50);
    note.send("guest").unwrap();
    drop(note);
    assert_eq!(notes.iter().collect::<Vec<_>>(), ["plan", "guest"]);
    assert_eq!(ok(done.recv()), Instant::from_nanos(50));
}

#[test]
fn calendar__time_of_day_goes_with_the_time() {
    let (_handle, mut clock) = alone("day");
    let before = clock.ask(GET_TIME_OF_DAY, 0);
    clock.sleep_until(1_000_000);
    assert_eq!(clock.ask(GET_TIME_OF_DAY, 0), before + 1_000_000);
}

#[test]
fn calendar__its_end_waits_for_no_guest() {
    let ((here, mut clock), (absent, _never)) = (guest("here"), guest("absent"));
    let calendar = ok(Calendar::new(vec![here, absent]));
    let timeout = Duration::from_secs(u32::MAX.into());
    let settings = VirtualSettings { timeout, ..VirtualSettings::default() };
    let handle = ok(VirtualHandle::start(Vec::new(), calendar, settings, None));
    clock.ask(START, 0);
    // Time stands still: one guest runs, and the other has still to come.
    let dropped = std::thread::spawn(move || drop(handle));
    soon("the thread has ended", || dropped.is_finished());
}

#[test]
fn calendar__nonsense_stops_time_and_is_reported() {
    let (handle, mut clock) = alone("bad");
    clock.say(99, 1, 0);
    let failure = || handle.outlook().failure;
    soon("the calendar gives up", || failure().is_some());
    assert!(failure().unwrap().contains("guest bad: unknown message"), "{:?}", failure());
}
