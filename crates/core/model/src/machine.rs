//! A machine as data: what its parts cost, and how they behave where parts differ.
//!
//! A machine is a file in TOML. Each constant has a value, where the value comes from, and a
//! source; how many of them were fitted stands in every result.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use base::time::Duration;
use mx::config::Config;
use network::link::{MIN_FRAME_BYTES, OVERHEAD_BYTES};
use nic::queue::Dma;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::{Table, Value};

/// The machines that come with the crate, by name.
const KNOWN: [(&str, &str); 6] = [
    ("ideal", include_str!("../machines/ideal.toml")),
    ("server", include_str!("../machines/server.toml")),
    ("clovertown", include_str!("../machines/clovertown.toml")),
    ("e1000", include_str!("../machines/e1000.toml")),
    ("bge", include_str!("../machines/bge.toml")),
    ("odroid", include_str!("../machines/odroid.toml")),
];

/// A machine: all hosts of a model are alike.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// What it is, in one line.
    pub title: String,
    /// Cores of a host.
    #[serde(default = "one")]
    pub cores: usize,
    /// Which core an interrupt goes to.
    #[serde(default)]
    pub routing: Routing,
    /// Idle cores enter a sleep state, and pay [`Costs::idle_exit`] for the next interrupt.
    #[serde(default)]
    pub sleeps: bool,
    /// Who handles frames of MX.
    #[serde(default)]
    pub mx: MxSide,
    /// An acknowledgement every so many messages of MX, as in Open-MX; without it, every so many
    /// frames.
    pub acks_messages: Option<u16>,
    /// How NIC and driver behave where they differ.
    #[serde(default)]
    pub nic: NicSemantics,
    /// The cable from a host to another one, or to the switch.
    pub link: Cable,
    /// What things cost.
    #[serde(default)]
    pub constants: Constants,
}

impl Machine {
    /// The names of the machines that come with the crate.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|(name, _)| *name)
    }

    /// The text of a machine that comes with the crate.
    pub fn text(name: &str) -> Option<&'static str> {
        KNOWN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// A machine that comes with the crate.
    pub fn named(name: &str) -> Option<Self> {
        Some(Self::parse(Self::text(name)?, &[]).expect("the machines of this crate are tested"))
    }

    /// Reads the text of a file, with changes `KEY=VALUE`: keys as in the file, `nic.completions`,
    /// or a constant by its name alone.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(text: &str, changes: &[&str]) -> Result<Self, String> {
        let mut file: Table = toml::from_str(text).map_err(|error| error.to_string())?;
        for change in changes {
            set(&mut file, change)?;
        }
        let machine = Self::deserialize(file).map_err(|error| in_words(&error.to_string()))?;
        let cores = 1..=MAX_CORES;
        if !cores.contains(&machine.cores) {
            return Err(format!("cores = {}: a host has 1 to {MAX_CORES}", machine.cores));
        }
        match machine.routing {
            Routing::Core(core) if core >= machine.cores => {
                Err(format!("routing: there is no core {core} of {}", machine.cores))
            }
            _ => Ok(machine),
        }
    }

    /// Frames of messages of `bytes` after which an endpoint acknowledges.
    pub fn ack_every(&self, bytes: u64, usual: &Config) -> u16 {
        let each = bytes.div_ceil(usual.mtu.into()).max(1);
        let frames = self.acks_messages.map(|messages| (each * u64::from(messages)).min(64) as u16);
        frames.unwrap_or(usual.ack_every)
    }

    /// How many of its constants were fitted.
    pub fn fitted(&self) -> usize {
        self.constants.list.iter().filter(|it| it.origin == Origin::Fitted).count()
    }
}

/// An error of a reader in the words of a file: types of Rust are none.
fn in_words(error: &str) -> String {
    let types = [
        ("usize", "a whole number of 0 or more"),
        ("u64", "a whole number of 0 or more"),
        ("u32", "a whole number of 0 or more"),
        ("u16", "a whole number of 0 or more"),
        ("f64", "a number"),
        ("a boolean", "true or false"),
    ];
    let replaced = |text: String, (name, words): (&str, &str)| {
        text.replace(&format!("expected {name}"), &format!("expected {words}"))
    };
    types.into_iter().fold(String::from(error), replaced)
}

/// Makes one change to the text of a file.
fn set(file: &mut Table, change: &str) -> Result<(), String> {
    let wrong = || format!("`{change}` is no change: write KEY=VALUE, as in sleeps=false");
    let (key, value) = change.split_once('=').ok_or_else(wrong)?;
    // A word needs no quotes.
    let read = |value: &str| toml::from_str::<Table>(&format!("value = {value}")).ok();
    let value = read(value).or_else(|| read(&format!("'{value}'")));
    let value = value.and_then(|mut table| table.remove("value")).ok_or_else(wrong)?;
    if let (Some(_), Some(number)) = (Costs::default().named(key), number(&value)) {
        let constant = [
            ("value", Value::Float(number)),
            ("origin", Value::String("assumed".into())),
            ("source", Value::String("given on the command line".into())),
        ];
        let constant = constant.map(|(name, value)| (name.into(), value)).into_iter().collect();
        let constants = file.entry("constants").or_insert_with(|| Value::Table(Table::new()));
        constants.as_table_mut().ok_or_else(wrong)?.insert(key.into(), Value::Table(constant));
        return Ok(());
    }
    let (path, name) = key.rsplit_once('.').unwrap_or(("", key));
    let mut table = file;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let entry = table.entry(part).or_insert_with(|| Value::Table(Table::new()));
        if !entry.is_table() {
            *entry = Value::Table(Table::new());
        }
        table = entry.as_table_mut().ok_or_else(wrong)?;
    }
    table.insert(name.into(), value);
    Ok(())
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|number| number as f64))
}

/// More cores are not modelled.
const MAX_CORES: usize = 256;

const fn one() -> usize {
    1
}

/// Which core an interrupt goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routing {
    /// The next one, in turn: what chipsets did with the default affinity mask.
    RoundRobin,
    /// The core of this number.
    Core(usize),
    /// That of the queue's number: what a driver with a vector for each queue asks for.
    #[default]
    ByQueue,
}

/// Who handles frames of MX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MxSide {
    /// A library, in processes that sleep while they wait: Earmark's own.
    #[default]
    Library,
    /// The kernel those of large messages, the rest processes that poll: Open-MX ("Performance
    /// Evaluation of the Open-MX stack", section 3).
    Kernel,
}

/// How a NIC behaves where NICs differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NicSemantics {
    /// What a poll finds.
    pub completions: Completions,
    /// How completed transmissions interrupt.
    pub transmissions: Transmissions,
}

/// What a poll finds in the ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Completions {
    /// Every packet whose DMA has completed.
    #[default]
    AtOnce,
    /// Those that the NIC has reported, which it goes on to do while the host polls (myri10ge).
    Reported,
}

/// How completed transmissions interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transmissions {
    /// They do not: the host cleans up when it sends or polls.
    #[default]
    Silent,
    /// On the vector of receptions, which is masked while the host polls.
    Shared,
    /// On a vector, or with a claim token, of their own.
    Own,
}

/// Rate and latency of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cable {
    /// Megabits (10^6) a second; 0 is no limit.
    pub rate_mbit: u32,
    /// From the last bit sent to the frame's arrival, switches and firmware included.
    pub latency_ns: u32,
}

impl Cable {
    /// How long a frame of so many bytes, without FCS, occupies the wire; rounded down.
    pub fn on_wire(self, bytes: usize) -> Duration {
        let bytes = (bytes as u64).max(MIN_FRAME_BYTES) + OVERHEAD_BYTES;
        Duration::from_nanos((bytes * 8_000).checked_div(self.rate_mbit.into()).unwrap_or(0))
    }
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A document says so.
    Stated,
    /// It was measured.
    Measured,
    /// It was chosen so that the model gives numbers of a document.
    Fitted,
    /// It is plausible, and was not changed since.
    Assumed,
}

/// A constant of a machine's file.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its name, a field of [`Costs`].
    pub name: String,
    /// The unit of its value.
    pub unit: &'static str,
    /// The number itself, in its unit.
    pub value: f64,
    /// Where it comes from.
    pub origin: Origin,
    /// The document, the measurement, or the numbers that it was fitted to.
    pub source: String,
}

/// Declares the costs: fields, units and the access by name come from one list.
macro_rules! costs {
    ($($(#[doc = $doc:literal])+ $name:ident: $unit:literal,)*) => {
        /// What things cost. All of them are 0 on an ideal machine.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct Costs {
            $($(#[doc = $doc])+ pub $name: f64,)*
        }

        impl Costs {
            /// The one of this name, and its unit.
            pub fn named(&mut self, name: &str) -> Option<(&mut f64, &'static str)> {
                match name {
                    $(stringify!($name) => Some((&mut self.$name, $unit)),)*
                    _ => None,
                }
            }
        }
    };
}

costs! {
    /// From the last byte of a frame at the NIC until the host can read it, beyond the transfer.
    dma: "ns",
    /// What DMA moves, in bytes a microsecond; 0 is no limit.
    dma_rate: "B/us",
    /// An interrupt: entry, handler, softirq, and the end of its poll.
    interrupt: "ns",
    /// A sleeping core wakes up (C1E).
    idle_exit: "ns",
    /// How long a core is idle before it sleeps.
    idle_after: "ns",
    /// A blocked process is woken and runs.
    wake: "ns",
    /// A received packet, up to the handler of its protocol.
    packet: "ns",
    /// The handler of the protocol.
    handler: "ns",
    /// A byte of a packet that is copied.
    copy: "ns/B",
    /// A packet that is sent: system call, buffer, headers, driver, doorbell.
    send: "ns",
    /// Pages attached to a packet that is sent, however many bytes: counted, mapped, a descriptor
    /// more.
    attach: "ns",
    /// What a program and its library do for a message.
    library: "ns",
    /// A program or a library looks at a clock.
    clock: "ns",
    /// What a library does for an entry of the ring that it shares with its kernel.
    event: "ns",
    /// The cache lines of a channel move to another core.
    moved: "ns",
    /// The part of them that the low-level receive path needs.
    moved_low: "share",
    /// The part of them that a process needs to send a frame of a message of several.
    moved_send: "share",
    /// The part of them that the kernel needs to send.
    moved_reply: "share",
    /// A page of memory is registered; to give it back costs nothing.
    page: "ns",
    /// How much the time of a piece of work varies, uniformly, up or down.
    jitter: "share",
}

impl Costs {
    /// The DMA engine.
    pub fn dma_engine(&self) -> Dma {
        Dma { latency: Duration::from_nanos(self.dma as u64), bytes_per_us: self.dma_rate as u32 }
    }
}

/// The constants of a machine, and where they come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constants {
    /// The numbers, by name.
    pub costs: Costs,
    /// Those that the file has, by name.
    pub list: Vec<Constant>,
}

impl<'de> Deserialize<'de> for Constants {
    fn deserialize<D: Deserializer<'de>>(file: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct FileConstant {
            value: f64,
            origin: Origin,
            source: String,
        }
        let mut constants = Self::default();
        for (name, FileConstant { value, origin, source }) in
            BTreeMap::<String, FileConstant>::deserialize(file)?
        {
            let Some((place, unit)) = constants.costs.named(&name) else {
                return Err(D::Error::custom(format!("there is no constant `{name}`")));
            };
            if !(0.0..=1e9).contains(&value) {
                return Err(D::Error::custom(format!("{name} = {value}: 0 to 10^9 {unit}")));
            }
            *place = value;
            constants.list.push(Constant { name, unit, value, origin, source });
        }
        Ok(constants)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_of_the_crate_can_be_read() {
        for name in Machine::names() {
            let machine = Machine::named(name).unwrap();
            assert!(machine.constants.list.iter().all(|it| it.source.len() > 5), "{name}");
        }
        assert_eq!(Machine::named("ideal").unwrap().constants.costs, Costs::default());
    }

    #[test]
    fn a_machine_is_changed_by_keys_of_its_file() {
        let text = Machine::text("clovertown").unwrap();
        let changes =
            ["sleeps=false", "routing.core=1", "interrupt=900", "nic.transmissions=silent"];
        let machine = Machine::parse(text, &changes).unwrap();
        assert!(!machine.sleeps);
        assert_eq!(machine.routing, Routing::Core(1));
        assert_eq!(machine.constants.costs.interrupt, 900.0);
        assert_eq!(machine.nic.transmissions, Transmissions::Silent);
        assert_eq!(machine.fitted() + 1, Machine::named("clovertown").unwrap().fitted());
        for (change, words) in [
            ("sleeps", "write KEY=VALUE"),
            ("slept=true", "unknown field"),
            ("cores=many", "invalid type: string \"many\", expected a whole number of 0 or more"),
            ("cores=-2", "expected a whole number of 0 or more"),
            ("sleeps=3", "expected true or false"),
            ("nic.color=red", "unknown field"),
        ] {
            let error = Machine::parse(text, &[change]).unwrap_err();
            assert!(error.contains(words), "{change}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let link = "title = 'x'\nlink = { rate_mbit = 1000, latency_ns = 0 }\n";
        let cost = |name: &str, value: &str| {
            format!("{link}[constants.{name}]\nvalue = {value}\norigin = 'assumed'\nsource = 'x'\n")
        };
        for (text, words) in [
            (format!("{link}cores = 0"), "1 to 256"),
            (format!("{link}routing = {{ core = 1 }}"), "no core 1"),
            (format!("{link}color = 1"), "unknown field"),
            (cost("interupt", "1"), "no constant `interupt`"),
            (cost("interrupt", "-1"), "0 to 10^9 ns"),
            (cost("interrupt", "nan"), "0 to 10^9 ns"),
        ] {
            let error = Machine::parse(&text, &[]).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
