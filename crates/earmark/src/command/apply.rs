//! `earmark apply`, `confirm` and `rollback`: settings of a device, changed so that it can be
//! undone.

use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use netdev::{Root, device_name};
use serde::Serialize;

use super::or_port;
use bench::options::duration;
use report::shell::quoted;
use report::{errln, json, outln, output};
use sys::ctrl_c;
use sys::privilege::may_administer_network;
use tune::device::{self, Reopened, TunedDevice};
use tune::lone;
use tune::recover;
use tune::threads;
use tune::transaction::{
    self, SettingResult, Transaction, Verdict, boot, check, current, put_back, since_boot, undo,
};
use tune::{Change, Setting, State, Value};
use tune::{Journal, Store};

/// Which device, and where its journal is.
#[derive(Args, Debug)]
pub(crate) struct DeviceArgs {
    /// The device is a port of the NIC of a running lab, such as b0; its name, if several run
    #[arg(long, value_name = "LAB", num_args = 0..=1, default_missing_value = "")]
    #[arg(require_equals = true)]
    pub(crate) lab: Option<String>,
    /// Where journals are; without it /run/earmark, or a place in $XDG_RUNTIME_DIR
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) state_dir: Option<PathBuf>,
}

impl DeviceArgs {
    /// Refuses at once, rather than after a measurement, who may not change device `name`.
    pub(crate) fn may_change(&self, name: &str) -> Result<()> {
        ensure!(
            self.lab.is_some() || may_administer_network()?,
            "change {name}: this takes root, or CAP_NET_ADMIN; type the same with sudo"
        );
        Ok(())
    }

    /// Opens a device, once what dead Earmarks have left behind is undone.
    pub(crate) fn open(&self, name: &str) -> Result<(Store, Box<dyn TunedDevice>)> {
        let store = Store::find(self.state_dir.as_deref())?;
        recover::recover(&store).iter().for_each(|line| errln!("{line}"));
        let device = device::open(name, self.lab.as_deref());
        let device =
            device.map_err(|error| if self.lab.is_none() { or_port(error, name) } else { error });
        Ok((store, device?))
    }

    /// What names lab and journals on another command line.
    #[must_use]
    pub(crate) fn flags(&self) -> String {
        let lab = match self.lab.as_deref() {
            None => String::new(),
            Some("") => " --lab".into(),
            Some(lab) => format!(" --lab={lab}"),
        };
        let place = self.state_dir.as_ref();
        let place = place.map(|it| format!(" --state-dir {}", quoted(&it.to_string_lossy())));
        lab + &place.unwrap_or_default()
    }
}

#[derive(Args, Debug)]
pub(crate) struct ApplyArgs {
    /// The device, such as eth0
    #[arg(value_name = "DEV")]
    pub(crate) device: String,
    /// Names and values, in turn, as in: rx-usecs 50 queue:1:rx-usecs 0 gro-flush-timeout 20us
    /// sysctl:net.core.netdev_budget 600; or NAME=VALUE. A time alone counts microseconds, that of
    /// gro-flush-timeout and irq-suspend-timeout nanoseconds
    #[arg(required = true, num_args = 1.., value_name = "SETTING VALUE")]
    #[arg(allow_negative_numbers = true)]
    pub(crate) settings: Vec<String>,
    /// Say what would be changed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Undo the change after so many seconds unless `earmark confirm` comes before
    #[arg(long, value_name = "SECONDS", value_parser = duration, conflicts_with = "dry_run")]
    pub(crate) confirm_within: Option<f64>,
    /// Undo the change if the device takes anything but exactly these values
    #[arg(long)]
    pub(crate) exact: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) at: DeviceArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RollbackArgs {
    /// The device; without it, all that Earmark has changed
    #[arg(value_name = "DEV")]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) at: DeviceArgs,
}

#[derive(Serialize)]
struct Applied<'a> {
    device: &'a str,
    driver: String,
    dry_run: bool,
    settings: Vec<SettingResult>,
    confirm_within_s: Option<f64>,
    way_back: String,
}

/// Changes settings of a device.
pub(crate) fn apply(args: &ApplyArgs) -> Result<()> {
    let change = Change::parse(&args.settings).map_err(|why| anyhow!("{why}"))?;
    if !args.dry_run {
        args.at.may_change(&args.device)?;
    }
    let (store, device) = args.at.open(&args.device)?;
    let device = device.as_ref();
    check(device, &change)?;
    let is_undone = args.confirm_within.is_some() || args.dry_run;
    let warnings =
        [lone::check(device, &change)?, threads::check(&args.device, &change, is_undone)?];
    warnings.iter().flatten().for_each(|warning| errln!("warning: {warning}"));
    if args.dry_run {
        return dry_run(args, device, &change);
    }
    ctrl_c::watch().context("take signals")?;
    let mut transaction = Transaction::begin(device, &store, "apply", change.settings())?;
    let took = transaction.change(&change)?;
    ctrl_c::check()?;
    judge(args, &took)?;
    let way_back = way_back(&args.device, &args.at, transaction.before(), &took);
    match args.confirm_within {
        Some(seconds) => transaction.keep_for(seconds)?,
        None => transaction.keep()?,
    }
    print(args, device, took, &way_back)
}

/// Refuses a change that the device did not make, or not as `--exact` wants it.
fn judge(args: &ApplyArgs, took: &[SettingResult]) -> Result<()> {
    let asked = || took.iter().filter(|took| took.asked.is_some());
    let failed = |took: &&SettingResult| match took.verdict {
        Verdict::Taken | Verdict::AlongWith => false,
        Verdict::Ignored => true,
        Verdict::Rounded | Verdict::Overridden => args.exact,
    };
    let words: Vec<String> = asked().filter(failed).map(SettingResult::describe).collect();
    // What was ignored beside settings that were taken is said, and no reason to undo those.
    let all = words.len() == asked().count();
    ensure!(words.is_empty() || !(all || args.exact), "{}: {}", args.device, words.join("; "));
    Ok(())
}

fn dry_run(args: &ApplyArgs, device: &dyn TunedDevice, change: &Change) -> Result<()> {
    let before = device.read_with(&change.settings().collect::<Vec<_>>())?;
    let mut took = transaction::took(&before, change, &before.with(change));
    took.retain(|took| took.asked.is_some());
    let way_back = way_back(&args.device, &args.at, &before, &took);
    print(args, device, took, &way_back)
}

/// The command that brings the device back, in the settings that were changed.
fn way_back(name: &str, at: &DeviceArgs, before: &State, took: &[SettingResult]) -> String {
    let changed = |setting| took.iter().any(|t| t.setting == setting && t.before != t.now);
    let words: Vec<String> = before
        .only(changed)
        .0
        .iter()
        .map(|(setting, value)| format!("{setting} {value}"))
        .collect();
    if words.is_empty() {
        return "nothing was changed".into();
    }
    format!("earmark rollback {name}{}   (that is {})", at.flags(), words.join(" "))
}

fn print(
    args: &ApplyArgs,
    device: &dyn TunedDevice,
    took: Vec<SettingResult>,
    way_back: &str,
) -> Result<()> {
    if args.json {
        return json::print(&Applied {
            device: &args.device,
            driver: device.driver(),
            dry_run: args.dry_run,
            settings: took,
            confirm_within_s: args.confirm_within,
            way_back: way_back.to_owned(),
        });
    }
    let would = if args.dry_run { "would be: " } else { "" };
    took.iter().for_each(|took| outln!("{}: {would}{}", args.device, took.describe()));
    if args.dry_run {
        return Ok(());
    }
    if let Some(seconds) = args.confirm_within {
        to_confirm(&args.device, &args.at.flags(), seconds);
    }
    outln!("way back: {way_back}");
    Ok(())
}

/// Prints how to keep a change that is undone otherwise.
pub(super) fn to_confirm(name: &str, lab: &str, seconds: f64) {
    outln!("to keep it: earmark confirm {name}{lab}   (within {seconds} s, else it is undone)");
}

/// Keeps a change that waits for its confirmation.
pub(crate) fn confirm(args: &RollbackArgs) -> Result<()> {
    let store = Store::find(args.at.state_dir.as_deref())?;
    let mut confirmed = 0;
    for journal in journals(&store, args)?.0 {
        let Some(trying) = &journal.trying else { continue };
        let Some(until) = trying.until.filter(|until| *until > since_boot()) else { continue };
        let held = store.hold(&journal.device)?;
        // It may have been undone between the two looks.
        let Some(mut journal) = store.read(&journal.device)? else { continue };
        let Some(trying) = journal.trying.take().filter(|t| t.until == Some(until)) else {
            continue;
        };
        journal.keep(trying.changed);
        store.write(&journal, &held)?;
        output::settled();
        let (name, flags) = (&journal.device.name, args.at.flags());
        outln!("{name}: kept; way back: earmark rollback {name}{flags}");
        confirmed += 1;
    }
    // What was confirmed in time is kept by now, and what was not is undone; journals that cannot
    // be read are named.
    recover::recover(&store).iter().for_each(|line| errln!("{line}"));
    ensure!(
        confirmed > 0,
        "no change waits for a confirmation; its time was over and it was undone, or there was none"
    );
    Ok(())
}

/// Brings devices back to what they were before Earmark changed them first.
pub(crate) fn rollback(args: &RollbackArgs) -> Result<()> {
    let store = Store::find(args.at.state_dir.as_deref())?;
    let (meant, mut failed) = journals(&store, args)?;
    let (mut undone, mut elsewhere) = (0, None);
    for journal in meant {
        match roll_back(&store, &journal) {
            Ok(true) => undone += 1,
            Ok(false) => elsewhere = Some(journal.device.name),
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    // One that has the same name here may be meant.
    let is_here = || args.device.as_ref().is_some_and(|name| device::open(name, None).is_ok());
    if let Some(name) = elsewhere.filter(|_| undone == 0 && !is_here()) {
        failed.push(format!("nothing was undone: the change of {name} is in force there"));
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    if undone == 0 {
        if let Some(name) = &args.device {
            device::open(name, args.at.lab.as_deref())?;
        }
        check_others(&store, args)?;
        let what = args.device.as_deref().unwrap_or("any device");
        outln!("Earmark has changed nothing of {what} since the machine was started");
    }
    Ok(())
}

/// Refuses to say that nothing is changed where a change is in force whose journal is at another of
/// the usual places: that of root, or that of a user.
fn check_others(store: &Store, args: &RollbackArgs) -> Result<()> {
    for other in Store::usual().into_iter().filter(|it| it.directory() != store.directory()) {
        let journals = journals(&other, args)?.0;
        // A journal of another network may have the same name.
        let is_here = |it: &&Journal| matches!(device::reopen(&it.device), Ok(Reopened::Here(_)));
        let mut changed = journals.iter().filter(|it| !it.first().0.is_empty());
        let Some(journal) = changed.find(is_here) else { continue };
        bail!(
            "nothing is changed by {}, but {} was changed by another Earmark; call: earmark rollback {1} \
             --state-dir {}",
            store.directory().display(),
            journal.device.name,
            quoted(&other.directory().to_string_lossy())
        );
    }
    Ok(())
}

/// The journals of this boot that are meant, and what is the matter with those that cannot be read,
/// whose devices are not known.
fn journals(store: &Store, args: &RollbackArgs) -> Result<(Vec<Journal>, Vec<String>)> {
    let boot = boot()?;
    // As it is known by, and as it is called.
    let wanted = args.device.as_ref().map(|name| (name, device_name(&Root::here(), name)));
    let meant = |journal: &Journal| {
        let named = wanted.as_ref().is_none_or(|(name, real)| {
            **name == journal.device.name
                || device::name_now(&journal.device).as_ref() == Some(real)
        });
        let lab = args.at.lab.as_ref().filter(|lab| !lab.is_empty());
        journal.boot == boot && named && lab.is_none_or(|lab| *lab == journal.device.place)
    };
    let (mut journals, mut unreadable) = (Vec::new(), Vec::new());
    for journal in store.all() {
        match journal {
            Ok(journal) if meant(&journal) => journals.push(journal),
            Ok(_) => {}
            Err(why) => unreadable.push(format!("{why:#}")),
        }
    }
    Ok((journals, unreadable))
}

/// What of `before` a device that was put back is in, and a line about what it is not in: `ntuple`
/// stays on while others have rules.
pub(super) fn settled(name: &str, device: &dyn TunedDevice, before: &State) -> Result<State> {
    let (setting, off) = (Setting::Ntuple, Value::Switch(false));
    if before.get(setting) == Some(&off) && device.read_with(&[setting])?.is_on(setting) {
        errln!("{name}: ntuple stays on, for the rules that others have added since");
        return Ok(before.only(|it| it != setting));
    }
    Ok(before.clone())
}

fn roll_back(store: &Store, journal: &Journal) -> Result<bool> {
    let mut name = journal.device.name.clone();
    let device = match device::reopen(&journal.device)? {
        Reopened::Here(device) => device,
        Reopened::Gone => {
            errln!("{name} is gone, and its settings with it");
            let held = store.hold(&journal.device)?;
            store.write(&Journal::new(&journal.boot, journal.device.clone()), &held)?;
            return Ok(true);
        }
        Reopened::Elsewhere => {
            errln!("{name} is in another network namespace; call `earmark rollback` there");
            return Ok(false);
        }
    };
    let device = device.as_ref();
    let held = store.hold(&journal.device)?;
    let mut journal = current(store, device)?;
    if journal.device.name != name {
        errln!("{name} is now called {}", journal.device.name);
        name.clone_from(&journal.device.name);
    }
    undo(device, store, &held, &mut journal)?;
    let first = journal.first();
    let named: Vec<_> = first.0.keys().copied().collect();
    let now = device.read_with(&named).with_context(|| {
        format!("{name} cannot be put back now; call `earmark rollback {name}` again")
    })?;
    for kept in &journal.kept {
        let is = now.get(kept.setting);
        if is != Some(&kept.after) && !now.is_driven(kept.setting) {
            let is = is.map_or("gone".into(), ToString::to_string);
            errln!("{name}: {} is {is}, not the {} that Earmark set", kept.setting, kept.after);
        }
    }
    put_back(device, &first)?;
    journal.kept.clear();
    store.write(&journal, &held)?;
    let first = settled(&name, device, &first)?;
    output::settled();
    outln!("{name} is as it was{}{first}", if first.0.is_empty() { "" } else { ": " });
    Ok(true)
}
