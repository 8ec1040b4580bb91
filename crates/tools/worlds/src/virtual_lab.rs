//! `earmark lab run --time virtual`: programs of the user's on guests in virtual time.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::control;
use lab::dataplane::DataPlane;
use lab::guest::protocol::{GuestEvent, Order, OutputStream, Spawn, TimedCommand};
use lab::names;
use nic::moderation::Moderation;

use crate::script::{environment, order_at};
use crate::virtual_run::{VirtualRun, instant, with_usual_cable};
use bench::options::NicOptions;
use report::errln;

/// When the commands of the other hosts start.
const OTHERS_AT: Duration = Duration::from_millis(500);

/// When settings of single ports are put into force: once drivers are up.
const SETTINGS_AT: Duration = Duration::from_millis(900);

/// When the commands of the awaited hosts start.
const AWAITED_AT: Duration = Duration::from_secs(1);

/// Runs shell commands, each on its host, until those of the hosts in `awaited` have ended; the
/// first exit status among those that is not 0.
///
/// Nothing is read from standard input. What the programs write is passed on in whole lines.
pub fn run(
    commands: &[(usize, String)],
    awaited: &[usize],
    options: &NicOptions,
    moderation: Moderation,
    changes: Vec<PortChange>,
) -> Result<i32> {
    let mut lines = Lines::default();
    let take = &mut |from: Program, bytes: &[u8]| lines.take(from, bytes);
    play((commands, awaited), options, moderation, changes, take)
}

/// A change of a port while programs run: what `earmark nic set` would do at that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortChange {
    /// When, in virtual time.
    at: Duration,
    port: String,
    settings: Vec<(String, String)>,
}

impl PortChange {
    /// A setting of a port that is in force before the awaited commands start.
    pub fn before(port: &str, moderation: Moderation) -> Self {
        let settings = vec![("strategy".to_owned(), moderation.to_string())];
        Self { at: SETTINGS_AT, port: port.to_owned(), settings }
    }

    /// From seconds since the awaited commands start, and a port with pairs of name and value.
    pub fn parse(seconds: &str, words: &str) -> Result<Self> {
        let after: Option<Duration> =
            seconds.parse().ok().and_then(|it| Duration::try_from_secs_f64(it).ok());
        let after = after.with_context(|| format!("--at {seconds}: not a number of seconds"))?;
        let mut words = words.split_whitespace().map(str::to_owned);
        let port = words.next().context("--at: name a port, and what is to change there")?;
        let rest: Vec<String> = words.collect();
        let pairs = rest.chunks(2).map(|pair| Some((pair[0].clone(), pair.get(1)?.clone())));
        let settings: Option<Vec<_>> = pairs.collect();
        let settings = settings.filter(|settings| !settings.is_empty()).with_context(|| {
            format!("--at {seconds} '{port} ...': NAME VALUE [NAME VALUE ...] as for `nic set`")
        })?;
        control::check(&settings)?;
        Ok(Self { at: AWAITED_AT + after, port, settings })
    }
}

/// A host, the number of a command from 1, and what it writes to.
pub type Program = (usize, u32, OutputStream);

/// The same, and `take` gets what programs write.
pub fn play(
    (commands, awaited): (&[(usize, String)], &[usize]),
    options: &NicOptions,
    moderation: Moderation,
    changes: Vec<PortChange>,
    take: &mut dyn FnMut(Program, &[u8]),
) -> Result<i32> {
    let hosts = commands.iter().map(|(host, _)| host + 1).fold(2, usize::max);
    let scripts = scripts(commands, awaited, hosts)?;
    let options = with_usual_cable(options);
    let seed = options.seed.unwrap_or(1);
    let script = (scripts, awaited.to_vec());
    let mut run = VirtualRun::prepare(&names(hosts), &options, moderation, script, seed)?;
    for (hours, words) in [(1, "1 hour"), (24, "1 day"), (8_760, "1 year")] {
        let report = move |_: &mut DataPlane| {
            errln!("earmark: {words} of virtual time has passed; Ctrl-C ends the lab");
        };
        run.at(instant(Duration::from_secs(hours * 3_600)), report)?;
    }
    let (refuse, refused) = channel();
    for PortChange { at, port, settings } in changes {
        let refuse = refuse.clone();
        let set = move |plane: &mut DataPlane| {
            if let Err(error) = control::set(plane, &port, None, &settings) {
                let _ = refuse.send(error);
            }
        };
        run.at(instant(at), set)?;
    }
    let mut status = None;
    let mut failed = None;
    run.play(&mut |host, program, event| match event {
        GuestEvent::Output(stream, bytes) => take((host, program, stream), &bytes),
        GuestEvent::Failed(errno) => failed = Some(io::Error::from_raw_os_error(errno)),
        GuestEvent::Exited(ended) if awaited.contains(&host) => {
            let first = status.get_or_insert(ended.code());
            *first = if *first == 0 { ended.code() } else { *first };
        }
        _ => {}
    })?;
    if let Ok(error) = refused.try_recv() {
        return Err(error.context("--at: change a port"));
    }
    if let Some(error) = failed {
        bail!("start /bin/sh in a guest: {error}");
    }
    status.context("virtual time ended before the commands did; is there anything to wait for?")
}

/// A script for each host. One without an end is ended when time is.
fn scripts(
    commands: &[(usize, String)],
    awaited: &[usize],
    hosts: usize,
) -> Result<Vec<Vec<TimedCommand>>> {
    let directory = std::env::current_dir().context("find the working directory")?;
    let mut scripts = vec![Vec::new(); hosts];
    for (program, (host, command)) in (1..).zip(commands) {
        let at = if awaited.contains(host) { AWAITED_AT } else { OTHERS_AT };
        let spawn = Spawn {
            words: ["/bin/sh", "-c", command].map(Into::into).into(),
            directory: directory.clone().into_os_string().into(),
            environment: environment(),
            ..Spawn::default()
        };
        scripts[*host].push(order_at(at, program, Order::Spawn(spawn)));
    }
    // A script that is over ends its guest, and a host that is not awaited stays to the end.
    let never = Duration::from_secs(u32::MAX.into());
    for (host, script) in scripts.iter_mut().enumerate() {
        if !awaited.contains(&host) {
            script.push(order_at(never, 0, Order::PowerOff));
        }
    }
    Ok(scripts)
}

/// What programs have written of a line that is not complete yet: several write at once, and a line
/// of one must not end up within a line of another. Whatever is left is passed on at the end.
#[derive(Default)]
struct Lines {
    begun: BTreeMap<Program, Vec<u8>>,
}

/// A line may be longer, but is then passed on in pieces.
const LONGEST_LINE: usize = 64 << 10;

impl Lines {
    fn take(&mut self, program: Program, bytes: &[u8]) {
        let begun = self.begun.entry(program).or_default();
        begun.extend_from_slice(bytes);
        let line_end = begun.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let complete = if begun.len() > LONGEST_LINE { begun.len() } else { line_end };
        pass_on(program.2, &begun[..complete]);
        begun.drain(..complete);
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        for ((_, _, stream), rest) in &self.begun {
            pass_on(*stream, rest);
        }
    }
}

/// Writes a guest's output; if no process reads it, it is lost.
fn pass_on(stream: OutputStream, bytes: &[u8]) {
    let mut to: Box<dyn Write> = match stream {
        OutputStream::Output => Box::new(io::stdout()),
        OutputStream::Error => Box::new(io::stderr()),
    };
    let _ = to.write_all(bytes).and_then(|()| to.flush());
}
