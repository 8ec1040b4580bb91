//! What is known of a device so far.

use std::collections::{BTreeMap, BTreeSet};

use device::ethtool::{
    Channels, Coalesce, Driver, Eee, Features, Link, QueueCoalesce, Rings, Timestamps,
    differing_queues,
};
use device::link::LinkStats;

/// A device, as far as text has said.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownDevice {
    pub(crate) driver: Option<Driver>,
    pub(crate) coalescing: Option<Coalesce>,
    /// What it was before, if the text has it several times.
    pub(crate) before: Option<Coalesce>,
    pub(crate) queue_coalescing: Vec<QueueCoalesce>,
    pub(crate) rings: Option<Rings>,
    pub(crate) channels: Option<Channels>,
    pub(crate) features: Option<Features>,
    pub(crate) timestamps: Option<Timestamps>,
    pub(crate) eee: Option<Eee>,
    pub(crate) link: Option<Link>,
    pub(crate) mtu: Option<u64>,
    pub(crate) state: Option<String>,
    /// The first and the last reading of the driver's counters.
    pub(crate) statistics: Vec<BTreeMap<String, u64>>,
    /// The first and the last reading of what the link has carried.
    pub(crate) link_stats: Vec<LinkStats>,
    /// What its driver does not offer, by the names of [`show::Unreadable`].
    pub(crate) lacks: BTreeSet<&'static str>,
    /// What else there is to say of it.
    pub(crate) notes: Vec<String>,
}

impl KnownDevice {
    /// Takes settings; those before them are remembered.
    pub(crate) fn set_coalescing(&mut self, settings: Coalesce) {
        if let Some(before) = self.coalescing.replace(settings) {
            self.before.get_or_insert(before);
        }
        self.lacks.remove(show::part::COALESCING);
    }

    /// A change by `ethtool -C`, which is in force unless a later reading says otherwise.
    pub(crate) fn change(&mut self, change: &Coalesce) {
        let now = self.coalescing.clone().unwrap_or_default();
        self.set_coalescing(change.iter().fold(now, |all, (name, value)| all.with(name, value)));
    }

    /// Holds queues against the device; where no text has the settings of the device, against
    /// those of the first queue.
    pub(crate) fn settle_queues(&mut self) {
        let queues = std::mem::take(&mut self.queue_coalescing);
        let Some(first) = queues.first() else { return };
        if self.coalescing.is_none() {
            // A switch that is off in the first queue and on in another is one that there is.
            let names = queues.iter().flat_map(|queue| queue.coalesce.iter());
            let all = names.fold(first.coalesce.clone(), |all, (name, _)| {
                let value = all.get(name).unwrap_or(0);
                all.with(name, value)
            });
            self.set_coalescing(all);
            self.note(format!(
                "no text has the settings of the device as a whole: those of queue {} stand for \
                 them",
                first.queue
            ));
        }
        let whole = self.coalescing.as_ref().expect("there is one now");
        self.queue_coalescing = differing_queues(queues, whole);
    }

    /// Whether no text has said anything of it but its driver.
    pub(crate) fn is_bare(&self) -> bool {
        self.coalescing.is_none()
            && self.queue_coalescing.is_empty()
            && self.rings.is_none()
            && self.channels.is_none()
            && self.features.is_none()
            && self.timestamps.is_none()
            && self.eee.is_none()
            && self.link.is_none()
            && self.statistics.is_empty()
            && self.link_stats.is_empty()
            && self.lacks.is_empty()
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
