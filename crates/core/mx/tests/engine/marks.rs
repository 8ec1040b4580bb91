//! Which frames are marked: exactly those that a host waits for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::support::{self, EnginePair, frame_type, pattern, secs};
use mx::config::{Config, Marks};
use mx::matching::Match;
use mx::wire::{self, Body, FLAG_MARK};

type Log = Rc<RefCell<Vec<(usize, Vec<u8>)>>>;

/// Messages of each class there and back, on a wire that loses the frames that `loses` names by
/// their number, and all frames that went out.
fn talk(config: Config, loses: fn(&[u8], usize) -> bool) -> Log {
    let log = Log::default();
    let mut pair = EnginePair::new(config);
    let kept = log.clone();
    let mut counts = BTreeMap::new();
    pair.tap = Box::new(move |from, frame| {
        kept.borrow_mut().push((from, frame.clone()));
        let count = counts.entry(frame_type(frame).name()).or_insert(0);
        *count += 1;
        !loses(frame, *count)
    });
    let id = pair.ends[0].connect(pair.now, support::address(1), 0, secs(1)).unwrap();
    pair.run(secs(0));
    let back = pair.ends[1].peers().next().unwrap();
    for (end, id) in [(0, id), (1, back)] {
        for size in [0, 128, 129, 20_000, 32_768, 32_769, 234_880, 300_001] {
            pair.ends[end].isend(pair.now, id, 1, pattern(size), 0).unwrap();
            pair.ends[1 - end].irecv(pair.now, None, Match::exact(1), vec![0; size], 0).unwrap();
            pair.run(secs(1));
        }
    }
    for end in 0..2 {
        pair.ends[end].close(pair.now);
        pair.run(secs(1));
    }
    assert!(pair.ends.iter().all(|end| end.open_requests() == (vec![], vec![])));
    log
}

/// Frames of each type, and how many are marked.
fn count(log: &Log) -> BTreeMap<&'static str, (usize, usize)> {
    let mut counts = BTreeMap::new();
    for (_, frame) in log.borrow().iter() {
        let entry: &mut (usize, usize) = counts.entry(frame_type(frame).name()).or_default();
        entry.0 += 1;
        entry.1 += usize::from(frame[1] & FLAG_MARK != 0);
    }
    counts
}

#[test]
fn frames_that_complete_something_are_marked() {
    let log = talk(Config::default(), |_, _| false);
    for (_, frame) in log.borrow().iter() {
        let (header, body) = wire::parse(frame).unwrap();
        let expected = match body {
            Body::Small(..) | Body::Rendezvous { .. } | Body::Notify(_) => true,
            Body::Medium { total, offset, data, .. } => offset + data.len() as u32 == total,
            Body::Pull(_) | Body::Reply { .. } => continue,
            _ => false,
        };
        assert_eq!(header.marked, expected, "{body:?}");
    }
    let counts = count(&log);
    // The message of the paper's Table II: 160 frames for 5 requests, and the two around it.
    assert_eq!(counts["pull"].0, 2 * (1 + 5 + 7));
    assert_eq!(counts["medium"].1, 2 * 3);
}

/// Of several requests in a row the last is marked, and of their answers those that let the
/// receiver go on: when half of the requests have been answered, and at the end.
#[test]
fn requests_and_answers_share_marks() {
    let log = talk(Config::default(), |_, _| false);
    let (mut asking, mut last) = (0, 0);
    for (_, frame) in log.borrow().iter() {
        let (header, body) = wire::parse(frame).unwrap();
        match body {
            Body::Pull(_) => asking += usize::from(header.ask),
            Body::Reply { .. } => {
                last += usize::from(header.ask);
                assert!(header.ask || !header.marked, "the last of a request bears the mark");
            }
            _ => {}
        }
    }
    let counts = count(&log);
    assert_eq!(last, counts["pull"].0, "one answer to each request is the last");
    assert_eq!(counts["reply"].1, asking, "those are marked that were asked to be");
    // One block: the only one. Five: the second lets the fifth be asked for. Seven: the second and
    // the fourth.
    assert_eq!(asking, 2 * (1 + 2 + 3));
    assert!(counts["pull"].1 < counts["pull"].0, "several go out at once");
}

#[test]
fn half_way_frames_are_marked_besides() {
    let marks = Marks::ALL.with(Marks::HALFWAY);
    let log = talk(Config { marks, ..Config::default() }, |_, _| false);
    let usual = count(&talk(Config::default(), |_, _| false));
    let (mut at, mut seen) = (0, Vec::new());
    for (_, frame) in log.borrow().iter() {
        let (header, body) = wire::parse(frame).unwrap();
        let Body::Reply { .. } = body else { continue };
        at += 1;
        if header.marked && !header.ask {
            seen.push(at);
        }
        if header.ask {
            // Blocks of 32 and those at the end: of 23 frames, and 13.
            let half = if header.marked && at >= 8 { vec![(at + 1) / 2] } else { vec![] };
            assert_eq!(seen, half, "of {at}");
            (at, seen) = (0, Vec::new());
        }
    }
    let counts = count(&log);
    for (name, frames) in usual {
        // Both ways: 20,000 bytes and 32,768 have 14 frames and 23. Of six blocks that are waited
        // for, all are long.
        let more = match name {
            "medium" => 2 * 2,
            "reply" => 2 * 6,
            _ => 0,
        };
        assert_eq!(counts[name], (frames.0, frames.1 + more), "{name}");
    }
}

/// Table III of the paper: the mark of an eager message is moved to a frame before the last.
#[test]
fn marks_of_eager_messages_can_come_early() {
    for early in [1, 3, 22, 500_u16] {
        let log = talk(Config { mark_early: early, ..Config::default() }, |_, _| false);
        let (mut marked, mut frames, mut after) = (0, 0, None);
        for (_, frame) in log.borrow().iter() {
            let (header, body) = wire::parse(frame).unwrap();
            let Body::Medium { total, offset, data, .. } = body else {
                assert!(header.marked || !matches!(body, Body::Small(..)), "{body:?}");
                continue;
            };
            frames = if offset == 0 { 1 } else { frames + 1 };
            after = after.map(|after| after + 1);
            if header.marked {
                (marked, after) = (marked + 1, Some(0));
                assert!(offset == 0 || offset + (data.len() as u32) < total);
            }
            if offset + data.len() as u32 == total {
                assert_eq!(after, Some(early.min(frames - 1)), "of {frames}");
            }
        }
        assert_eq!(marked, 2 * 3, "one for each message");
    }
}

#[test]
fn taking_marks_away_changes_nothing_else() {
    let unmarked = |log: &Log| -> Vec<_> {
        let log = log.borrow();
        let without = |frame: &Vec<u8>| [&[frame[0], frame[1] & !FLAG_MARK], &frame[2..]].concat();
        log.iter().map(|(from, frame)| (*from, without(frame))).collect()
    };
    let every_ninth = |_: &[u8], nth| nth % 9 == 0;
    let all = talk(Config::default(), every_ninth);
    let types = ["small", "medium", "rendezvous", "pull", "reply", "notify"];
    for ((_, mark), name) in Marks::NAMES.into_iter().zip(types) {
        let marks = Marks::ALL.without(mark);
        let log = talk(Config { marks, ..Config::default() }, every_ninth);
        // The frames that connect say what the settings are, and marks are not among them.
        assert!(unmarked(&log) == unmarked(&all), "{name}");
        let (expected, got) = (count(&all), count(&log));
        for (other, counts) in expected {
            let marked = if other == name { 0 } else { counts.1 };
            assert_eq!(got[other], (counts.0, marked), "without {name}: {other}");
        }
    }
    let none = talk(Config { marks: Marks::NONE, ..Config::default() }, every_ninth);
    assert!(count(&none).values().all(|(_, marked)| *marked == 0));
}
