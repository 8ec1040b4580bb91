//! A few hundred microseconds of a port's life, chosen so that they show something.

use base::time::Instant;
use hostside::trace::PortEvent;

use report::{HeldPacket, Interrupt, Lane, Timeline};

/// How much is shown before the marked packet that it is about, and after.
const BEFORE_US: f64 = 150.0;
const AFTER_US: f64 = 350.0;

/// A request or an answer is no longer than this, in bytes; the end of a bulk write is marked, too,
/// but longer.
const SHORT: u32 = 128;

/// Draws the moment around a marked request that met the bulk flow; without one, that around the
/// last packet.
pub(super) fn of(setting: &str, events: &[Vec<PortEvent>]) -> Timeline {
    let request = request(&events[1]);
    let centre = request.map(|(arrived, _)| arrived).or_else(|| last(&events[1]));
    let centre = centre.unwrap_or_default();
    let from_us = micros(centre) - BEFORE_US;
    let to_us = micros(centre) + AFTER_US;
    let lane = |(port, events): (&str, &Vec<PortEvent>)| lane(port, events, from_us, to_us);
    Timeline {
        setting: setting.to_owned(),
        note: note(setting, request),
        from_us: 0.0,
        to_us: to_us - from_us,
        lanes: [
            ("b0 (requests and bulk)", &events[1]),
            ("a0 (answers and acknowledgements)", &events[0]),
        ]
        .into_iter()
        .map(lane)
        .collect(),
    }
}

/// What the strategy does in general, and what it did with the request in the picture.
fn note(setting: &str, request: Option<(Instant, Instant)>) -> String {
    let rule = match setting {
        "disabled" => "Every packet interrupts, unless the host is already polling.",
        "delay:75" => "A packet waits with the rest, until 75 us after the first of them.",
        _ => "A marked packet ends the wait of all that came before it.",
    };
    let seen = match request {
        Some((arrived, delivered)) => {
            let waited = micros(delivered) - micros(arrived);
            format!("The request in the middle was taken {waited:.0} us after it had arrived.")
        }
        None => "No marked request is in it.".to_owned(),
    };
    format!("{rule} {seen}")
}

/// When the marked short packet with the most company within the picture arrived, and when it was
/// taken.
fn request(events: &[PortEvent]) -> Option<(Instant, Instant)> {
    let short = events.iter().filter_map(|event| match event {
        PortEvent::Packet { completed_at, delivered_at, marked: true, length }
            if *length <= SHORT =>
        {
            Some((*completed_at, *delivered_at))
        }
        _ => None,
    });
    let company = |(centre, _): &(Instant, Instant)| {
        let (from, to) = (micros(*centre) - BEFORE_US, micros(*centre) + AFTER_US);
        events.iter().filter_map(completed).filter(|at| (from..to).contains(&micros(*at))).count()
    };
    short.max_by_key(company)
}

/// When the last packet arrived: without rules there are no marks, and any packet will do.
fn last(events: &[PortEvent]) -> Option<Instant> {
    events.iter().rev().find_map(completed)
}

fn completed(event: &PortEvent) -> Option<Instant> {
    match event {
        PortEvent::Packet { completed_at, .. } => Some(*completed_at),
        PortEvent::Interrupt { .. } => None,
    }
}

fn lane(port: &str, events: &[PortEvent], from_us: f64, to_us: f64) -> Lane {
    let mut lane = Lane { port: port.to_owned(), ..Lane::default() };
    for event in events {
        match *event {
            PortEvent::Interrupt { at, reason } => {
                let at_us = micros(at);
                if (from_us..to_us).contains(&at_us) {
                    let reason = reason.to_string();
                    lane.interrupts.push(Interrupt { at_us: at_us - from_us, reason });
                }
            }
            PortEvent::Packet { completed_at, delivered_at, marked, length } => {
                let (arrived_us, delivered_us) = (micros(completed_at), micros(delivered_at));
                if delivered_us >= from_us && arrived_us < to_us {
                    lane.packets.push(HeldPacket {
                        arrived_us: arrived_us - from_us,
                        delivered_us: delivered_us - from_us,
                        marked,
                        length_bytes: length,
                    });
                }
            }
        }
    }
    lane
}

fn micros(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use nic::moderation::Reason;

    fn packet(at: u64, marked: bool, length: u32) -> PortEvent {
        let completed_at = Instant::from_micros(at);
        PortEvent::Packet {
            completed_at,
            delivered_at: Instant::from_micros(at + 5),
            marked,
            length,
        }
    }

    #[test]
    fn the_picture_is_about_the_marked_packet_with_the_most_company() {
        let mut events = vec![packet(1_000, true, 67)];
        events.extend((0..20).map(|n| packet(5_000 + n, false, 1_514)));
        events.push(packet(5_021, true, 67));
        events.push(PortEvent::Interrupt { at: Instant::from_micros(5_021), reason: Reason::Mark });
        let timeline = of("marked:75", &[Vec::new(), events]);
        assert_eq!(timeline.lanes[0].packets.len(), 21);
        assert_eq!(timeline.lanes[0].interrupts[0].at_us, BEFORE_US);
        assert_eq!(timeline.to_us, BEFORE_US + AFTER_US);
        assert!(timeline.note.ends_with("taken 5 us after it had arrived."), "{}", timeline.note);
    }

    #[test]
    fn no_events_make_an_empty_picture() {
        let timeline = of("disabled", &[Vec::new(), Vec::new()]);
        assert!(timeline.lanes[0].packets.is_empty() && timeline.note.contains("No marked"));
    }
}
