//! Orders of messages: those of known frontends, and any other.

use base::prng::Prng;
use rustix::event::{EventfdFlags, eventfd};

use super::*;
use crate::config::DeviceSettings;
use crate::memory::tests::file;
use crate::message::HEADER;

fn settings(pairs: u16, inband: bool) -> DeviceSettings {
    DeviceSettings { mac: [2; 6], pairs, inband, ..DeviceSettings::default() }
}

fn session(pairs: u16, inband: bool) -> Session {
    Session::new(&settings(pairs, inband).session(), Watching::new(1, 2).unwrap())
}

fn event() -> OwnedFd {
    eventfd(0, EventfdFlags::empty()).unwrap()
}

fn state(index: u32, number: u32) -> VringState {
    VringState { index, number }
}

fn fd(index: u8) -> VringFd {
    VringFd { index, none: false }
}

fn address(index: u32) -> VringAddress {
    let at = 0x1000 * 4 * u64::from(index);
    VringAddress {
        index,
        descriptors: at,
        available: at + 0x1000,
        used: at + 0x2000,
        ..VringAddress::default()
    }
}

const REGION: Region =
    Region { guest_address: 0, size: 0x10_0000, user_address: 0, file_offset: 0 };

impl Session {
    fn ask(&mut self, request: Request, fds: Vec<OwnedFd>) -> Result<Answer, ProtocolViolation> {
        let bytes = request.encode(true);
        let header = Header::parse(bytes.first_chunk::<HEADER>().unwrap()).unwrap();
        let reaper = self.watching.reaper.clone();
        let fds = fds.into_iter().map(|fd| ForeignFd::new(fd, &reaper)).collect();
        self.handle(&header, request, fds)
    }

    fn does(&mut self, request: Request) {
        self.ask(request, Vec::new()).unwrap();
    }
}

fn ready(session: &mut Session, features: u64) {
    session.does(Request::SetProtocolFeatures(PROTOCOL_F_REPLY_ACK));
    session.does(Request::SetFeatures(features));
    session.ask(Request::SetMemTable(vec![REGION]), vec![file(REGION.size)]).unwrap();
    session.does(Request::SetVringNum(state(0, 256)));
    session.does(Request::SetVringBase(state(0, 0)));
    session.does(Request::SetVringAddr(address(0)));
}

#[test]
fn ring_lives_as_long_as_it_is_started_and_enabled() {
    let mut session = session(1, false);
    // QEMU enables rings before it sets features.
    session.does(Request::SetVringEnable(state(0, 1)));
    ready(&mut session, F_PROTOCOL_FEATURES | VERSION_1 | EVENT_IDX);
    assert!(session.ring(0).is_none());
    session.ask(Request::SetVringKick(fd(0)), vec![event()]).unwrap();
    session.ask(Request::SetVringCall(fd(0)), vec![event()]).unwrap();
    session.ask(Request::SetVringErr(fd(0)), vec![event()]).unwrap();
    assert_eq!(session.ring(0).unwrap().generation, 1);
    session.does(Request::SetVringEnable(state(0, 0)));
    assert!(session.ring(0).is_none());
    session.does(Request::SetVringEnable(state(0, 1)));
    assert_eq!(session.ring(0).unwrap().generation, 1);
    let stopped = session.ask(Request::GetVringBase(state(0, 0)), Vec::new()).unwrap();
    assert_eq!(stopped, Answer::Now(message::reply(11, &[0; 8])));
    assert!(session.ring(0).is_none());
    session.ask(Request::SetVringKick(fd(0)), vec![event()]).unwrap();
    assert_eq!(session.ring(0).unwrap().generation, 2);
    session.does(Request::ResetDevice);
    assert!(session.ring(0).is_none());
}

#[test]
fn inband_ring_lives_as_soon_as_it_is_enabled() {
    let mut session = session(1, true);
    ready(&mut session, F_PROTOCOL_FEATURES | VERSION_1);
    session
        .does(Request::SetProtocolFeatures(PROTOCOL_F_REPLY_ACK | PROTOCOL_F_INBAND_NOTIFICATIONS));
    session.does(Request::SetVringEnable(state(0, 1)));
    assert!(session.ring(0).is_some());
    let kicked = session.ask(Request::VringKick(state(0, 0)), Vec::new()).unwrap();
    assert_eq!(kicked, Answer::WhenServed(message::reply(35, &[0; 8])));
}

#[test]
fn queues_are_pairs_or_rings() {
    for (counts_rings, queues) in [(false, 2_u64), (true, 5)] {
        let settings = DeviceSettings { counts_rings, ..settings(2, false) };
        let mut session = Session::new(&settings.session(), Watching::new(1, 2).unwrap());
        let answer = session.ask(Request::GetQueueNum, Vec::new()).unwrap();
        assert_eq!(answer, Answer::Now(message::reply(17, &queues.to_ne_bytes())));
    }
}

#[test]
fn config_is_given_as_asked() {
    let mut session = session(1, false);
    let asked = Config { offset: 6, flags: 0, bytes: vec![0; 6] };
    let answer = session.ask(Request::GetConfig(asked.clone()), Vec::new()).unwrap();
    let there = Config { bytes: vec![1, 0, 1, 0, 0xDC, 5], ..asked };
    assert_eq!(answer, Answer::Now(message::reply(24, &there.encode())));
    let beyond = Config { offset: u32::MAX, flags: 0, bytes: vec![0; 256] };
    let answer = session.ask(Request::GetConfig(beyond.clone()), Vec::new()).unwrap();
    assert_eq!(answer, Answer::Now(message::reply(24, &beyond.encode())));
}

#[test]
fn offences_are_told_apart() {
    let refused = |request, fds| session(1, false).ask(request, fds).unwrap_err().to_string();
    for (request, fds, reason) in [
        (Request::SetFeatures(1 << 5 | 1), vec![], "features 0x1"),
        (Request::SetProtocolFeatures(PROTOCOL_F_INBAND_NOTIFICATIONS), vec![], "not offered"),
        (Request::SetVringNum(state(3, 8)), vec![], "SetVringNum (8) is about ring 3"),
        (Request::GetVringBase(state(u32::MAX, 8)), vec![], "there are 3"),
        (Request::SetVringBase(state(0, 65_536)), vec![], "begins at 65536"),
        (Request::SetVringKick(fd(0)), vec![], "0 file descriptors"),
        (Request::SetVringCall(fd(0)), vec![event(), event()], "2 file descriptors"),
        (Request::SetVringCall(fd(0)), vec![file(0)], "neither an eventfd"),
        (Request::SetVringKick(fd(0)), vec![file(0)], "kick descriptor of ring 0"),
        (Request::SetOwner, vec![event()], "1 file descriptors"),
        (Request::SetBackendReqFd, vec![], "0 file descriptors"),
        (Request::SetMemTable(vec![REGION]), vec![], "came with 0"),
        (Request::Unknown(99), vec![], "request 99"),
    ] {
        let said = refused(request, fds);
        assert!(said.contains(reason), "{said}");
    }
    let mut legacy = session(1, false);
    legacy.does(Request::SetVringEnable(state(0, 1)));
    ready(&mut legacy, F_PROTOCOL_FEATURES);
    let refused = legacy.ask(Request::SetVringKick(fd(0)), vec![event()]).unwrap_err();
    assert!(matches!(refused, ProtocolViolation::Legacy));
}

#[test]
fn unknown_request_that_wants_an_acknowledgement_gets_a_refusal() {
    let mut session = session(1, false);
    session.does(Request::SetProtocolFeatures(PROTOCOL_F_REPLY_ACK));
    let answer = session.ask(Request::Unknown(99), Vec::new()).unwrap();
    assert_eq!(answer, Answer::Now(message::reply(99, &1_u64.to_ne_bytes())));
}

#[test]
fn any_order_of_messages_does_no_harm() {
    for seed in 0..300 {
        let mut prng = Prng::new(seed);
        let mut session = session(2, seed % 2 == 0);
        for _ in 0..60 {
            let (request, fds) = any_request(&mut prng);
            if session.ask(request, fds).is_err() {
                break;
            }
            (0..6).for_each(|index| _ = session.ring(index));
        }
    }
}

fn any_request(prng: &mut Prng) -> (Request, Vec<OwnedFd>) {
    let mut below = |bound: u64| prng.next_u64() % bound;
    let index = below(6) as u32;
    let number = [0, 1, 2, 8, 256, 32_768, 65_535, 65_536][below(8) as usize];
    let features = [0, 1 << 30, VERSION_1, VERSION_1 | EVENT_IDX | 1 << 30][below(4) as usize];
    let fds = (0..below(3)).map(|_| event()).collect();
    let none = Vec::new();
    match below(14) {
        0 => (Request::SetFeatures(features), none),
        1 => (Request::SetProtocolFeatures(below(2) << 14 | below(2) << 3), none),
        2 => (Request::SetMemTable(vec![REGION]), vec![file(REGION.size)]),
        3 => (Request::SetVringNum(state(index, number)), none),
        4 => (Request::SetVringBase(state(index, number)), none),
        5 => (Request::GetVringBase(state(index, 0)), none),
        6 => (Request::SetVringAddr(address(index)), none),
        7 => (Request::SetVringEnable(state(index, number)), none),
        8 => (Request::SetVringKick(fd(index as u8)), fds),
        9 => (Request::SetVringCall(fd(index as u8)), fds),
        10 => (Request::VringKick(state(index, 0)), none),
        11 => (Request::ResetDevice, none),
        12 => (Request::GetConfig(Config { offset: number, flags: 0, bytes: vec![0; 8] }), none),
        _ => (Request::Unknown(below(50) as u32), none),
    }
}
