//! One run in virtual time: guests, their NIC, and the calendar.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::sleep;
use std::time::{Duration, Instant as RealInstant};

use anyhow::{Result, bail};
use linux::capture::Capture;
use linux::dataplane::{DataPlane, Handle};
use linux::guest::Guest;
use linux::guest::protocol::{Cue, Event, GUEST};
use linux::machine::Machine;
use linux::snapshot::Snapshot;
use nic::moderation::Moderation;
use nic::time::Instant;

use super::guests::{BootList, GuestTime, Guests};
use super::setup;
use crate::control::server::Server;
use crate::options::{NicOptions, Ports};

/// How often, in real time, the guests' events are looked for.
const GLANCE: Duration = Duration::from_millis(2);

/// How often it is looked whether time stands still for good.
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// How long guests that have ended may take, in real time, to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// Guests that time has left behind have said all when nothing has come for so long.
const SILENCE: Duration = Duration::from_millis(200);

/// The cable where nobody says otherwise: gigabit Ethernet through a switch.
const USUAL_RATE_MBIT: u32 = 1_000;

/// Its latency in microseconds, each way.
const USUAL_LATENCY_US: u32 = 20;

/// What is done with an event: the number of the guest, that of its program, the event.
pub(super) type Sink<'a> = dyn FnMut(usize, u32, Event) + 'a;

/// Guests, their NIC and their calendar, for one run.
pub(super) struct Stage {
    // Dropped in this order: the guests end before their NIC does.
    guests: Vec<Guest>,
    _control: Server,
    plane: Arc<Handle>,
    boot_list: Option<BootList>,
    ports: Ports,
    /// The guests that time ends with.
    awaited: Vec<usize>,
    pcap: Option<PathBuf>,
}

/// What a look for events has found.
struct Taken {
    /// Whether there was one.
    any: bool,
    /// The guests that will have none any more.
    ended: Vec<bool>,
}

impl Taken {
    fn all_ended(&self) -> bool {
        self.ended.iter().all(|ended| *ended)
    }
}

/// `options`, with the cable of this world where they say nothing of one.
pub(super) fn with_usual_cable(options: &NicOptions) -> NicOptions {
    let mut options = options.clone();
    options.link_rate.get_or_insert(USUAL_RATE_MBIT);
    options.link_latency.get_or_insert(USUAL_LATENCY_US);
    options
}

/// A moment since the calendar's beginning.
pub(super) fn instant(since: Duration) -> Instant {
    Instant::from_nanos(since.as_nanos() as u64)
}

impl Stage {
    /// Everything but running kernels: a guest for each of `names`, with its script. Time ends when
    /// the guests in `awaited` have ended.
    ///
    /// # Errors
    /// If there is no kernel, or the system refuses a part.
    pub(super) fn prepare(
        names: &[String],
        options: &NicOptions,
        moderation: Moderation,
        (scripts, awaited): (Vec<Vec<Cue>>, Vec<usize>),
        seed: u64,
    ) -> Result<Self> {
        let time = GuestTime::Virtual { scripts, seed };
        let guests = Guests::prepare(names, options, Some(moderation), time)?;
        let interfaces: Vec<&str> = guests.plans.iter().map(|plan| plan.name.as_str()).collect();
        let pcap = options.pcap.clone();
        let capture = pcap.as_deref().map(|path| Capture::create_virtual(path, &interfaces));
        let plane = Handle::start_virtual(guests.plans, guests.calendar, capture.transpose()?)?;
        let plane = Arc::new(plane);
        let last = awaited.clone();
        plane.call(move |plane| plane.end_with(last))?;
        let stage = Self {
            _control: Server::start(options.name.as_deref(), &plane, &[])?,
            guests: Vec::new(),
            plane,
            boot_list: Some(guests.boot_list),
            ports: options.ports.unwrap_or(Ports::Both),
            awaited,
            pcap,
        };
        stage.set(Instant::ZERO, moderation)?;
        Ok(stage)
    }

    /// Puts `moderation` into force on the ports that take it, at a moment to come.
    ///
    /// # Errors
    /// If the data plane has ended.
    pub(super) fn set(&self, at: Instant, moderation: Moderation) -> Result<()> {
        let ports = self.ports;
        self.plane.at(at, move |plane| {
            let numbers = ports.numbers(plane.plane().len());
            numbers.for_each(|number| plane.set_moderation(number, None, moderation));
        })?;
        Ok(())
    }

    /// What the NIC will have counted at a moment to come.
    ///
    /// # Errors
    /// If the data plane has ended.
    pub(super) fn snapshot_at(&self, at: Instant) -> Result<Receiver<Snapshot>> {
        Ok(self.plane.at(at, |plane: &mut DataPlane| plane.snapshot())?)
    }

    /// Boots the guests and lets them play to the end of time; `sink` is told what their programs
    /// say and how they end.
    ///
    /// # Errors
    /// If a kernel cannot be started, or a guest stops time for good.
    pub(super) fn play(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        if let Some(list) = self.boot_list.take() {
            self.guests = list.boot()?;
        }
        let mut checked = RealInstant::now();
        while !self.take_events(sink).all_ended() && !self.plane.call(|plane| plane.is_over())? {
            if checked.elapsed() > CHECK_EVERY {
                self.check()?;
                checked = RealInstant::now();
            }
            sleep(GLANCE);
        }
        self.check()?;
        self.hear_out(sink);
        let capture = self.plane.call(|plane| plane.plane().take_capture())?;
        setup::finish_capture(capture, self.pcap.as_deref())
    }

    /// Passes on what was said before time ended and is still on its way.
    fn hear_out(&self, sink: &mut Sink<'_>) {
        let begun = RealInstant::now();
        let mut last = begun;
        loop {
            let taken = self.take_events(sink);
            if taken.any {
                last = RealInstant::now();
            }
            let all_ended = taken.all_ended();
            let awaited_have = self.awaited.iter().all(|&guest| taken.ended[guest]);
            let silent = awaited_have && last.elapsed() > SILENCE;
            if all_ended || silent || begun.elapsed() > GONE_WITHIN {
                return;
            }
            sleep(GLANCE);
        }
    }

    /// Passes on what has been said.
    fn take_events(&self, sink: &mut Sink<'_>) -> Taken {
        let mut taken = Taken { any: false, ended: vec![false; self.guests.len()] };
        for (number, guest) in self.guests.iter().enumerate() {
            loop {
                match guest.events().try_recv() {
                    Ok((GUEST, _)) => {}
                    Ok((program, event)) => sink(number, program, event),
                    Err(error) => {
                        taken.ended[number] = error == TryRecvError::Disconnected;
                        break;
                    }
                }
                taken.any = true;
            }
        }
        taken
    }

    /// Whether time can still go on.
    fn check(&self) -> Result<()> {
        let Some(mut why) = self.plane.call(|plane| plane.failure().map(str::to_owned))? else {
            return Ok(());
        };
        for guest in &self.guests {
            for message in guest.messages() {
                let _ = write!(why, "\n  {}: {message}", guest.name());
            }
        }
        bail!(why)
    }
}
