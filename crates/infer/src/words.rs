//! The verdict in words.

use crate::direction::Judged;
use crate::verdict::{Acquittal, Family, Finding, Place, Verdict};

/// A sentence for each thing found, in the order of its weight.
pub(crate) fn reasons(verdict: &Verdict, judged: &[(Place, Judged)]) -> Vec<String> {
    let mut said: Vec<String> = verdict.findings.iter().map(hold).collect();
    if judged.is_empty() {
        let (answered, asked) = verdict.answered;
        said.push(format!(
            "too few answers to tell ({answered} of {asked}); try another --kind, or a lower --rate"
        ));
    }
    for (place, judged) in judged.iter().filter(|(_, judged)| judged.family == Family::None) {
        said.push(format!(
            "no hold {}: {} packets that found nothing unreported were told of at once, within {:.1} us of noise",
            receiving(*place),
            judged.starters,
            judged.noise
        ));
    }
    said.extend(verdict.acquittals.iter().map(acquittal));
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

fn hold(finding: &Finding) -> String {
    let Finding { place, family, usecs, frames, lone_usecs, .. } = finding;
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
        Family::Adaptive => format!(
            "an adaptive delay: up to {size} when much comes, {lone_usecs:.0} us for a lone packet"
        ),
    };
    let frames = frames.map(|frames| format!("; {frames} frames end it early (rx-frames)"));
    let remedy = match place {
        Place::Unknown => {
            "; round trips do not say whose: --vary DEV tells, which lets this host's DEV hold nothing for some seconds, \
             or --kind ntp, or `earmark echo` there"
                .to_owned()
        }
        place => {
            let host = if *place == Place::Mine { "here" } else { "on the far host" };
            let adaptive = if *family == Family::Adaptive { "adaptive-rx off " } else { "" };
            format!("; `ethtool -C DEV {adaptive}rx-usecs N` {host} changes it")
        }
    };
    format!("{what}{}, {}{remedy}", frames.unwrap_or_default(), receiving(*place))
}

fn acquittal(acquittal: &Acquittal) -> String {
    match acquittal {
        Acquittal::Waking { place, after, takes } => format!(
            "not a hold: {takes:.1} us {} after more than about {after:.0} us of silence, and only then: an idle state",
            receiving(*place)
        ),
        Acquittal::Stray { place, share, usecs } => format!(
            "not a hold: {:.0} % of packets are late {} by up to {usecs:.0} us and more, whenever they come: the \
             scheduler, a busy core, or other traffic in front",
            share * 100.0,
            receiving(*place)
        ),
        Acquittal::Server { median, p99 } => format!(
            "not a hold: the far program takes {median:.1} us to answer, and {p99:.1} us at the 99th percentile"
        ),
        Acquittal::First { usecs } => format!(
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
