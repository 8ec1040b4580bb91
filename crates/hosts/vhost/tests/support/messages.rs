//! Any conversation: messages of any kind in any order, with any descriptors, and rings that are
//! served whenever they are live.
//!
//! ```text
//!   pairs, and whether notifications are in-band                         1 byte
//!   each message: request, flags, how many descriptors                   3 bytes
//!                 what each is, how long the payload is, the payload
//! ```

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;

use vhost::DeviceSettings;
use vhost::transport::message::{FrontendRequest, HEADER, Header};
use vhost::transport::reaper::{ForeignFd, Reaper};
use vhost::transport::ring::Chain;
use vhost::transport::session::{Answer, Session, Watching};

use super::frontend::{event, memory};
use super::input::Input;

/// Messages that are played at most.
const MESSAGES: usize = 64;

/// The descriptors that a message may come with, made once: one of each kind that there is.
fn descriptors() -> &'static [OwnedFd] {
    static DESCRIPTORS: OnceLock<Vec<OwnedFd>> = OnceLock::new();
    DESCRIPTORS.get_or_init(|| {
        let (one, other) = UnixStream::pair().expect("sockets");
        let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
        vec![
            memory(0x1_0000),
            event(),
            memory(0x1000),
            memory(0),
            one.into(),
            other.into(),
            reader,
            writer,
            File::open("/dev/null").expect("a device").into(),
            File::open("/proc/self/stat").expect("a file").into(),
        ]
    })
}

pub(crate) fn replay(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kind = input.u8();
    let settings = DeviceSettings {
        mac: [2, 0, 0, 0, 0, 10],
        pairs: u16::from(1 + kind % 3),
        inband: kind & 0x80 != 0,
        counts_rings: false,
        polled: kind & 0x40 != 0,
        ..DeviceSettings::default()
    };
    let watching = Watching::new(0, 1).expect("what a device needs");
    let reaper = watching.reaper.clone();
    let mut session = Session::new(&settings.session(), watching);
    for _ in 0..MESSAGES {
        if input.is_empty() || !say(&mut session, &mut input, &reaper) {
            return;
        }
        for index in 0..2 * usize::from(settings.pairs) + 2 {
            if !serve(&mut session, index) {
                return;
            }
        }
    }
}

/// Plays the next message; whether the session goes on.
fn say(session: &mut Session, input: &mut Input<'_>, reaper: &Reaper) -> bool {
    let request = match input.u8() {
        255 => u32::MAX,
        small => small.into(),
    };
    let flags = u32::from(input.u8());
    let fds = (0..input.u8() % 10)
        .map(|_| {
            let kinds = descriptors();
            let fd = &kinds[usize::from(input.u8()) % kinds.len()];
            ForeignFd::new(fd.try_clone().expect("a descriptor"), reaper)
        })
        .collect();
    let length = input.u8();
    let payload = input.bytes(length.into());
    let fields = [request, flags, payload.len() as u32];
    let mut bytes = [0; HEADER];
    for (to, field) in bytes.chunks_mut(4).zip(fields) {
        to.copy_from_slice(&field.to_ne_bytes());
    }
    let Ok(header) = Header::parse(&bytes) else { return true };
    let Ok(request) = FrontendRequest::parse(&header, payload) else { return true };
    let number = request.number();
    match session.handle(&header, request, fds) {
        Ok(Answer::Nothing) => {}
        Ok(Answer::Now(answer) | Answer::WhenServed(answer)) => {
            let (answer, payload) = answer.split_first_chunk().expect("a header");
            let answer = Header::parse(answer).expect("a good header");
            assert!(answer.is_reply());
            assert_eq!((answer.request, answer.size as usize), (number, payload.len()));
        }
        Err(violation) => {
            assert!(!violation.to_string().is_empty());
            return false;
        }
    }
    true
}

/// Takes a few chains off a ring, if it is live; whether the session goes on.
fn serve(session: &mut Session, index: usize) -> bool {
    let mut chain = Chain::default();
    for _ in 0..4 {
        let Some(live) = session.ring(index) else { break };
        match live.ring.take(live.memory, &mut chain) {
            Ok(Some(head)) => live.ring.add_used(head, 0),
            Ok(None) => break,
            Err(_) => return false,
        }
        live.ring.flush_used();
        let _ = live.ring.driver_event();
        live.ring.ask_for_kick();
        chain.clear();
    }
    session.call(index % 3).is_ok() && session.check_backend().is_ok() && !session.is_poisoned()
}
