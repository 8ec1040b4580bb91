//! Frames on their way to endpoints of this host.

use base::time::Instant;
use mx::wire::{BULK_PAYLOAD, FrameType, RUN_HEAD, Run};
use rustix::event::epoll;

use super::link::Outbound;
use super::ring::RecordKind;
use super::{ABSENCE, OUTBOUND, SEND_TIMEOUT, ShmPort, name, number};
use crate::port::{Address, BulkPath, BulkState};
use sys::clock;

impl ShmPort {
    pub(in crate::port) fn reaches(&mut self, to: Address) -> bool {
        self.link(to).is_some()
    }

    /// Whether a frame may be one that is longer than the MTU: as long as the engine has not heard
    /// that a path is closed.
    pub(in crate::port) fn has_paths(&self) -> bool {
        !self.outbound.is_empty() || !self.changes.is_empty()
    }

    /// Sends a frame to an endpoint of this host, or a run of them: its first bytes, and the data
    /// that follow these. `false` if there is no room for all of it, so that no other may come
    /// before it is [flushed](Self::flush). What has no receiver is lost.
    pub(in crate::port) fn offer(&mut self, to: Address, first: &[u8], data: &[u8]) -> bool {
        if first.first() == Some(&(FrameType::Rendezvous as u8)) && !data.is_empty() {
            let [at, length] = [data.as_ptr() as u64, data.len() as u64].map(u64::to_ne_bytes);
            self.counters.went(0, data.len());
            return self.send(to, RecordKind::Reference, &[&at, &length, first]);
        }
        let all = first.len() + data.len();
        let run = first.split_first_chunk().filter(|_| all > RUN_HEAD + BULK_PAYLOAD);
        let run = run.and_then(|(head, lead)| Some((Run::new(head, all - RUN_HEAD)?, lead)));
        match run {
            Some((run, lead)) => self.send_run(to, run, lead, data),
            None => self.send(to, RecordKind::Frame, &[first, data]),
        }
    }

    /// Sends the frames of a run, of whose data the `lead` lies in one place and the rest in
    /// another.
    fn send_run(&mut self, to: Address, mut run: Run, mut lead: &[u8], mut data: &[u8]) -> bool {
        let mut has_room = true;
        while run.left() > 0 {
            let (first, second);
            (first, lead) = lead.split_at(lead.len().min(run.next()));
            (second, data) = data.split_at(run.next() - first.len());
            has_room = self.send(to, RecordKind::Frame, &[&run.head(), first, second]);
            run.advance(run.next());
        }
        has_room
    }

    /// Sends a record after those that wait for room; `false` if it does, too.
    fn send(&mut self, to: Address, kind: RecordKind, parts: &[&[u8]]) -> bool {
        if self.staged.is_empty() && self.push(to, kind, parts) {
            return true;
        }
        self.counters.full += 1;
        self.staged.push_back((to, kind, parts.concat().into()));
        false
    }

    /// Sends what waits for room; `false` if there is none for all of it.
    pub(in crate::port) fn flush(&mut self) -> bool {
        while let Some((to, kind, record)) = self.staged.pop_front() {
            if !self.push(to, kind, &[&record]) {
                self.counters.full += 1;
                self.staged.push_front((to, kind, record));
                return false;
            }
        }
        true
    }

    /// Puts a record into the ring of an endpoint; `false` if there is no room for it now. If there
    /// has been none for a while it is lost.
    fn push(&mut self, to: Address, kind: RecordKind, parts: &[&[u8]]) -> bool {
        let length = parts.iter().map(|part| part.len()).sum();
        let is_bulk = kind == RecordKind::Reference || length > self.settings.mtu.into();
        let Some(link) = self.link(to) else {
            self.counters.refused += 1;
            return true;
        };
        let mut is_alive = true;
        if link.producer.push(kind, parts) {
            link.full_since = None;
            let rings;
            (rings, is_alive) = link.wake();
            self.counters.calls_out += u64::from(rings);
        } else {
            let now = clock::now();
            let since = *link.full_since.get_or_insert(now);
            if now.since(since) < SEND_TIMEOUT {
                return false;
            }
            link.producer.lose();
            self.hear(number(to));
            if is_bulk && self.outbound.contains_key(&number(to)) {
                self.reopen(to);
            }
        }
        self.counters.went(1, length);
        self.counters.bulk_out += u64::from(is_bulk);
        if !is_alive {
            self.unlink(to);
        }
        true
    }

    /// Sends a frame to all other endpoints of this NIC that have room for it.
    pub(in crate::port) fn broadcast(&mut self, frame: &[u8]) {
        for endpoint in 0..=255 {
            let to = Address { nic: self.nic, endpoint };
            if endpoint != self.endpoint && self.link(to).is_some() {
                self.push(to, RecordKind::Frame, &[frame]);
            }
        }
    }

    /// What frames to an endpoint refer to will be used for something else.
    pub(super) fn void(&mut self, to: Address) {
        self.staged.retain(|(other, ..)| *other != to);
        if let Some(link) = self.outbound.get(&number(to)) {
            link.producer.void();
        }
    }

    /// The connection to an endpoint, which is made if there is one to connect to.
    fn link(&mut self, to: Address) -> Option<&mut Outbound> {
        let name = number(to);
        if !self.outbound.contains_key(&name) {
            let now = clock::now();
            if self.is_absent(to, now) {
                return None;
            }
            let Some(link) = self.connect(to) else {
                self.absent.insert(to, now);
                return None;
            };
            self.outbound.insert(name, link);
        }
        self.outbound.get_mut(&name)
    }

    /// Whether an endpoint was looked for a moment ago, and not found.
    fn is_absent(&mut self, to: Address, now: Instant) -> bool {
        self.absent.retain(|_, when| now.since(*when) < ABSENCE);
        self.absent.contains_key(&to)
    }

    fn connect(&mut self, to: Address) -> Option<Outbound> {
        let socket = match self.spare.take() {
            Some(spare) => spare,
            None => self.network.socket().ok()?,
        };
        let own = Address { nic: self.nic, endpoint: self.endpoint };
        let name = name(self.settings.scope, to);
        match Outbound::connect(socket, &name, (own, to), self.settings.lines()) {
            Ok(link) => {
                let data = epoll::EventData::new_u64(OUTBOUND | number(to));
                epoll::add(&self.epoll, &link, data, epoll::EventFlags::IN).ok()?;
                Some(link)
            }
            Err(spare) => {
                self.spare = spare;
                None
            }
        }
    }

    /// The endpoint with this number may have said something, or be gone.
    pub(super) fn hear(&mut self, number: u64) {
        let Some(link) = self.outbound.get_mut(&number) else { return };
        let key = link.to;
        let before = link.is_read;
        if !link.is_alive() {
            return self.unlink(key);
        }
        match (before, link.is_read) {
            (None, Some(_)) => self.changed(key, BulkPath::Open),
            (Some(true), Some(false)) => self.changed(key, BulkPath::Open),
            _ => {}
        }
    }

    /// Nothing is lost on a path as long as it is open; something was.
    fn reopen(&mut self, key: Address) {
        self.changed(key, BulkPath::Closed);
        self.changed(key, BulkPath::Open);
    }

    pub(super) fn unlink(&mut self, key: Address) {
        if self.outbound.remove(&number(key)).is_some_and(|link| link.is_read.is_some()) {
            self.changed(key, BulkPath::Closed);
        }
    }

    fn changed(&mut self, key: Address, path: BulkPath) {
        let link = self.outbound.get(&number(key));
        let reads_memory = link.is_some_and(|link| link.is_read == Some(true));
        // All that one frame of the MTU has no room for gains.
        let state = BulkState { path, min: Some(0), reads_memory };
        self.changes.push((key, state));
    }
}
