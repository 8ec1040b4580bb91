//! One run in virtual time: guests, their NIC, and the calendar.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::thread::sleep;
use std::time::{Duration, Instant as RealInstant};

use anyhow::{Context, Result, bail, ensure};
use base::time::Instant;
use lab::capture::Capture;
use lab::dataplane::{DataPlane, VirtualHandle, VirtualSettings};
use lab::guest::Guest;
use lab::guest::protocol::{GUEST, GuestEvent, TimedCommand};
use lab::machine::Machine;
use lab::snapshot::Snapshot;
use nic::moderation::Moderation;
use sys::ctrl_c;

use crate::eta::{self, Eta};
use crate::guests::{BootList, GuestTime, Guests};
use crate::setup;
use bench::options::{NicOptions, Ports};
use lab::control::Server;
use report::errln;

/// How often, in real time, the guests' events are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// How often it is looked whether time stands still for good.
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// Guests that time has left behind have said all when nothing has come for so long.
const QUIET_FOR: Duration = Duration::from_millis(200);

/// How long a kernel whose clock has gone may take to end.
const EXIT_WITHIN: Duration = Duration::from_secs(10);

/// The cable where no option says otherwise: gigabit Ethernet through a switch.
const USUAL_RATE_MBIT: u32 = 1_000;

/// Its latency in microseconds, each way.
const USUAL_LATENCY_US: u32 = 20;

/// Sets how many seconds of real time a guest may compute without a word.
const TIMEOUT_VARIABLE: &str = "EARMARK_PATIENCE";

/// What is done with an event: the number of the guest, that of its program, the event.
pub(crate) type Sink<'a> = dyn FnMut(usize, u32, GuestEvent) + 'a;

/// How far a guest has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GuestPhase {
    Booting,
    /// It follows its script.
    Playing,
    /// It has come to the end of the script.
    PoweringOff,
    /// It is gone, as it should be.
    Gone,
}

/// Guests, their NIC and their calendar, for one run.
pub(crate) struct VirtualRun {
    // Dropped in this order: the guests end before their NIC does.
    guests: Vec<Guest>,
    phases: Vec<GuestPhase>,
    /// What they are to do, by their numbers: a guest may speak of other programs.
    programs: BTreeSet<(usize, u32)>,
    /// Time ends when these have ended.
    awaited: Vec<usize>,
    _control: Server,
    plane: VirtualHandle,
    boot_list: Option<BootList>,
    options: NicOptions,
    kernel: PathBuf,
    /// When a program last said something, in real time.
    last_event_at: RealInstant,
    /// Of the estimate that the user gets once, and whether it has been given.
    eta: Option<Eta>,
    eta_reported: bool,
}

/// `options`, with the cable of this world where they say nothing of one.
pub(crate) fn with_usual_cable(options: &NicOptions) -> NicOptions {
    let mut options = options.clone();
    options.link_rate.get_or_insert(USUAL_RATE_MBIT);
    options.link_latency.get_or_insert(USUAL_LATENCY_US);
    options
}

/// A moment since the calendar's beginning.
pub(crate) fn instant(since: Duration) -> Instant {
    Instant::from_nanos(since.as_nanos() as u64)
}

impl VirtualRun {
    /// Everything but running kernels: a guest for each of `names`, with its script. Time ends when
    /// the guests in `awaited` have ended.
    pub(crate) fn prepare(
        names: &[String],
        options: &NicOptions,
        moderation: Moderation,
        (scripts, awaited): (Vec<Vec<TimedCommand>>, Vec<usize>),
        seed: u64,
    ) -> Result<Self> {
        let of_guest = |(guest, cues): (usize, &Vec<TimedCommand>)| {
            cues.iter().map(|cue| (guest, cue.program)).collect::<Vec<_>>()
        };
        let programs = scripts.iter().enumerate().flat_map(of_guest).collect();
        let time = GuestTime::Virtual { scripts, seed };
        let guests = Guests::prepare(names, options, Some(moderation), time)?;
        let interfaces: Vec<&str> = guests.plans.iter().map(|plan| plan.name.as_str()).collect();
        let capture =
            options.pcap.as_deref().map(|path| Capture::create_virtual(path, &interfaces));
        let settings =
            VirtualSettings { end_with: Some(awaited.clone()), timeout: compute_timeout()? };
        let (plans, calendar) = (guests.plans, guests.calendar);
        let plane = VirtualHandle::start(plans, calendar, settings, capture.transpose()?)?;
        let run = Self {
            _control: Server::start(options.name.as_deref(), plane.data_plane(), &[])?,
            guests: Vec::new(),
            phases: vec![GuestPhase::Booting; names.len()],
            programs,
            awaited,
            plane,
            boot_list: Some(guests.boot_list),
            options: options.clone(),
            kernel: guests.kernel,
            last_event_at: RealInstant::now(),
            eta: None,
            eta_reported: false,
        };
        run.set(Instant::ZERO, moderation)?;
        Ok(run)
    }

    /// Puts `moderation` into force on the ports that take it, at a moment to come.
    pub(crate) fn set(&self, at: Instant, moderation: Moderation) -> Result<()> {
        let (ports, lanes) =
            (self.options.ports.unwrap_or(Ports::Both), self.options.lanes(moderation));
        self.plane.at(at, move |plane| setup::set(plane, ports, moderation, &lanes))?;
        Ok(())
    }

    /// Has `command` run at a moment to come.
    pub(crate) fn at(
        &self,
        at: Instant,
        command: impl FnOnce(&mut DataPlane) + Send + 'static,
    ) -> Result<()> {
        self.plane.at(at, command)?;
        Ok(())
    }

    /// What the NIC will have counted at a moment to come.
    pub(crate) fn snapshot_at(&self, at: Instant) -> Result<Receiver<Snapshot>> {
        Ok(self.plane.at(at, |plane: &mut DataPlane| plane.snapshot())?)
    }

    /// Tells the user if the time from `from` until `until` is going to take long.
    pub(crate) fn watch_eta(&mut self, from: Instant, until: Instant) {
        self.eta = Some(Eta::new(from, until));
    }

    /// Whether it has.
    pub(crate) fn has_eta_reported(&self) -> bool {
        self.eta_reported
    }

    /// Boots the guests and lets them play to the end of time; `sink` gets what their programs
    /// say and how they end.
    pub(crate) fn play(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        if let Some(list) = self.boot_list.take() {
            self.guests = list.boot()?;
        }
        let mut checked = RealInstant::now();
        while !self.take_events(sink)? && !self.plane.outlook().is_over {
            if checked.elapsed() > CHECK_EVERY {
                ctrl_c::check()?;
                self.check()?;
                self.report_eta();
                checked = RealInstant::now();
            }
            sleep(POLL_INTERVAL);
        }
        self.check()?;
        self.drain_events(sink)?;
        setup::finish_capture(self.plane.data_plane(), self.options.pcap.as_deref())
    }

    fn report_eta(&mut self) {
        let Some(eta) = &mut self.eta else { return };
        if let Some(whole) = eta.estimate(self.plane.outlook().now, RealInstant::now()) {
            errln!("{}", eta::message(whole));
            (self.eta, self.eta_reported) = (None, true);
        }
    }

    /// Passes on what was said before time ended and is still on its way. The kernels with which it
    /// ended are about to end.
    fn drain_events(&mut self, sink: &mut Sink<'_>) -> Result<()> {
        let begun = RealInstant::now();
        while !self.take_events(sink)? && begun.elapsed() < EXIT_WITHIN {
            if self.have_left(&self.awaited) && self.last_event_at.elapsed() > QUIET_FOR {
                break;
            }
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Passes on what has been said; whether all guests have ended.
    fn take_events(&mut self, sink: &mut Sink<'_>) -> Result<bool> {
        for number in 0..self.guests.len() {
            loop {
                match self.guests[number].events().try_recv() {
                    Ok((GUEST, GuestEvent::Ready)) => self.ready(number)?,
                    Ok((GUEST, GuestEvent::PoweringOff)) => {
                        self.phases[number] = GuestPhase::PoweringOff;
                    }
                    Ok((program, event)) => {
                        if program != GUEST && self.programs.contains(&(number, program)) {
                            self.last_event_at = RealInstant::now();
                            sink(number, program, event);
                        }
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        self.left(number)?;
                        break;
                    }
                }
            }
        }
        Ok(self.phases.iter().all(|phase| *phase == GuestPhase::Gone))
    }

    fn have_left(&self, guests: &[usize]) -> bool {
        guests.iter().all(|&guest| self.phases[guest] == GuestPhase::Gone)
    }

    /// A guest begins with its script. By then it must have asked for the time.
    fn ready(&mut self, number: usize) -> Result<()> {
        self.phases[number] = GuestPhase::Playing;
        ensure!(
            self.has_clock(number),
            "guest {}: {}",
            self.guests[number].name(),
            self.no_virtual_time()
        );
        Ok(())
    }

    fn has_clock(&self, number: usize) -> bool {
        self.plane.outlook().clocks[number]
    }

    fn no_virtual_time(&self) -> String {
        format!(
            "its kernel {} never asked its calendar for the time; is it one with virtual time, as \
             `earmark kernel` builds it?",
            self.kernel.display()
        )
    }

    /// A guest has no more to say.
    fn left(&mut self, number: usize) -> Result<()> {
        match self.phases[number] {
            GuestPhase::PoweringOff | GuestPhase::Gone => {
                self.phases[number] = GuestPhase::Gone;
                Ok(())
            }
            phase => {
                let end = self.guests[number].ended(phase == GuestPhase::Playing);
                ensure!(self.has_clock(number), "{end}\n{}", self.no_virtual_time());
                Err(end.into())
            }
        }
    }

    /// Whether time can still go on.
    fn check(&self) -> Result<()> {
        let Some(mut why) = self.plane.outlook().failure else { return Ok(()) };
        for guest in &self.guests {
            for message in guest.messages() {
                let _ = write!(why, "\n  {}: {message}", guest.name());
            }
        }
        bail!(why)
    }
}

/// How long a guest may compute without a word: two minutes, or what the user says.
fn compute_timeout() -> Result<Duration> {
    let Some(text) = std::env::var_os(TIMEOUT_VARIABLE) else {
        return Ok(Duration::from_secs(120));
    };
    let seconds = text.to_str().and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0);
    let seconds: u32 = seconds.with_context(|| {
        format!("{TIMEOUT_VARIABLE}={}: a number of seconds, 1 or more", text.to_string_lossy())
    })?;
    Ok(Duration::from_secs(seconds.into()))
}
