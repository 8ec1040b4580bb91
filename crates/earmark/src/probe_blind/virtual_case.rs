//! A blind case in the virtual world: guests with kernels of their own, a NIC with a secret
//! setting, exact time.
//!
//! The prober is `earmark probe` itself, in a guest; what it heard comes out over its descriptor 3.
//! Guests' drivers do not know of the settings.

use anyhow::{Context, Result, ensure};
use blind::{Case, Decoy, Deferral, Hold};
use infer::MeasuredTrain;
use lab::guest::protocol::OutputStream;
use nic::moderation::Moderation;

use super::{FAR, NEAR, bulk};
use bench::options::{NicOptions, Text};
use probe::recording;
use worlds::virtual_lab::{self, PortChange, Program};

/// The number of the prober among the commands.
const PROBER: u32 = 2;

/// The words that have this program be the far echo of a case.
pub(super) fn echo_words(case: &Case) -> Vec<String> {
    let words = match case.decoy() {
        Some(Decoy::SlowServer { takes }) => format!("echo --work-us {takes:.0}"),
        Some(Decoy::Gathering { count, longest }) => {
            format!("echo --gather {count} --gather-us {longest:.0}")
        }
        _ => "echo".to_owned(),
    };
    words.split(' ').map(str::to_owned).collect()
}

/// Words of a shell that have the kernel of a guest defer interrupts as `hold` says.
fn deferral(hold: Hold) -> String {
    let Some(Deferral { usecs, polls }) = hold.deferral else { return String::new() };
    format!(
        "for device in /sys/class/net/*; do echo {usecs}000 > $device/gro_flush_timeout; \
         echo {polls} > $device/napi_defer_hard_irqs; done; "
    )
}

/// Plays a case; what the prober heard.
pub(super) fn play(case: &Case) -> Result<Vec<MeasuredTrain>> {
    let earmark = std::env::current_exe().context("find the earmark program itself")?;
    let earmark = earmark.display();
    let (theirs, mine) = case.holds();
    let echo = echo_words(case).join(" ");
    let record = format!("probe {FAR} --kind udp --record /proc/self/fd/3 3>&1 >/dev/null 2>&1");
    let mut commands = vec![
        (1, format!("{}exec {earmark} {echo}", deferral(theirs))),
        (0, format!("{}{earmark} {record}", deferral(mine))),
    ];
    if let Some(words) = bulk::words(case, NEAR) {
        commands.push((1, format!("exec {earmark} {}", words.join(" "))));
    }
    let mut written = Vec::new();
    let take = &mut |from: Program, bytes: &[u8]| {
        if from == (0, PROBER, OutputStream::Output) {
            written.extend_from_slice(bytes);
        }
    };
    // Several are played at once.
    let name = format!("{}-{}", std::process::id(), case.seed());
    let mark = case.rules().parse().map(Text).context("read the rules of a case")?;
    let options = NicOptions {
        name: Some(name),
        seed: Some(case.seed()),
        mark: Some(mark),
        ..NicOptions::default()
    };
    let settings =
        vec![PortChange::before("a0", mine.setting), PortChange::before("b0", theirs.setting)];
    let commands = (commands.as_slice(), [0].as_slice());
    let status = virtual_lab::play(commands, &options, Moderation::DISABLED, settings, take)?;
    ensure!(status == 0, "the prober ended with status {status}");
    Ok(recording::parse(written.as_slice()).context("read what the prober heard")?.1)
}
