//! Where a result comes from: everything that someone who repeats it would ask.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The world in which a guest's clock tells how long something took, and computing takes no time.
pub const VIRTUAL: &str = "virtual";

/// The world of simulated time.
pub const MODEL: &str = "model";

/// What differs from run to run.
const OF_MOMENT: [&str; 2] = ["date", "load_average"];

/// What makes no difference in virtual time.
const OF_MACHINE: [&str; 5] = ["cpu_model", "cpus", "clock_source", "privilege", "nice"];

/// What makes none in a model, beside those.
const OF_KERNEL: &str = "kernel";

/// The machine and the way of measuring.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema, Deserialize)]
pub struct Environment {
    /// Version of Earmark.
    pub earmark: String,
    /// The world that the experiment ran in.
    pub world: String,
    /// When it began.
    pub date: String,
    /// Release of the kernel that ran.
    pub kernel: String,
    /// Model of the processor.
    pub cpu_model: String,
    /// Processors that may be used.
    pub cpus: usize,
    /// Load average over the last minute when it began.
    pub load_average: f64,
    /// Clock source of the kernel.
    pub clock_source: String,
    /// Whether it ran as root or in a user namespace.
    pub privilege: String,
    /// How the data plane waits.
    pub wait: String,
    /// The nice value of the data plane: -20 where it may run before hosts.
    pub nice: i32,
    /// Which NIC of Intel's the guests have, and its driver's options; empty if none.
    pub nic: String,
    /// Which packets are marked.
    pub mark: String,
    /// Which packets have a queue of their own under settings with lanes; empty if none do.
    #[serde(default)]
    pub lane: String,
    /// Rate, latency and faults of the cable.
    pub link: String,
    /// Microseconds from an interrupt until the host has it; `None` if that is the machine's
    /// affair.
    pub interrupt_latency_us: Option<u32>,
    /// What hosts cost in virtual time; empty if nothing does, or it is the machine's affair.
    pub costs: String,
    /// The machine that was modelled, and how many of its constants were fitted; empty if none
    /// was.
    #[serde(default)]
    pub machine: String,
    /// Congestion control of the hosts' TCP.
    pub congestion_control: String,
    /// The command line that was typed.
    pub command: String,
}

impl Environment {
    /// That of `world`, of which nothing more is known.
    pub fn of(world: &str) -> Self {
        Self {
            earmark: env!("CARGO_PKG_VERSION").to_owned(),
            world: world.to_owned(),
            date: String::new(),
            kernel: String::new(),
            cpu_model: String::new(),
            cpus: 0,
            load_average: 0.0,
            clock_source: String::new(),
            privilege: String::new(),
            wait: String::new(),
            nice: 0,
            nic: String::new(),
            mark: String::new(),
            lane: String::new(),
            link: String::new(),
            interrupt_latency_us: None,
            costs: String::new(),
            machine: String::new(),
            congestion_control: String::new(),
            command: String::new(),
        }
    }

    /// The computer that it ran on, or the machine that was modelled, in words.
    pub fn computer(&self) -> String {
        if !self.machine.is_empty() {
            return format!("model: {}", self.machine);
        }
        let Self { cpus, cpu_model, kernel, load_average, privilege, .. } = self;
        format!("{cpus} x {cpu_model}, Linux {kernel}, load {load_average:.2}, {privilege}")
    }

    /// Whether CPU time means anything there.
    pub fn measures_cpu(&self) -> bool {
        ![VIRTUAL, MODEL].contains(&self.world.as_str())
    }

    /// In which way `other` is a different world, in words: results that may differ because of it
    /// are not those of one world. When it was and under which load makes none, and in virtual time
    /// neither does the machine.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let (one, two) = (serde_json::json!(self), serde_json::json!(other));
        let entries =
            one.as_object().into_iter().flatten().zip(two.as_object().into_iter().flatten());
        let is_of_world = |name: &str| {
            let is_of_machine = !self.measures_cpu() && OF_MACHINE.contains(&name);
            let is_of_kernel = self.world == MODEL && name == OF_KERNEL;
            !OF_MOMENT.contains(&name) && !is_of_machine && !is_of_kernel
        };
        let mut different =
            entries.filter(|((name, one), (_, two))| is_of_world(name) && one != two);
        different
            .next()
            .map(|((name, one), (_, two))| format!("{} {one} and {two}", name.replace('_', " ")))
    }

    /// Name and value of each entry, for people.
    pub fn entries(&self) -> Vec<(String, String)> {
        let serde_json::Value::Object(entries) = serde_json::json!(self) else {
            return Vec::new();
        };
        // What is not known, or nothing, has no entry.
        let text = |value: serde_json::Value| match value {
            serde_json::Value::Null => None,
            serde_json::Value::String(text) => Some(text).filter(|text| !text.is_empty()),
            other => Some(other.to_string()),
        };
        let entry = |(name, value): (String, serde_json::Value)| {
            let (name, unit) = match name.strip_suffix("_us") {
                Some(name) => (name.to_owned(), " us"),
                None => (name, ""),
            };
            Some((name.replace('_', " "), text(value)? + unit))
        };
        entries.into_iter().filter_map(entry).collect()
    }
}
