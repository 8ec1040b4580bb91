//! What guests in virtual time do, and when: a script for each, written before they boot.
//!
//! ```text
//! 0.25 s     settings of interfaces are made
//! 0.3 s      servers start
//! 0.5 s      clients start, and connect
//! 1 s        all agents go; warm-up, then the measurement
//! the end    servers get *stop*; a moment later all that is left is ended
//! ```
//!
//! Virtual time in which no process runs costs nothing, so the gaps are generous.

use std::time::Duration;

use anyhow::Result;
use lab::guest::protocol::{Order, PROGRAM, Spawn, Text, TimedCommand};

use lab::station::Station;

use crate::{host_settings, preload};
use bench::experiment::{Plan, Player, Role};
use bench::options::NicOptions;
use bench::polling::Polling;

const SETTINGS_AT: Duration = Duration::from_millis(250);

const SERVERS_AT: Duration = Duration::from_millis(300);

const CLIENTS_AT: Duration = Duration::from_millis(500);

/// When agents go, unless the NIC takes longer to come up.
pub(crate) const GO_AT: Duration = Duration::from_secs(1);

/// What Intel's drivers take for that.
const PCI_LINK: Duration = Duration::from_secs(4);

pub(crate) fn go_at(options: &NicOptions) -> Duration {
    GO_AT + nic_delay(options)
}

fn nic_delay(options: &NicOptions) -> Duration {
    if options.is_intel() { PCI_LINK } else { Duration::ZERO }
}

/// From the end of the measurement until servers stop: requests on their way may come back.
const STOP_AFTER: Duration = Duration::from_millis(500);

/// From then until the guests power off.
const END_AFTER: Duration = Duration::from_secs(6);

/// The guests that play a plan.
const HOSTS: usize = 2;

/// A program of a plan on its guest.
pub(crate) struct GuestProgram<'a> {
    pub(crate) host: usize,
    pub(crate) program: u32,
    pub(crate) player: &'a Player,
}

/// The programs of `plan`: guests count theirs from 1.
pub(crate) fn parts(plan: &Plan) -> impl Iterator<Item = GuestProgram<'_>> {
    (1..).zip(&plan.players).map(|(program, player)| GuestProgram {
        host: player.host,
        program,
        player,
    })
}

/// The number of the program that makes the settings of a guest's interface.
pub(crate) fn settings_program(plan: &Plan) -> u32 {
    plan.players.len() as u32 + 1
}

/// The scripts of the guests that play `plan`, with costs as in `options`.
pub(crate) fn of(plan: &Plan, options: &NicOptions) -> Result<Vec<Vec<TimedCommand>>> {
    let stations = Station::all(&lab::names(HOSTS));
    let mut scripts = vec![Vec::new(); HOSTS];
    let (delay, go_at) = (nic_delay(options), go_at(options));
    let stop = go_at + Duration::from_secs_f64(plan.warmup_s + plan.duration_s) + STOP_AFTER;
    for GuestProgram { host, program, player } in parts(plan) {
        let script = &mut scripts[host];
        let start = delay + if player.server { SERVERS_AT } else { CLIENTS_AT };
        let mut cue = |at, order| script.push(order_at(at, program, order));
        let costs = !options.costs_of(host).are_zero();
        let processor = costs.then(|| stations[host].interface());
        cue(start, Order::Spawn(spawn(player, processor, plan.polling_of(host))?));
        if matches!(player.role, Role::Agent(..)) {
            cue(go_at, Order::Input(b"go\n".to_vec()));
            if player.server {
                cue(stop, Order::Input(b"stop\n".to_vec()));
            }
        }
    }
    for (host, settings) in &plan.settings {
        let (script, station) = (&mut scripts[*host], &stations[*host]);
        let words = host_settings::apply(&station.interface(), settings);
        let order = Order::Spawn(Spawn { words: own(&words), ..played() });
        script.insert(0, order_at(delay + SETTINGS_AT, settings_program(plan), order));
    }
    for script in &mut scripts {
        script.push(order_at(stop + END_AFTER, 0, Order::PowerOff));
    }
    Ok(scripts)
}

pub(crate) fn order_at(at: Duration, program: u32, order: Order) -> TimedCommand {
    TimedCommand { at_us: at.as_micros() as u64, program, order }
}

fn spawn(player: &Player, processor: Option<String>, polling: Polling) -> Result<Spawn> {
    let role = &player.role;
    let mut environment = environment();
    if matches!(role, Role::Program(_)) {
        let more = preload::environment(polling)?;
        environment
            .extend(more.iter().map(|(name, value)| ((*name).into(), value.as_str().into())));
    }
    let words = match role {
        Role::Agent(_, spec) => {
            let mut spec = spec.clone();
            spec.virtual_time = true;
            spec.processor = processor;
            // A spin has no end where time stands still meanwhile.
            spec.spin = false;
            own(&["agent".to_owned(), serde_json::to_string(&spec)?])
        }
        Role::Program(words) => words.iter().map(|word| word.as_str().into()).collect(),
    };
    let input = matches!(role, Role::Agent(..));
    Ok(Spawn { words, input, environment, ..Spawn::default() })
}

/// This program, with arguments.
fn own(arguments: &[String]) -> Vec<Text> {
    let words = [PROGRAM].into_iter().chain(arguments.iter().map(String::as_str));
    words.map(Into::into).collect()
}

/// A program as all are that play.
fn played() -> Spawn {
    Spawn { environment: environment(), ..Spawn::default() }
}

/// What a program finds in its environment: the same in every run.
pub(crate) fn environment() -> Vec<(Text, Text)> {
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    [("PATH", path), ("HOME", "/root"), ("LANG", "C.UTF-8"), ("TERM", "dumb")]
        .map(|(name, value)| (name.into(), value.into()))
        .into()
}
