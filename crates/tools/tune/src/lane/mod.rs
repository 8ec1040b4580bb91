//! A lane on a NIC of this machine: a queue for urgent packets.
//!
//! # Theory of operation
//!
//! NICs that people own cannot interrupt for one packet and let the next one wait on the same
//! queue. But many have several queues, each with an interrupt and a timer; rules that choose the
//! queue; and a table of the hash that can leave a queue out. [`plan()`] makes of them a lane, or
//! says what is missing and what is left; it reads nothing and changes nothing. [`make`] puts the
//! plan into force with an open [`Transaction`], so that whatever happens the device is as it was;
//! its settings are those that `earmark apply` knows, too.
//!
//! Rules come last, when their queue is ready. A device refuses rules only when it is asked for
//! them, so some are there in several ways (`mark.rs`), and the first that it takes is kept.
//!
//! Which settings make up a lane is in the journal, as all that was changed: [`of_lanes`] picks
//! them. Rules that are not there belong to others.

mod by_hash;
mod capabilities;
pub(crate) mod mark;
mod plan;

use anyhow::Result;

pub use by_hash::Ports;
pub use capabilities::Capabilities;
pub use mark::Candidate;
use plan::Refusal;
pub use plan::{Plan, Wanted, plan};

use crate::device::TunedDevice;
use crate::journal::{Journal, Kept, Store};
use crate::setting::steering::{Placed, parse_table};
use crate::setting::{Change, Mechanism, Setting, State, Value};
use crate::transaction::{SettingResult, Transaction, Verdict};
use netdev::ethtool::{Field, Flow, FlowRule};

/// What became of a plan.
#[derive(Debug, Default)]
pub struct Made {
    /// The rules that are there, each with the rule of the lane that it is for.
    pub rules: Vec<(Placed, String)>,
    /// The settings beside.
    pub settings: Vec<SettingResult>,
    /// What the device lacks, and what that costs.
    pub lost: Vec<String>,
}

impl Plan {
    /// All settings that it may change, so that the journal has them first.
    pub fn settings(&self) -> Vec<Setting> {
        let rules = self.places.iter().zip(&self.candidates).flat_map(|(place, candidate)| {
            candidate.ways.iter().map(|rule| Placed { location: *place, rule: *rule })
        });
        let tried = self.places.first().map(|place| self.by_priority(*place));
        self.change.settings().chain(rules.chain(tried).map(Setting::Rule)).collect()
    }

    /// The rule that is tried where the device takes no other.
    fn by_priority(&self, location: Option<u32>) -> Placed {
        let rule = FlowRule::new(Flow::Ether, self.queue);
        Placed { location, rule: rule.with_mask(Field::Vlan, PRIORITY << 13, 0b111 << 13) }
    }
}

/// A priority that switches and hosts use for what is urgent.
const PRIORITY: u128 = 5;

/// A lane that is being made.
pub struct Begun<'a> {
    /// The change, with all that it may touch in the journal.
    pub transaction: Transaction<'a>,
    /// What is to be done.
    pub plan: Plan,
    /// What drives the device.
    pub driver: String,
    /// What was changed already, so that the device shows its rules.
    changed: Vec<SettingResult>,
}

/// Reads a device, makes a plan, and begins the change.
pub fn begin<'a>(device: &'a dyn TunedDevice, store: &Store, wanted: &Wanted) -> Result<Begun<'a>> {
    let found = Capabilities::read(device)?;
    let driver = found.driver.clone();
    if wanted.by_hash.is_some() || !found.hides_rules() {
        let plan = plan(wanted, &found)?;
        let transaction = Transaction::begin(device, store, "lane", plan.settings().into_iter())?;
        return Ok(Begun { transaction, plan, driver, changed: Vec::new() });
    }
    // All other reasons are known before anything is changed.
    plan(wanted, &found.with_room())?;
    let named = std::iter::once(Setting::Ntuple);
    let mut transaction = Transaction::begin(device, store, "lane", named)?;
    let on = Change(vec![(Setting::Ntuple, Value::Switch(true))]);
    let changed = transaction.change(&on)?;
    let plan = plan(wanted, &Capabilities::read(device)?)?;
    transaction.extend(plan.settings())?;
    Ok(Begun { transaction, plan, driver, changed })
}

impl Begun<'_> {
    /// Puts the plan into force.
    pub fn make(&mut self) -> Result<Made> {
        let mut made = make(&mut self.transaction, &self.plan)?;
        made.settings.splice(0..0, std::mem::take(&mut self.changed));
        Ok(made)
    }
}

/// Puts a plan into force.
///
/// # Errors
/// If the device refuses a part without which there is no lane. The owner of the transaction then
/// drops it, which undoes it.
pub fn make(transaction: &mut Transaction<'_>, plan: &Plan) -> Result<Made> {
    let mut made = Made { lost: plan.lost.clone(), ..Made::default() };
    if !plan.change.is_empty() {
        made.settings = transaction.change(&plan.change)?;
        let is_short = |it: &&SettingResult| {
            !matches!(it.verdict, Verdict::Taken | Verdict::AlongWith) && it.asked.is_some()
        };
        made.lost.extend(made.settings.iter().filter(is_short).map(SettingResult::describe));
    }
    let mut refused = Vec::new();
    for (place, candidate) in plan.places.iter().zip(&plan.candidates) {
        let mut why = None;
        for rule in &candidate.ways {
            let placed = Placed { location: *place, rule: *rule };
            match add(transaction, placed) {
                Ok(()) => {
                    made.rules.push((placed, candidate.asked.clone()));
                    why = None;
                    break;
                }
                Err(error) => why = Some(format!("{rule}: {}", error.root_cause())),
            }
        }
        refused.extend(why);
    }
    if made.rules.is_empty() && !plan.candidates.is_empty() {
        return Err(no_rule(transaction, plan, &refused).into());
    }
    made.lost.extend(refused.into_iter().map(|why| format!("the device takes no rule {why}")));
    let whole_bytes = made.rules.iter().filter(|(placed, _)| placed.rule.has_whole(Field::Tos));
    if whole_bytes.count() > 0 {
        made.lost.push(
            "the device compares whole bytes: packets of that code point that use explicit \
             congestion notification (ECN) do not get to the lane"
                .into(),
        );
    }
    Ok(made)
}

fn add(transaction: &mut Transaction<'_>, placed: Placed) -> Result<()> {
    let change = Change(vec![(Setting::Rule(placed), Value::Switch(true))]);
    transaction.change(&change).map(drop)
}

/// That the device has taken no rule; whether it would take one by VLAN priority is tried.
fn no_rule(transaction: &mut Transaction<'_>, plan: &Plan, refused: &[String]) -> Refusal {
    let by_priority = plan.places.first().is_some_and(|place| {
        let placed = plan.by_priority(*place);
        let is_new = plan.candidates.iter().all(|candidate| !candidate.ways.contains(&placed.rule));
        is_new && add(transaction, placed).is_ok()
    });
    let name = transaction.name();
    let reason = format!("{name} takes none of the rules ({})", refused.join(", "));
    let left = by_priority.then(|| {
        format!(
            "VLAN priority, for senders that set it: earmark lane {name} vlan-priority={PRIORITY}"
        )
    });
    Refusal { reason, left: Some(left.into_iter().collect()) }
}

/// Of what a journal has kept: what makes up lanes, and each thing as it was before.
pub fn of_lanes(journal: &Journal) -> Vec<&Kept> {
    let queues = queues_of_lanes(journal);
    let is_of_lane = |kept: &&Kept| match kept.setting.mechanism() {
        Mechanism::Steering | Mechanism::Placement => true,
        Mechanism::QueueCoalescing => {
            matches!(kept.setting, Setting::Queue(queue, _) if queues.contains(&queue))
        }
        _ => false,
    };
    journal.kept.iter().filter(is_of_lane).collect()
}

/// How a device was without its lanes, which is in state `now`. A queue that was as its device is
/// to be so again, whatever has become of the device since.
pub fn without_lanes(journal: &Journal, now: &State) -> State {
    let followed = |kept: &Kept| {
        let of = kept.setting.of_device()?;
        let device = journal.kept.iter().find(|it| it.setting == of)?;
        (device.before == kept.before).then(|| now.get(of).cloned()).flatten()
    };
    let before = |kept: &Kept| followed(kept).unwrap_or_else(|| kept.before.clone());
    State(of_lanes(journal).into_iter().map(|kept| (kept.setting, before(kept))).collect())
}

/// The queues of lanes: those of rules that were added, and those that the hash's table was made to
/// leave out.
pub fn queues_of_lanes(journal: &Journal) -> Vec<u16> {
    let mut queues = Vec::new();
    for kept in &journal.kept {
        match kept.setting {
            Setting::Rule(placed) if kept.after == Value::Switch(true) => {
                queues.extend(placed.rule.queue());
            }
            Setting::RssTable => {
                let table = |value: &Value| parse_table(&value.to_string()).unwrap_or_default();
                let (before, after) = (table(&kept.before), table(&kept.after));
                let count = |table: &[u32], queue| table.iter().filter(|it| **it == queue).count();
                let left = before.iter().filter(|it| count(&after, **it) < count(&before, **it));
                queues.extend(left.filter_map(|queue| u16::try_from(*queue).ok()));
            }
            _ => {}
        }
    }
    queues.sort_unstable();
    queues.dedup();
    queues
}

#[cfg(test)]
mod tests;
