//! Many events on all processors, as one.

use std::collections::BTreeMap;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::PerfError;
use super::attributes::Attributes;
use super::event::Event;
use super::format::Format;
use super::record::{self, Record};
use super::ring::PerfRing;
use super::tracefs::Tracefs;

/// Room for records of a processor, in bytes.
const ROOM: usize = 1 << 20;

/// Whose passing of a tracepoint counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// All processes and threads.
    All,
    /// That of a process or thread, and of what it starts.
    Task(u32),
}

/// A tracepoint that is wanted.
#[derive(Clone, Debug)]
pub struct EventRequest {
    /// The tracepoint, as `group:name`.
    pub event: &'static str,
    /// What its fields must be, in the language of `filter` files in tracefs.
    pub filter: Option<String>,
    /// Whose passing counts.
    pub unit: Unit,
}

/// A tracepoint that was wanted and is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The tracepoint, as `group:name`.
    pub event: &'static str,
    /// Why it is missing, in words.
    pub why: String,
}

struct Processor {
    /// Ended before the ring's holder is.
    ring: PerfRing,
    holder: Event,
}

/// Events that are traced together.
pub struct Session {
    events: Vec<(&'static str, Event)>,
    processors: Vec<Processor>,
    formats: BTreeMap<u16, (&'static str, Format)>,
    buffer: Vec<u8>,
}

impl Session {
    /// Opens what is requested, and, of the thread or process `switches`, when it runs. Requests
    /// that the kernel does not have, or refuses, are returned as missing.
    pub fn open(
        tracefs: &Tracefs,
        requests: &[EventRequest],
        switches: Option<u32>,
    ) -> Result<(Self, Vec<Missing>), PerfError> {
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online");
        let online = online.and_then(|text| {
            sys::cpus::parse_list(&text).ok_or_else(|| std::io::ErrorKind::InvalidData.into())
        });
        let online = online.map_err(PerfError::Processors)?;
        allow_files();
        let mut session = Self {
            events: Vec::new(),
            processors: Vec::new(),
            formats: BTreeMap::new(),
            buffer: Vec::new(),
        };
        for cpu in &online {
            session.processors.push(Processor::new(*cpu)?);
        }
        let mut missing = Vec::new();
        for request in requests {
            if let Err(why) = session.add(tracefs, request, &online)? {
                missing.push(Missing { event: request.event, why });
            }
        }
        if let Some(pid) = switches {
            for (cpu, processor) in online.iter().zip(&session.processors) {
                let opened = Event::open(&Attributes::switches().inherited(), pid as i32, *cpu)
                    .and_then(|event| event.write_into(&processor.holder).map(|()| event));
                let name = "context switches";
                let event = opened.map_err(|cause| PerfError::Open(name.into(), *cpu, cause))?;
                session.events.push((name, event));
            }
        }
        Ok((session, missing))
    }

    /// Adds a tracepoint on each processor; the inner error says why it is missing.
    fn add(
        &mut self,
        tracefs: &Tracefs,
        request: &EventRequest,
        online: &[u32],
    ) -> Result<Result<(), String>, PerfError> {
        let Some(format) = tracefs.format(request.event)? else {
            return Ok(Err("this kernel does not have it".into()));
        };
        let attributes = Attributes::tracepoint(format.id);
        let (attributes, pid) = match request.unit {
            Unit::All => (attributes, -1),
            Unit::Task(pid) => (attributes.inherited(), pid as i32),
        };
        let mut opened = Vec::new();
        for (cpu, processor) in online.iter().zip(&self.processors) {
            let event = match Event::open(&attributes, pid, *cpu) {
                Ok(event) => event,
                Err(cause) if cause.raw_os_error() == Some(libc::ENODEV) => continue,
                Err(cause) => {
                    let event = request.event.to_owned();
                    return Err(PerfError::Open(event, *cpu, cause));
                }
            };
            if let Some(filter) = &request.filter
                && let Err(cause) = event.filter(filter)
            {
                return Ok(Err(format!("the kernel refuses the filter {filter}: {cause}")));
            }
            event
                .write_into(&processor.holder)
                .map_err(|cause| PerfError::Open(request.event.to_owned(), *cpu, cause))?;
            opened.push((request.event, event));
        }
        self.events.extend(opened);
        self.formats.insert(format.id, (request.event, format));
        Ok(Ok(()))
    }

    /// The tracepoints that were opened, as `group:name`, with their layouts.
    pub fn formats(&self) -> impl Iterator<Item = (&'static str, &Format)> {
        self.formats.values().map(|(name, format)| (*name, format))
    }

    /// Switches all events on.
    pub fn enable(&self) -> Result<(), PerfError> {
        switch(&self.events, true)
    }

    /// Switches all events off: passing a tracepoint costs next to nothing then.
    pub fn disable(&self) -> Result<(), PerfError> {
        switch(&self.events, false)
    }

    /// Shows what was recorded since the last time: processor by processor, each in order.
    pub fn drain(&mut self, mut look: impl FnMut(Record<'_>)) {
        for processor in &mut self.processors {
            self.buffer.clear();
            processor.ring.take(&mut self.buffer);
            record::each(&self.buffer, &mut look);
        }
    }
}

fn switch(events: &[(&'static str, Event)], on: bool) -> Result<(), PerfError> {
    for (name, event) in events {
        event.switch(on).map_err(|cause| {
            PerfError::Switch((*name).to_owned(), if on { "on" } else { "off" }, cause)
        })?;
    }
    Ok(())
}

impl Processor {
    fn new(cpu: u32) -> Result<Self, PerfError> {
        let holder = Event::open(&Attributes::holder(), -1, cpu)
            .map_err(|cause| PerfError::Open("a ring".into(), cpu, cause))?;
        let ring = PerfRing::map(holder.descriptor(), ROOM)
            .map_err(|cause| PerfError::Ring(cpu, cause))?;
        Ok(Self { ring, holder })
    }
}

/// Raises the limit on open files as far as it goes without rights: machines with many processors
/// need many. If that fails, opening events says so.
fn allow_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
