//! The conversation with a device that follows a script: what is asked, in which order, and what
//! becomes of answers that are wrong, late or missing.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use super::{DriverError, DriverSettings, VirtioDriver};
use crate::transport::message::{
    Config, F_PROTOCOL_FEATURES, FrontendRequest, HEADER, Header, PROTOCOL_F_CONFIG,
    PROTOCOL_F_REPLY_ACK, VringState, reply,
};

/// VERSION_1, MAC, MTU: a device with a pair of queues, and nothing else.
const FEATURES: u64 = F_PROTOCOL_FEATURES | 1 << 32 | 1 << 5 | 1 << 3;

/// What the device does with a request: its answer, or `None` to hang up.
type Script = fn(&FrontendRequest) -> Option<Vec<u8>>;

/// Answers as it should.
fn honest(request: &FrontendRequest) -> Vec<u8> {
    let number = request.number();
    match request {
        FrontendRequest::GetFeatures => reply(number, &FEATURES.to_ne_bytes()),
        FrontendRequest::GetProtocolFeatures => {
            reply(number, &(PROTOCOL_F_CONFIG | PROTOCOL_F_REPLY_ACK).to_ne_bytes())
        }
        FrontendRequest::GetConfig(asked) => {
            let mut bytes = vec![2, 0, 0, 0, 0, 10, 1, 0, 1, 0, 0xDC, 0x05];
            bytes.resize(asked.bytes.len(), 0);
            reply(number, &Config { offset: 0, flags: 0, bytes }.encode())
        }
        FrontendRequest::GetVringBase(state) => reply(number, &state.encode()),
        // Before acknowledgements are agreed on.
        FrontendRequest::SetOwner | FrontendRequest::SetProtocolFeatures(_) => Vec::new(),
        _ => reply(number, &0_u64.to_ne_bytes()),
    }
}

/// A device that answers as `script` says: what it was asked.
fn play(script: Script) -> (UnixStream, JoinHandle<Vec<FrontendRequest>>) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let thread = std::thread::spawn(move || {
        let mut asked = Vec::new();
        let mut header = [0; HEADER];
        // Descriptors that come with a message are closed by the kernel, since they are not taken.
        while theirs.read_exact(&mut header).is_ok() {
            let header = Header::parse(&header).unwrap();
            let mut payload = vec![0; header.size as usize];
            theirs.read_exact(&mut payload).unwrap();
            let request = FrontendRequest::parse(&header, &payload).unwrap();
            let answer = script(&request);
            asked.push(request);
            if answer.is_none_or(|answer| theirs.write_all(&answer).is_err()) {
                break;
            }
        }
        asked
    });
    (ours, thread)
}

fn attach(script: Script) -> Result<VirtioDriver, DriverError> {
    VirtioDriver::attach(play(script).0, DriverSettings::default())
}

#[test]
fn everything_is_said_in_order() {
    let (stream, device) = play(|request| Some(honest(request)));
    let driver = VirtioDriver::attach(stream, DriverSettings::default()).unwrap();
    assert_eq!((driver.mac(), driver.mtu()), ([2, 0, 0, 0, 0, 10], 1500));
    driver.check().unwrap();
    driver.disconnect().unwrap();
    let numbers: Vec<_> = device.join().unwrap().iter().map(FrontendRequest::number).collect();
    let ring = [8, 10, 9, 13, 12, 18];
    let stop = [11, 11];
    assert_eq!(numbers, [&[3, 1, 15, 16, 24, 2, 5][..], &ring, &ring, &stop].concat());
}

#[test]
fn refusal_is_named() {
    let refused = attach(|request| match request {
        FrontendRequest::SetVringAddr(_) => Some(reply(9, &1_u64.to_ne_bytes())),
        _ => Some(honest(request)),
    });
    assert!(matches!(refused, Err(DriverError::Refused("start a ring", 1))));
}

#[test]
fn silence_is_not_waited_for_for_ever() {
    let silent = attach(|request| match request {
        FrontendRequest::GetConfig(_) => Some(Vec::new()),
        _ => Some(honest(request)),
    });
    assert!(matches!(silent, Err(DriverError::Silent { .. })), "{silent:?}");
}

#[test]
fn half_an_answer_is_none() {
    let gone = attach(|request| match request {
        FrontendRequest::GetFeatures => Some(reply(1, &[0; 8])[..15].to_vec()),
        FrontendRequest::GetProtocolFeatures => None,
        _ => Some(honest(request)),
    });
    assert!(matches!(gone, Err(DriverError::Silent { .. })), "{gone:?}");
    let gone = attach(|request| match request {
        FrontendRequest::SetMemTable(_) => None,
        _ => Some(honest(request)),
    });
    assert!(matches!(gone, Err(DriverError::Gone { .. })), "{gone:?}");
}

#[test]
fn nonsense_is_refused() {
    let scripts: [Script; 7] = [
        // Not a reply, to another request, of another version, too long, too short.
        |_| Some(FrontendRequest::SetFeatures(0).encode(false)),
        |_| Some(reply(2, &[0; 8])),
        |_| Some(vec![0; 20]),
        |_| Some([&reply(1, &[])[..8], &u32::MAX.to_ne_bytes()[..]].concat()),
        |request| match request {
            FrontendRequest::GetFeatures => Some(reply(1, &[0; 7])),
            _ => Some(honest(request)),
        },
        |request| match request {
            FrontendRequest::GetConfig(_) => {
                let short = Config { offset: 0, flags: 0, bytes: vec![0; 6] };
                Some(reply(24, &short.encode()))
            }
            _ => Some(honest(request)),
        },
        |request| match request {
            FrontendRequest::GetConfig(_) => Some(reply(24, &[0; 4])),
            _ => Some(honest(request)),
        },
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        let refused = attach(script);
        assert!(matches!(refused, Err(DriverError::Answer { .. })), "{number}: {refused:?}");
    }
}

#[test]
fn wrong_ring_is_noticed_when_it_stops() {
    let driver = attach(|request| match request {
        FrontendRequest::GetVringBase(_) => {
            Some(reply(11, &VringState { index: 9, number: 0 }.encode()))
        }
        _ => Some(honest(request)),
    });
    assert!(matches!(driver.unwrap().disconnect(), Err(DriverError::Answer { .. })));
}

#[test]
fn old_devices_are_named() {
    let lacking = attach(|request| match request {
        FrontendRequest::GetFeatures => Some(reply(1, &(1_u64 << 32).to_ne_bytes())),
        _ => Some(honest(request)),
    });
    assert!(matches!(lacking, Err(DriverError::Lacks(_))), "{lacking:?}");
}

#[test]
fn who_waits_learns_that_the_device_is_gone() {
    let mut driver = attach(|request| match request {
        FrontendRequest::SetVringEnable(state) if state.index == 1 => {
            Some(reply(18, &0_u64.to_ne_bytes()))
        }
        FrontendRequest::GetVringBase(_) => None,
        _ => Some(honest(request)),
    })
    .unwrap();
    assert!(!driver.wait(Duration::ZERO).unwrap());
    assert!(driver.frontend.stop(0).is_err());
    let gone = driver.wait(Duration::from_secs(10));
    assert!(matches!(gone, Err(DriverError::Gone { .. })), "{gone:?}");
    assert!(matches!(driver.check(), Err(DriverError::Gone { .. })));
    // Rings are memory: they go on, into the void.
    assert!(driver.send(&[0; 60]).unwrap());
    driver.flush();
}

#[test]
fn callers_mistakes_are_named() {
    let mut driver = attach(|request| Some(honest(request))).unwrap();
    let wrong = driver.send(&[0; 13]);
    assert!(matches!(wrong, Err(DriverError::Frame(13, 1518))));
    assert!(matches!(driver.send(&[0; 1519]), Err(DriverError::Frame { .. })));
    let missing = VirtioDriver::connect("/nonexistent".as_ref(), DriverSettings::default());
    assert!(matches!(missing, Err(DriverError::Connect { .. })));
}
