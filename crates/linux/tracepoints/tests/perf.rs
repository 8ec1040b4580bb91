//! Tracepoints of this very kernel. Without the right to trace, the error says what to do; then
//! that is what is tested.
#![allow(non_snake_case, reason = "test names are subject__condition__result")]

use tracepoints::record::Record;
use tracepoints::tracefs::Tracefs;
use tracepoints::{EventRequest, PerfError, Session, Unit};

/// A session; `None`, after a check of the refusal, for a process that may not have one.
fn session(requests: &[EventRequest], switches: Option<u32>) -> Option<Session> {
    let opened = Tracefs::open().and_then(|tracefs| Session::open(&tracefs, requests, switches));
    match opened {
        Ok((session, missing)) => {
            assert!(missing.is_empty(), "{missing:?}");
            Some(session)
        }
        Err(error) => {
            assert!(!rustix::process::geteuid().is_root(), "root may trace: {error}");
            assert!(error.to_string().contains("run as root"), "{error}");
            None
        }
    }
}

fn tid() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

fn system_calls(unit: Unit, filter: Option<String>) -> EventRequest {
    EventRequest { event: "raw_syscalls:sys_enter", filter, unit }
}

#[test]
fn system_calls__of_this_thread__are_seen_and_filtered() {
    let filter = Some(format!("id == {}", libc::SYS_getppid));
    let Some(mut session) = session(&[system_calls(Unit::Task(tid()), filter)], None) else {
        return;
    };
    let calls = |n: usize| (0..n).for_each(|_| assert!(rustix::process::getppid().is_some()));
    calls(3);
    session.enable().unwrap();
    calls(5);
    rustix::thread::sched_yield();
    session.disable().unwrap();
    calls(7);
    let (name, format) = session.formats().next().unwrap();
    assert_eq!(name, "raw_syscalls:sys_enter");
    let id = format.field("id").unwrap().clone();
    let mut seen = Vec::new();
    session.drain(|record| {
        if let Record::Sample { stamp, raw } = record {
            assert_eq!(stamp.tid, tid());
            seen.push((stamp.at, id.signed(raw)));
        }
    });
    assert_eq!(seen.len(), 5, "{seen:?}");
    assert!(seen.iter().all(|(_, id)| *id == Some(libc::SYS_getppid)));
    assert!(seen.is_sorted_by_key(|(at, _)| *at));
}

#[test]
fn times__are_those_of_clock_monotonic() {
    let filter = Some(format!("id == {}", libc::SYS_getppid));
    let Some(mut session) = session(&[system_calls(Unit::Task(tid()), filter)], None) else {
        return;
    };
    session.enable().unwrap();
    let before = sys::clock::now().as_nanos();
    let _ = rustix::process::getppid();
    let after = sys::clock::now().as_nanos();
    session.disable().unwrap();
    let mut times = Vec::new();
    session.drain(|record| times.extend(record.at()));
    assert_eq!(times.len(), 1);
    assert!(before <= times[0] && times[0] <= after, "{before} {times:?} {after}");
}

#[test]
fn thread_that_sleeps__is_seen_to_leave_and_to_come_back() {
    let Some(mut session) = session(&[], Some(tid())) else { return };
    session.enable().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2));
    session.disable().unwrap();
    let mut seen = Vec::new();
    session.drain(|record| {
        if let Record::Switch { stamp, left } = record {
            assert_eq!(stamp.tid, tid());
            seen.push((stamp.at, left));
        }
    });
    seen.sort_unstable();
    let left = seen.iter().position(|(_, left)| *left).expect("it slept");
    assert!(seen[left..].iter().any(|(_, left)| !left), "{seen:?}");
}

#[test]
fn tracepoint_that_is_not_there__is_missing_not_an_error() {
    let request = EventRequest { event: "net:no_such_thing", filter: None, unit: Unit::All };
    let Ok(tracefs) = Tracefs::open() else { return };
    let Ok((session, missing)) = Session::open(&tracefs, &[request], None) else { return };
    assert_eq!(session.formats().count(), 0);
    assert_eq!(missing[0].event, "net:no_such_thing");
    let request =
        EventRequest { filter: Some("no_such_field == 1".into()), ..system_calls(Unit::All, None) };
    let (_, missing) = Session::open(&tracefs, &[request], None).unwrap();
    assert!(missing[0].why.contains("no_such_field"), "{missing:?}");
}

#[test]
fn private_tracefs__says_the_same_as_the_mounted_one() {
    match Tracefs::private() {
        Ok(tracefs) => {
            assert!(tracefs.is_private());
            let format = tracefs.format("sched:sched_waking").unwrap().unwrap();
            assert_eq!(format.name, "sched_waking");
            let opened = Tracefs::open().unwrap().format("sched:sched_waking").unwrap();
            assert_eq!(opened, Some(format));
        }
        Err(PerfError::Tracefs(cause)) => {
            assert!(!rustix::process::geteuid().is_root(), "{cause}");
        }
        Err(error) => panic!("{error}"),
    }
}
