//! The verdict in words.

use crate::direction::Judged;
use crate::verdict::{
    Family, Finding, Lengths, NoHold, OtherDelay, Place, Unclear, UnclearReason, Verdict,
};

/// A sentence for each thing found, in the order of its weight.
pub(crate) fn reasons(verdict: &Verdict, judged: &[(Place, Judged)]) -> Vec<String> {
    let mut said: Vec<String> = verdict.findings.iter().map(hold).collect();
    said.extend(verdict.excluded.iter().map(|it| no_hold(*it, judged)));
    said.extend(verdict.unclear.iter().map(|unclear| cannot_tell(unclear, verdict.answered)));
    if verdict.tried != Lengths::Both {
        said.push(one_length(verdict.tried).to_owned());
    }
    said.extend(verdict.other_delays.iter().map(|it| other_delay(it, &verdict.findings)));
    if let Some(bend) = verdict.offset_bend.filter(|bend| bend.abs() > 0.5) {
        let (who, way) = if bend > 0.0 { ("their", "ahead") } else { ("my", "behind") };
        said.push(format!(
            "a clock that asks this host believes it to be {way} by {:.1} us more than it is: half of what a lone \
             packet waits at {who} receiving beyond the other side's; without the hold on {who} side that is gone",
            bend.abs()
        ));
    }
    said
}

fn no_hold(no_hold: NoHold, judged: &[(Place, Judged)]) -> String {
    let NoHold { place, lengths, above } = no_hold;
    let judged = judged.iter().map(|(_, judged)| judged).find(|it| it.excluded() == Some(above));
    let noise = judged.map_or(0.0, |judged| judged.noise);
    format!(
        "no hold above {above:.0} us {}{}: packets that came closer together than that kept their distance; {noise:.1} us \
         of noise",
        receiving(place),
        of(lengths)
    )
}

fn cannot_tell(unclear: &Unclear, (answered, asked): (usize, usize)) -> String {
    let below = match unclear.below {
        Some(below) => format!(", of less than {below:.0} us; longer ones are excluded"),
        None => ", however long".to_owned(),
    };
    let why = unclear.why.iter().map(|why| match why {
        UnclearReason::Lost => format!(
            "only {answered} of {asked} probes were answered: a far side that does not limit its answers, as `earmark echo` \
             does not, tells"
        ),
        UnclearReason::Spacing { usecs } => format!(
            "most probes were at least {usecs:.0} us apart, and shorter holds leave such packets as far apart as they came: \
             a higher --rate, or none, tells"
        ),
        UnclearReason::Few { sent } => {
            format!("{sent} probes are few: a higher --count, or none, tells")
        }
        UnclearReason::Answers { usecs } => format!(
            "the far host's answers left at least {usecs:.0} us apart: `earmark echo` there tells, which spaces them"
        ),
        UnclearReason::Noise => "delays that follow from nothing that was sent are longer than that: the same on machines that \
                       are idle tells"
            .to_owned(),
        UnclearReason::RoundTrips => "round trips show the longer hold of the two sides: `earmark echo` there with --kind udp, \
                            or --kind ntp, tells the sides apart"
            .to_owned(),
    });
    let (at, why) = (unclear_at(unclear), why.collect::<Vec<_>>().join("; "));
    let of = of(unclear.lengths);
    format!("cannot tell whether there is a hold {at}{of}{below}; {why}")
}

const fn of(lengths: Lengths) -> &'static str {
    match lengths {
        Lengths::Short => ", short packets",
        Lengths::Full => ", full segments",
        Lengths::Both => ", short packets and full segments alike",
    }
}

/// What does not show where one length alone was sent.
const fn one_length(tried: Lengths) -> &'static str {
    match tried {
        Lengths::Short | Lengths::Both => {
            "only short packets were sent: whether full segments are held otherwise, --kind udp, icmp or tcp tells"
        }
        Lengths::Full => {
            "only full segments were sent: whether short packets are held otherwise does not show"
        }
    }
}

fn unclear_at(unclear: &Unclear) -> &'static str {
    match (unclear.place, unclear.why.contains(&UnclearReason::RoundTrips)) {
        (Place::Unknown, true) => "on the other side, too",
        (place, _) => receiving(place),
    }
}

fn hold(finding: &Finding) -> String {
    let Finding {
        place,
        family,
        usecs,
        frames,
        bound,
        polls,
        lone_usecs,
        lengths,
        alike,
        or_program,
        ..
    } = finding;
    let size = format!("{:.1} us ({:.1} to {:.1})", usecs.value, usecs.low, usecs.high);
    let what = match family {
        Family::None => "no hold".to_owned(),
        Family::Delay => format!("a delay of {size}: a lone packet waits all of it"),
        Family::Throttle => format!(
            "a throttle of {size}: a lone packet waits for nothing, and the next one until this has passed"
        ),
        Family::Periodic => {
            format!("a tick every {size}: a packet waits {lone_usecs:.0} us on average")
        }
        Family::Quiet => format!(
            "a delay of {size} that begins anew with each packet{}: a lone packet waits all of it",
            bound.map_or_else(String::new, |bound| {
                format!(", up to {bound:.1} us after the first")
            })
        ),
        Family::Deferral => format!(
            "interrupts that a kernel defers (gro_flush_timeout, napi_defer_hard_irqs {}): a lone packet waits for \
             nothing, and the next one for a poll each {size}",
            polls.unwrap_or_default()
        ),
        Family::Adaptive => format!(
            "an adaptive delay: up to {size} when much comes, {lone_usecs:.0} us for a lone packet"
        ),
    };
    let alike = if alike.is_empty() {
        String::new()
    } else {
        let names = alike.iter().map(|family| family.name()).collect::<Vec<_>>().join(" or ");
        format!(
            "; a hold of family {names} is not excluded: probes without packets of others beside them tell"
        )
    };
    let frames = frames.map(|frames| format!("; {frames} packets end it early"));
    let program = if *or_program {
        "; a far program that gathers requests and answers them together looks the same in round trips: --kind icmp, \
         which its kernel answers, or `earmark echo` there tells"
    } else {
        ""
    };
    let whose = if *place == Place::Unknown {
        "; round trips do not say whose: --vary DEV tells, which lets this host's DEV hold nothing for some seconds, or \
         --kind ntp, or `earmark echo` there"
    } else {
        ""
    };
    format!(
        "{what}{}, {}{}{alike}{program}{whose}",
        frames.unwrap_or_default(),
        receiving(*place),
        of(*lengths)
    )
}

fn other_delay(delay: &OtherDelay, findings: &[Finding]) -> String {
    let throttled = |place: &Place| {
        findings.iter().any(|it| it.place == *place && it.family == Family::Throttle)
    };
    match delay {
        // Behind a throttle, a second timer of the NIC delays those alone that do not wait anyway.
        OtherDelay::Waking { place, after, takes } if throttled(place) => format!(
            "beside it, {takes:.1} us {} after more than about {after:.0} us of silence, and only then: an idle state, a \
             delay of the same NIC (RDTR on some of Intel's), or more polls of a kernel that defers interrupts, which \
             look alike; `earmark show` there names what is known",
            receiving(*place)
        ),
        OtherDelay::Waking { place, after, takes } => format!(
            "not a hold: {takes:.1} us {} after more than about {after:.0} us of silence, and only then, as an idle state \
             takes",
            receiving(*place)
        ),
        OtherDelay::Stray { place, share, usecs } => format!(
            "beside that, {:.0} % of packets are late {}, most of them by up to {usecs:.0} us, by no rule that follows \
             from what was sent; what makes them late does not show",
            share * 100.0,
            receiving(*place)
        ),
        OtherDelay::Server { median, p99 } => format!(
            "not a hold: the far program takes {median:.1} us to answer, and {p99:.1} us at the 99th percentile"
        ),
        OtherDelay::First { usecs } => format!(
            "not a hold: the very first packet took {usecs:.0} us more than the others: address resolution"
        ),
    }
}

fn receiving(place: Place) -> &'static str {
    match place {
        Place::Theirs => "at the far host's receiving",
        Place::Mine => "at my receiving",
        Place::Nowhere | Place::Unknown => "on the way round",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Interval;

    #[test]
    fn an_idle_state_beside_a_throttle_may_be_a_second_timer() {
        let waking = OtherDelay::Waking { place: Place::Mine, after: 38.0, takes: 32.5 };
        assert!(other_delay(&waking, &[]).ends_with("and only then, as an idle state takes"));
        let usecs = Interval { value: 49.9, low: 49.5, high: 50.3 };
        let finding = Finding {
            place: Place::Mine,
            lengths: Lengths::Short,
            family: Family::Throttle,
            usecs,
            lone_usecs: 0.0,
            frames: None,
            bound: None,
            polls: None,
            confidence: 1.0,
            alike: Vec::new(),
            or_program: false,
        };
        let said = other_delay(&waking, core::slice::from_ref(&finding));
        assert!(said.contains("look alike"), "{said}");
        let theirs = [Finding { place: Place::Theirs, ..finding }];
        assert!(other_delay(&waking, &theirs).starts_with("not a hold"));
    }
}
