//! Orders of messages: those of known frontends, and any other.

use rustix::event::{EventfdFlags, eventfd};

use super::*;
use crate::DeviceSettings;
use crate::transport::memory::tests::file;
use crate::transport::message::HEADER;

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
    fn ask(
        &mut self,
        request: FrontendRequest,
        fds: Vec<OwnedFd>,
    ) -> Result<Answer, ProtocolViolation> {
        let bytes = request.encode(true);
        let header = Header::parse(bytes.first_chunk::<HEADER>().unwrap()).unwrap();
        let reaper = self.watching.reaper.clone();
        let fds = fds.into_iter().map(|fd| ForeignFd::new(fd, &reaper)).collect();
        self.handle(&header, request, fds)
    }

    fn does(&mut self, request: FrontendRequest) {
        self.ask(request, Vec::new()).unwrap();
    }
}

fn ready(session: &mut Session, features: u64) {
    session.does(FrontendRequest::SetProtocolFeatures(PROTOCOL_F_REPLY_ACK));
    session.does(FrontendRequest::SetFeatures(features));
    session.ask(FrontendRequest::SetMemTable(vec![REGION]), vec![file(REGION.size)]).unwrap();
    session.does(FrontendRequest::SetVringNum(state(0, 256)));
    session.does(FrontendRequest::SetVringBase(state(0, 0)));
    session.does(FrontendRequest::SetVringAddr(address(0)));
}

#[test]
fn ring_lives_as_long_as_it_is_started_and_enabled() {
    let mut session = session(1, false);
    // QEMU enables rings before it sets features.
    session.does(FrontendRequest::SetVringEnable(state(0, 1)));
    ready(&mut session, F_PROTOCOL_FEATURES | VERSION_1 | EVENT_IDX);
    assert!(session.ring(0).is_none());
    session.ask(FrontendRequest::SetVringKick(fd(0)), vec![event()]).unwrap();
    session.ask(FrontendRequest::SetVringCall(fd(0)), vec![event()]).unwrap();
    session.ask(FrontendRequest::SetVringErr(fd(0)), vec![event()]).unwrap();
    assert_eq!(session.ring(0).unwrap().generation, 1);
    session.does(FrontendRequest::SetVringEnable(state(0, 0)));
    assert!(session.ring(0).is_none());
    session.does(FrontendRequest::SetVringEnable(state(0, 1)));
    assert_eq!(session.ring(0).unwrap().generation, 1);
    let stopped = session.ask(FrontendRequest::GetVringBase(state(0, 0)), Vec::new()).unwrap();
    assert_eq!(stopped, Answer::Now(message::reply(11, &[0; 8])));
    assert!(session.ring(0).is_none());
    session.ask(FrontendRequest::SetVringKick(fd(0)), vec![event()]).unwrap();
    assert_eq!(session.ring(0).unwrap().generation, 2);
    session.does(FrontendRequest::ResetDevice);
    assert!(session.ring(0).is_none());
}

#[test]
fn inband_ring_lives_as_soon_as_it_is_enabled() {
    let mut session = session(1, true);
    ready(&mut session, F_PROTOCOL_FEATURES | VERSION_1);
    session.does(FrontendRequest::SetProtocolFeatures(
        PROTOCOL_F_REPLY_ACK | PROTOCOL_F_INBAND_NOTIFICATIONS,
    ));
    session.does(FrontendRequest::SetVringEnable(state(0, 1)));
    assert!(session.ring(0).is_some());
    let kicked = session.ask(FrontendRequest::VringKick(state(0, 0)), Vec::new()).unwrap();
    assert_eq!(kicked, Answer::WhenServed(message::reply(35, &[0; 8])));
}

#[test]
fn queues_are_pairs_or_rings() {
    for (counts_rings, queues) in [(false, 2_u64), (true, 5)] {
        let settings = DeviceSettings { counts_rings, ..settings(2, false) };
        let mut session = Session::new(&settings.session(), Watching::new(1, 2).unwrap());
        let answer = session.ask(FrontendRequest::GetQueueNum, Vec::new()).unwrap();
        assert_eq!(answer, Answer::Now(message::reply(17, &queues.to_ne_bytes())));
    }
}

#[test]
fn config_is_given_as_asked() {
    let mut session = session(1, false);
    let asked = Config { offset: 6, flags: 0, bytes: vec![0; 6] };
    let answer = session.ask(FrontendRequest::GetConfig(asked.clone()), Vec::new()).unwrap();
    let there = Config { bytes: vec![1, 0, 1, 0, 0xDC, 5], ..asked };
    assert_eq!(answer, Answer::Now(message::reply(24, &there.encode())));
    let beyond = Config { offset: u32::MAX, flags: 0, bytes: vec![0; 256] };
    let answer = session.ask(FrontendRequest::GetConfig(beyond.clone()), Vec::new()).unwrap();
    assert_eq!(answer, Answer::Now(message::reply(24, &beyond.encode())));
}

#[test]
fn offences_differ_from_errors() {
    let refused = |request, fds| session(1, false).ask(request, fds).unwrap_err().to_string();
    for (request, fds, reason) in [
        (FrontendRequest::SetFeatures(1 << 5 | 1), vec![], "features 0x1"),
        (
            FrontendRequest::SetProtocolFeatures(PROTOCOL_F_INBAND_NOTIFICATIONS),
            vec![],
            "not offered",
        ),
        (FrontendRequest::SetVringNum(state(3, 8)), vec![], "SetVringNum (8) is about ring 3"),
        (FrontendRequest::GetVringBase(state(u32::MAX, 8)), vec![], "there are 3"),
        (FrontendRequest::SetVringBase(state(0, 65_536)), vec![], "begins at 65536"),
        (FrontendRequest::SetVringKick(fd(0)), vec![], "0 file descriptors"),
        (FrontendRequest::SetVringCall(fd(0)), vec![event(), event()], "2 file descriptors"),
        (FrontendRequest::SetVringCall(fd(0)), vec![file(0)], "neither an eventfd"),
        (FrontendRequest::SetVringKick(fd(0)), vec![file(0)], "kick descriptor of ring 0"),
        (FrontendRequest::SetOwner, vec![event()], "1 file descriptors"),
        (FrontendRequest::SetBackendReqFd, vec![], "0 file descriptors"),
        (FrontendRequest::SetMemTable(vec![REGION]), vec![], "came with 0"),
        (FrontendRequest::Unknown(99), vec![], "request 99"),
    ] {
        let said = refused(request, fds);
        assert!(said.contains(reason), "{said}");
    }
    let mut legacy = session(1, false);
    legacy.does(FrontendRequest::SetVringEnable(state(0, 1)));
    ready(&mut legacy, F_PROTOCOL_FEATURES);
    let refused = legacy.ask(FrontendRequest::SetVringKick(fd(0)), vec![event()]).unwrap_err();
    assert!(matches!(refused, ProtocolViolation::Legacy));
}

#[test]
fn unknown_request_that_wants_an_acknowledgement_gets_a_refusal() {
    let mut session = session(1, false);
    session.does(FrontendRequest::SetProtocolFeatures(PROTOCOL_F_REPLY_ACK));
    let answer = session.ask(FrontendRequest::Unknown(99), Vec::new()).unwrap();
    assert_eq!(answer, Answer::Now(message::reply(99, &1_u64.to_ne_bytes())));
}
