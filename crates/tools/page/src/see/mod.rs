//! The tab See: the model world under settings, as `earmark bench --world model` plays it.
//!
//! Values of controls become the words of that command, and its own parser, plan, world and
//! measurement make the answer of them; the page shows the command. The trade-off has the chosen
//! setting and others as ghosts. Those are the same until something else than the setting changes,
//! so they are played once, one a request, by another engine: no answer waits for one, the picture
//! moves at once and fills up.

mod cases;
mod form;
mod trace;

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::Result;
use base::time::Duration;
use bench::compare::{self, Comparison};
use bench::environment::{Environment, MODEL};
use bench::experiment::{Plan, USUAL_SETTING};
use bench::line;
use bench::measurement::{Measurement, Quantiles};
use bench::options::{NicOptions, Ports};
use bench::scenario::Run;
use bench::slice::Slice;
use bench::turns::Turns;
use bench::world::model::{GO_AT, ModelWorld};
use bench::world::trace::HostTrace;
use bench::world::{World, WorldKind};
use nic::moderation::Moderation;
use report::numbers::rounded;
use report::shell::quoted;
use report::{PointRole, TradeoffChart, TradeoffPoint};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use form::Values;
pub(crate) use trace::Look;
use trace::Trace;

/// Settings that are shown beside the chosen one.
const GHOSTS: [&str; 7] =
    ["disabled", "delay:25", "delay:75", "throttle:125", "adaptive", "marked:75", "stream:75"];

/// Things of each kind and host that a timeline keeps.
const MOST: usize = 4_000;

/// A bulk flow is fast from here, in Mbit/s.
const FAST_MBIT: u32 = 1_000;

/// What has been seen so far.
#[derive(Debug, Default)]
pub(crate) struct See {
    /// The words without the setting, as far as there are ghosts of them.
    rest: Vec<String>,
    ghosts: Vec<Option<TradeoffPoint>>,
    chosen: Option<TradeoffPoint>,
    trace: Option<Trace>,
}

/// Another setting beside the chosen one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ghost {
    /// The words without the setting.
    rest: Vec<String>,
    /// Its place among the others, from 0.
    number: usize,
    /// Its place in the picture; none before it is played, or if these hosts cannot have it.
    point: Option<TradeoffPoint>,
}

/// A world that keeps what happened in the last round.
struct Traced {
    model: ModelWorld,
    last: Rc<RefCell<Vec<HostTrace>>>,
}

impl World for Traced {
    fn environment(&self) -> &Environment {
        self.model.environment()
    }

    fn round(&self, plan: &Plan, one: Moderation, two: Option<Moderation>) -> Result<Slice> {
        let (slice, traces) = self.model.traced(plan, (one, two), MOST)?;
        *self.last.borrow_mut() = traces;
        Ok(slice)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// The controls, and the cases that set them.
pub(crate) fn form() -> Value {
    json!({ "controls": form::controls(), "cases": cases::cases() })
}

impl See {
    /// Plays what `values` ask for.
    pub(crate) fn play(&mut self, values: &Values) -> Result<Value, String> {
        let (mut words, taken) = form::words(values)?;
        words.extend(times(values));
        let run = line::run(&words)?;
        let command = command(&words);
        let (comparison, trace) = played(&run, &command).map_err(|error| format!("{error:#}"))?;
        let result = comparison.results.first().ok_or("nothing was measured")?;
        let rest = without_setting(&words);
        if rest != self.rest {
            self.rest = rest;
            self.ghosts.clear();
        }
        self.chosen = result.tradeoff().map(|point| with_role(point, PointRole::Pick));
        self.trace = Some(trace);
        let settings = std::iter::once(result.setting.as_str()).chain(GHOSTS);
        let all = settings.collect::<Vec<_>>().join(",");
        Ok(json!({
            "command": command,
            "all": self::command(&[self.rest.clone(), vec!["--compare".into(), all]].concat()),
            "taken": taken,
            "figures": figures(result),
            "picture": self.picture(),
            "next": self.next(),
            "result": comparison,
        }))
    }

    /// Takes one of the others, if it is still asked for.
    pub(crate) fn beside(&mut self, ghost: Ghost) -> Value {
        if ghost.rest == self.rest && ghost.number == self.ghosts.len() {
            self.ghosts.push(ghost.point);
        }
        json!({ "picture": self.picture(), "next": self.next() })
    }

    /// What happened at a moment of the last run.
    pub(crate) fn look(&self, look: Look) -> Result<Value, String> {
        let trace = self.trace.as_ref().ok_or("nothing has been played yet")?;
        Ok(json!(trace.look(look)))
    }

    /// The next of the others, which is to be played.
    fn next(&self) -> Option<Ghost> {
        let number = self.ghosts.len();
        (number < GHOSTS.len()).then(|| Ghost { rest: self.rest.clone(), number, point: None })
    }

    fn picture(&self) -> String {
        let Some(chosen) = &self.chosen else { return String::new() };
        let others = self.ghosts.iter().flatten().filter(|it| it.name != chosen.name);
        let points = others.chain([chosen]).cloned().collect();
        TradeoffChart { title: "the model".into(), points, ..Default::default() }.inline()
    }
}

impl Ghost {
    /// Plays it, and finds its place in the picture.
    pub(crate) fn play(mut self) -> Result<Value, String> {
        let setting = GHOSTS.get(self.number).ok_or("there is no such setting")?;
        let strategy = ["--strategy".to_owned(), (*setting).to_owned()];
        let run = line::run(&[self.rest.clone(), strategy.into()].concat());
        let played = run.ok().and_then(|run| {
            compare::run(&turns(&run).ok()?, Box::new(world(&run, "").ok()?), &()).ok()
        });
        self.point = played.and_then(|comparison| comparison.results.first()?.tradeoff());
        Ok(json!(self))
    }
}

fn with_role(point: TradeoffPoint, role: PointRole) -> TradeoffPoint {
    TradeoffPoint { role, ..point }
}

/// Seconds of warm-up and of measurement: enough for figures that hardly change with more, and
/// short enough to follow a slider. Memcached and NTP ask seldom, and a fast bulk flow has many
/// packets.
fn times(values: &Values) -> [String; 4] {
    let experiment = values.get("experiment").map_or("", String::as_str);
    let rate = values.get("bulk-rate").and_then(|rate| rate.parse().ok()).unwrap_or(0);
    let (warmup, duration) = match experiment {
        "ntp" => ("0.05", "1"),
        "memcached" => ("0.05", "0.5"),
        "ping" | "loaded-server" => ("0.02", "0.1"),
        "tcp-rr" | "udp-rr" => ("0.01", "0.05"),
        "bulk" => ("0.005", "0.01"),
        _ if rate > FAST_MBIT => ("0.005", "0.01"),
        _ => ("0.01", "0.04"),
    };
    ["--warmup", warmup, "--duration", duration].map(str::to_owned)
}

/// The line that gives the same numbers.
fn command(words: &[String]) -> String {
    let words = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    format!("earmark bench {words}")
}

/// Words without strategy and numbers of it.
fn without_setting(words: &[String]) -> Vec<String> {
    let mut rest = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if matches!(word.as_str(), "--strategy" | "--rx-usecs" | "--rx-frames") {
            words.next();
        } else {
            rest.push(word.clone());
        }
    }
    rest
}

fn world(run: &Run, command: &str) -> Result<ModelWorld> {
    let environment = Environment { command: command.to_owned(), ..Environment::of(MODEL) };
    ModelWorld::new(&run.nic, environment)
}

fn turns(run: &Run) -> Result<Turns<'_>> {
    Turns::new(run, WorldKind::Model, 0)
}

/// Plays a run; its figures, and what happened in it.
fn played(run: &Run, command: &str) -> Result<(Comparison, Trace)> {
    let model = world(run, command)?;
    let link = model.machine().link;
    let last = Rc::default();
    let world = Box::new(Traced { model, last: Rc::clone(&last) });
    let comparison = compare::run(&turns(run)?, world, &())?;
    let (warmup_s, _) = bench::experiment::timing(&run.options);
    let begun = GO_AT + Duration::from_nanos((warmup_s * 1e9) as u64);
    let settings = settings(&run.nic)?;
    Ok((comparison, Trace::new(last.take(), settings, link, begun)))
}

/// The setting of each of the two hosts.
fn settings(nic: &NicOptions) -> Result<[Moderation; 2]> {
    let moderation = nic.moderation(USUAL_SETTING)?;
    let takes = nic.ports.unwrap_or(Ports::Both).numbers(2);
    Ok([0, 1].map(|host| if takes.contains(&host) { moderation } else { Moderation::DISABLED }))
}

/// The figures that say most, by name.
fn figures(result: &Measurement) -> Vec<(&'static str, String)> {
    let us = |value: f64| format!("{} us", rounded(value, 1));
    let all = |name, of: fn(&Quantiles) -> f64, from: Option<&Quantiles>| {
        (name, from.map(|it| us(of(it))))
    };
    let whole = |value: f64| rounded(value, 0);
    let latency = result.latency_us.as_ref();
    let ntp = result.one_way.first().and_then(|it| it.offset_us.as_ref());
    [
        all("round trip, median", |it| it.p50, latency),
        all("least", |it| it.min, latency),
        all("mean", |it| it.mean, latency),
        all("99 of 100 within", |it| it.p99, latency),
        all("half a round trip, median", |it| it.p50, result.half_round_trip_us.as_ref()),
        ("round trips a second", result.transactions_per_s.map(whole)),
        all("error of the clock, median", |it| it.p50, ntp),
        ("bulk flow", result.bulk_bits_per_s.map(|it| format!("{} Mbit/s", whole(it / 1e6)))),
        ("messages a second", result.messages_per_s.map(whole)),
        ("interrupts a second", result.interrupts_per_s.map(whole)),
        ("packets for each interrupt", result.packets_per_interrupt.map(|it| rounded(it, 2))),
        all("hold, median", |it| it.p50, result.hold_us.as_ref()),
        all("hold, longest", |it| it.max, result.hold_us.as_ref()),
        ("busiest host", result.busiest_host().map(|it| format!("{} %", rounded(1e2 * it, 1)))),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect()
}
