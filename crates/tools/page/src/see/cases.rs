//! What others have seen, as values of the controls, with the figures that these give.

use serde::Serialize;

use super::form::Values;

/// What was seen, and links that show it.
#[derive(Debug, Serialize)]
pub(crate) struct SeenCase {
    title: &'static str,
    says: &'static str,
    /// The name of the figure that it is about.
    figure: &'static str,
    links: Vec<CaseLink>,
}

/// Values of the controls under a name.
#[derive(Debug, Serialize)]
struct CaseLink {
    text: &'static str,
    /// The figure under them.
    shows: &'static str,
    values: Values,
}

/// The name of a link, its figure, and its controls: the experiment, and `NAME=VALUE`.
type LinkText = (&'static str, &'static str, &'static str);

/// A title, what was seen, the name of a figure, links.
type CaseText = (&'static str, &'static str, &'static str, &'static [LinkText]);

const CASES: [CaseText; 5] = [
    (
        "8000 round trips a second",
        "An old driver let a NIC interrupt once in 125 us, and a round trip took exactly that; on \
         some cables two of these periods.",
        "round trip, median",
        &[
            ("one period", "125.0 us", "tcp-rr machine=ideal strategy=throttle rx-usecs=125"),
            (
                "two periods",
                "250.0 us",
                "tcp-rr machine=ideal strategy=throttle rx-usecs=125 ports=a \
                 transmit-interrupts=true link-latency=65",
            ),
            (
                "the same cable, no interrupt for transmissions",
                "131.5 us",
                "tcp-rr machine=ideal strategy=throttle rx-usecs=125 ports=a link-latency=65",
            ),
        ],
    ),
    (
        "251 us for 182",
        "Memcached answered in 251 us on average behind a NIC whose tick of 128 us runs freely, and \
         in 182 with one of 8 us; the least was 90 us with both, as here. The mean moves by half of \
         the tick. The memcached of this model answers at once, so each mean is some 90 us less \
         than that of the real one.",
        "mean",
        &[
            (
                "a tick of 128 us",
                "154.9 us",
                "memcached machine=bge strategy=periodic rx-usecs=128 ports=b value-bytes=1000",
            ),
            (
                "a tick of 8 us",
                "93.7 us",
                "memcached machine=bge strategy=periodic rx-usecs=8 ports=b value-bytes=1000",
            ),
        ],
    ),
    (
        "The clock that was off by half the hold",
        "NTP takes both ways to be as long as each other. A NIC that holds the request makes one \
         longer, and the clock wrong by half of the hold.",
        "error of the clock, median",
        &[
            (
                "300 us at the server",
                "150.0 us",
                "ntp machine=ideal strategy=delay rx-usecs=300 ports=b",
            ),
            ("at the client", "-150.0 us", "ntp machine=ideal strategy=delay rx-usecs=300 ports=a"),
            ("at both", "0.0 us", "ntp machine=ideal strategy=delay rx-usecs=300"),
        ],
    ),
    (
        "The message that waits for its last fragment",
        "A mark on a fragment before the last one interrupts too early: the host finds a part, and \
         the rest waits for the timer, unless the NIC looks ahead.",
        "half a round trip, median",
        &[
            (
                "marked one fragment early",
                "159.4 us",
                "mx-misorder machine=clovertown strategy=marked rx-usecs=75 mark=mx mx-misorder=1",
            ),
            (
                "on the last fragment",
                "146.2 us",
                "mx-misorder machine=clovertown strategy=marked rx-usecs=75 mark=mx mx-misorder=0",
            ),
            (
                "early, and the NIC looks ahead",
                "152.4 us",
                "mx-misorder machine=clovertown strategy=stream rx-usecs=75 mark=mx mx-misorder=1",
            ),
        ],
    ),
    (
        "Marks end the trade-off",
        "Round trips beside a bulk flow on one NIC: a timer that is good for one is bad for the \
         other. Marked requests interrupt at once, and the bulk waits: the latency of no \
         moderation, the interrupts of a delay.",
        "round trip, median",
        &[
            ("a delay", "179.8 us", "mixed machine=server strategy=delay rx-usecs=75"),
            ("no moderation", "32.0 us", "mixed machine=server strategy=disabled"),
            ("marks", "31.6 us", "mixed machine=server strategy=marked rx-usecs=75"),
        ],
    ),
];

/// All of them.
pub(crate) fn cases() -> Vec<SeenCase> {
    let link =
        |(text, shows, values): &LinkText| CaseLink { text, shows, values: values_of(values) };
    CASES
        .map(|(title, says, figure, texts)| SeenCase {
            title,
            says,
            figure,
            links: texts.iter().map(link).collect(),
        })
        .into()
}

fn values_of(text: &str) -> Values {
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').unwrap_or(("experiment", word));
        (name.to_owned(), value.to_owned())
    };
    text.split_whitespace().map(pair).collect()
}
