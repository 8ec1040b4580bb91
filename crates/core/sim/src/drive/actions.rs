//! The random requests of applications.

use alloc::format;
use alloc::vec;

use base::prng::MILLION;
use base::time::Duration;
use mx::matching::Match;

use super::{Alarm, Drive};
use crate::model::{BLANK, MAX_LENGTH, Model, Wanted, place};
use crate::world::{SimEndpoint, address};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_millis(4_000);

impl Drive {
    /// A host does something.
    pub(super) fn act(&mut self) {
        let host = self.random.below(self.setup.hosts as u64) as usize;
        if !self.apps[host].is_up || self.apps[host].is_closing {
            return;
        }
        let habits = self.setup.habits;
        let draw = self.random.below(MILLION.into()) as u32;
        let choices = [
            (habits.restart_ppm, Self::restart as fn(&mut Self, usize)),
            (habits.close_ppm, Self::close),
            (habits.cut_ppm, Self::cut),
            (habits.sleep_ppm, Self::sleep),
            (habits.probe_ppm, Self::probe),
            (habits.claim_ppm, Self::claim),
            (habits.cancel_ppm, Self::cancel),
            (habits.receive_ppm, Self::receive),
        ];
        let mut up_to = 0;
        for (ppm, act) in choices {
            up_to += ppm;
            if draw < up_to {
                return act(self, host);
            }
        }
        self.send(host);
        self.check_memory(host);
    }

    fn other(&mut self, host: usize) -> usize {
        if self.random.chance(self.setup.habits.self_ppm) {
            return host;
        }
        let other = self.random.below(self.setup.hosts as u64 - 1) as usize;
        if other < host { other } else { other + 1 }
    }

    fn restart(&mut self, host: usize) {
        self.apps[host].is_up = false;
        let late = Duration::from_micros(self.random.below(20_000));
        self.world.stop(host);
        self.world.alarm(self.world.now() + late, Alarm::Begin(host).number());
    }

    fn close(&mut self, host: usize) {
        self.apps[host].is_closing = true;
        self.world.with(host, SimEndpoint::close);
    }

    fn cut(&mut self, host: usize) {
        let other = self.other(host);
        self.world.cut(host, other, true);
        let most = self.setup.config.peer_timeout.times(2);
        let late = Duration::from_nanos(self.random.below(most.as_nanos()));
        self.world.alarm(self.world.now() + late, Alarm::Reconnect(host, other).number());
    }

    fn sleep(&mut self, host: usize) {
        self.world.sleep(host, true);
        let most = self.setup.config.peer_timeout.as_nanos() / 4;
        let late = Duration::from_nanos(self.random.below(most));
        self.world.alarm(self.world.now() + late, Alarm::Wake(host).number());
    }

    /// The bits that receives look at.
    fn tag(&mut self) -> u64 {
        let context = self.setup.config.context;
        let context = self.random.below(1 << context.bits) << context.shift;
        // Few tags, so that much fits.
        self.random.below(3) | context
    }

    /// How long a message is: often at the edge of a class.
    fn length(&mut self) -> u64 {
        let config = &self.setup.config;
        let frame = u64::from(config.mtu) - 40;
        let edges = [
            0,
            config.small_max.into(),
            u64::from(config.small_max) + 1,
            frame,
            3 * frame,
            config.eager_max.into(),
            u64::from(config.eager_max) + 1,
            32 * (frame + 8) + 1,
        ];
        let longest = self.setup.habits.longest;
        match self.random.below(4) {
            0 => edges[self.random.below(8) as usize].min(longest),
            1 => self.random.below(longest.min(200) + 1),
            _ => {
                let most = self.random.below(longest + 1);
                self.random.below(most + 1)
            }
        }
    }

    fn send(&mut self, host: usize) {
        let other = self.other(host);
        let known = self.apps[host].known.get(&other).copied();
        let key = self.setup.config.key;
        let connect = |end: &mut SimEndpoint, now| end.connect(now, address(other), key, CONNECT);
        let Some(peer) = known.or_else(|| self.world.with(host, connect).ok()) else { return };
        self.apps[host].known.insert(other, peer);
        let (tag, length) = (self.tag(), self.length());
        let is_synchronous = self.random.chance(self.setup.habits.synchronous_ppm);
        let waits = is_synchronous || other == host || length > self.setup.config.eager_max.into();
        let side = self.side(host, peer);
        let number = self.model.send(side, other, tag, length, waits);
        let message = self.model.message(number, length);
        let match_info = number << 16 | tag;
        let send = if is_synchronous { SimEndpoint::issend } else { SimEndpoint::isend };
        let sent =
            self.world.with(host, |end, now| send(end, now, peer, match_info, message, number));
        if let Err(refusal) = sent {
            // The loss may not have been heard of yet.
            self.model.sent[place(number)].ended = Some(Err(mx::status::RequestError::Unreachable));
            if self.setup.habits.are_peaceful() {
                self.model.fault(format!("send {number} was refused: {refusal}"));
            }
        }
    }

    /// Something to receive or to look for.
    fn wanted(&mut self, host: usize) -> Wanted {
        let habits = self.setup.habits;
        let other = self.other(host);
        let any = self.random.chance(habits.any_source_ppm);
        let source = if any { None } else { self.peer(host, other) };
        let context = self.setup.config.context;
        let context = ((1 << context.bits) - 1) << context.shift;
        let mask = match self.random.chance(habits.wide_mask_ppm) {
            true => context | self.random.below(4),
            false => crate::model::TAG,
        };
        Wanted { source, matching: Match { info: self.tag() & mask, mask } }
    }

    fn receive(&mut self, host: usize) {
        let wanted = self.wanted(host);
        self.post(host, wanted, None);
    }

    fn room(&mut self) -> u64 {
        let longest = self.setup.habits.longest;
        match self.random.chance(self.setup.habits.short_ppm) {
            true => self.random.below(longest + 1),
            false => longest,
        }
    }

    fn post(&mut self, host: usize, wanted: Wanted, expects: Option<u64>) {
        let room = self.room();
        let by = (host, self.apps[host].life);
        let receive = self.model.post(by, wanted, room, expects);
        let memory = vec![BLANK; room as usize];
        let Wanted { source, matching } = wanted;
        let context = receive as u64;
        let post = |end: &mut SimEndpoint, now| end.irecv(now, source, matching, memory, context);
        match self.world.with(host, post) {
            Ok(id) => self.apps[host].open.push((id, receive)),
            Err(refusal) => {
                self.model.posted[receive].discarded = true;
                if self.setup.habits.are_peaceful() || expects.is_some() {
                    self.model.fault(format!("receive {receive} was refused: {refusal}"));
                }
            }
        }
    }

    /// What a probe finds, the next receive gets.
    fn probe(&mut self, host: usize) {
        let wanted = self.wanted(host);
        let found = self.world.with(host, |end, _| end.probe(wanted.source, wanted.matching));
        if let Ok(Some(found)) = found {
            let number = Model::number(found.match_info);
            if self.model.sent.get(place(number)).is_none_or(|sent| sent.length != found.length) {
                self.model.fault(format!("probe found {found:?}"));
            }
            self.post(host, wanted, Some(number));
        }
    }

    fn claim(&mut self, host: usize) {
        let wanted = self.wanted(host);
        self.claim_one(host, wanted, false);
    }

    /// Claims a message, and receives or discards it; false if there is none.
    pub(super) fn claim_one(&mut self, host: usize, wanted: Wanted, in_full: bool) -> bool {
        let found = self.world.with(host, |end, _| end.claim(wanted.source, wanted.matching));
        let Ok(Some(found)) = found else { return false };
        let number = Model::number(found.match_info);
        let by = (host, self.apps[host].life);
        let whole = found.length.min(MAX_LENGTH as u64);
        let room = if in_full { whole } else { self.room() };
        let receive = self.model.post(by, wanted, room, Some(number));
        self.model.take(receive, number, Some(found.peer));
        let memory = vec![BLANK; room as usize];
        if !in_full && self.random.below(4) == 0 {
            self.model.discard(receive, number, room);
            let message = found.message;
            if !self.world.with(host, |end, now| end.discard(now, message, memory)) {
                self.model.fault(format!("claimed {found:?} is not there"));
            }
            return true;
        }
        let context = receive as u64;
        let id = self
            .world
            .with(host, |end, now| end.receive_message(now, found.message, memory, context));
        match id {
            Ok(id) => self.apps[host].open.push((id, receive)),
            Err(refusal) => self.model.fault(format!("claimed {found:?}: {refusal}")),
        }
        true
    }

    fn cancel(&mut self, host: usize) {
        let open = &self.apps[host].open;
        if open.is_empty() {
            return;
        }
        let (id, _) = open[self.random.below(open.len() as u64) as usize];
        self.world.with(host, |end, _| end.cancel(id));
    }

    /// What is kept stays within the settings.
    pub(super) fn check_memory(&mut self, host: usize) {
        let Some(end) = self.world.end(host) else { return };
        let (usage, config) = (end.usage(), end.config());
        let most = (config.unexpected_bytes, config.early_bytes);
        // Each peer may have a few, and what it sends before it finds the flag `full`.
        let each = u64::from(config.window) + u64::from(config.unexpected_messages.min(64));
        let peers = self.setup.hosts as u64 * each;
        let waiting = u64::from(config.unexpected_messages) + peers;
        let fits = usage.unexpected_bytes <= usage.reserved_bytes
            && usage.reserved_bytes <= most.0 + self.setup.hosts as u64 * (32 << 10)
            && usage.early_bytes <= most.1
            && (u64::from(usage.waiting) <= waiting || self.setup.habits.self_ppm > 0);
        assert!(fits, "host {host} keeps too much: {usage:?}");
    }
}
