//! A prediction in sentences.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use capture::Sure;

use crate::prediction::Prediction;

/// Which packets count as arrivals.
pub(crate) fn whose(sure: Sure) -> String {
    match sure {
        Sure::Directions => "packets that the capture marks as received".into(),
        Sure::Address(address) => format!("packets to {address}"),
        Sure::Station(own) => {
            format!("frames to {}, which nearly all frames are to or from", mac(own))
        }
        Sure::Either(own, other) => format!(
            "frames to {}, which received more than {}; --host ADDRESS names another host",
            mac(own),
            mac(other)
        ),
        Sure::All => {
            "all packets: no station is in nearly all of them; --host ADDRESS names one".into()
        }
    }
}

fn mac(address: [u8; 6]) -> String {
    let bytes = address.map(|byte| format!("{byte:02x}"));
    bytes.join(":")
}

impl Prediction {
    /// What the capture is.
    #[must_use]
    pub fn subject(&self) -> String {
        let on = self.interface.as_ref().map_or_else(String::new, |name| format!(" on {name}"));
        format!(
            "{} arrivals{on} in {:.3} s ({:.0} packets/s, {:.1} Mbit/s), of {} packets ({}): {}.",
            self.arrivals,
            self.seconds,
            self.arrivals as f64 / self.seconds.max(1e-9),
            self.bytes as f64 * 8e-6 / self.seconds.max(1e-9),
            self.packets,
            self.format,
            self.whose,
        )
    }

    /// What was wrong with the capture, and what the prediction cannot know.
    #[must_use]
    pub fn limits(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let counts = &self.counts;
        let wrong = [
            (
                counts.malformed,
                "packets have headers that are cut or contradict themselves: no rule marks them",
            ),
            (
                counts.backwards,
                "packets have stamps before those of the packet before; they count as of that moment",
            ),
            (
                counts.left_out,
                "packets or blocks were left out: damaged, without a stamp, or of an unknown kind of link",
            ),
            (
                counts.rest,
                "bytes at the end are no whole record: the capture was cut or is damaged there",
            ),
        ];
        lines.extend(
            wrong.iter().filter(|(count, _)| *count > 0).map(|(n, what)| format!("{n} {what}.")),
        );
        if self.interfaces.len() > 1 && self.interface.is_some() {
            lines.push(format!("Other interfaces (--interface NAME): {}.", self.others()));
        }
        lines.push(self.clumping.in_words());
        lines.push(self.of_stamps());
        lines.extend(self.of_settings());
        lines.push(
            "Senders do not react here: one that waits for an answer sends later under a longer hold. \
             Of traffic that waits for the host, take the figures as those of the first round trip."
                .into(),
        );
        lines
    }

    fn others(&self) -> String {
        let others = self.interfaces.iter().filter(|name| Some(*name) != self.interface.as_ref());
        others.map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// What no capture says of the settings that are compared.
    fn of_settings(&self) -> impl Iterator<Item = String> {
        let known = [
            (
                "periodic",
                "When a tick falls (periodic) is chance: where senders keep to a pace, holds may be up \
                 to a period other than here. Interrupts are not.",
            ),
            (
                "adaptive",
                "What adaptive decides next depends on some microseconds of some arrivals: it may \
                 settle at another wait than here.",
            ),
        ];
        let is_compared = |name: &str| self.settings.iter().any(|it| it.setting.starts_with(name));
        known.into_iter().filter(move |(name, _)| is_compared(name)).map(|(_, text)| text.into())
    }

    /// What the stamps are worth.
    fn of_stamps(&self) -> String {
        if self.recorded.is_some() {
            return "The capture has the hold of each packet, as Earmark's NIC recorded it: arrivals \
                    are exact."
                .into();
        }
        let coarse = if self.stamps.step_ns > 1_000 {
            format!(" Stamps count in steps of {} us.", self.stamps.step_ns / 1_000)
        } else {
            String::new()
        };
        let Some(moved) = self.stamps.moved else {
            return format!(
                "Stamps of a kernel are later than arrivals by the hold that was in force, and close \
                 together where packets waited together: then interrupts come out too few. \
                 --link-rate undoes what the rate of the wire proves.{coarse}"
            );
        };
        format!(
            "{:.1} % of arrivals were moved back, {:.1} us in the mean and {:.1} us at most, since the \
             wire cannot have brought them so close together; more than that the capture does not \
             prove.{coarse}",
            100.0 * moved,
            self.stamps.moved_mean_us.unwrap_or_default(),
            self.stamps.moved_max_us.unwrap_or_default(),
        )
    }
}
