//! What `earmark explain` prints: a table of stages, and words; or JSON.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::engine::Role;
use super::evidence::{OwnHold, References};
use super::stages::Stage;
use super::summary::Summary;
use super::tracer::Account;
use super::verdict::{Side, Verdict};
use report::terminal::{Table, Width};

/// Columns of the longest bar.
const WIDTH: f64 = 30.0;

/// One path that is explained: of our own requests, of one socket of a program, of a device.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Explained {
    /// Of what, such as `TCP requests to 10.9.0.2:7`.
    pub(crate) subject: String,
    pub(crate) role: Role,
    #[serde(flatten)]
    pub(crate) summary: Summary,
    pub(crate) verdict: Option<Verdict>,
}

/// What the program measured of a request and no event of the kernel covers, as a share of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct SumError {
    pub(crate) p50: f64,
    /// The 99th percentile.
    pub(crate) p99: f64,
}

/// What one run of `earmark explain` found.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Report")]
pub struct Explanation {
    /// The device, if one is looked at.
    pub(crate) device: Option<String>,
    /// What is known of the hold of its NIC.
    pub(crate) own_hold: OwnHold,
    /// What the program measured, if the requests were ours.
    pub(crate) references: Option<References>,
    /// By how much events of the kernel miss what the program measured.
    pub(crate) sum_error: Option<SumError>,
    pub(crate) account: Account,
    pub(crate) explained: Vec<Explained>,
    /// What was followed and is not in `explained`.
    pub(crate) left_out: LeftOut,
    /// How the look at a program ended, if one was run.
    pub(crate) program: Option<ProgramRun>,
}

/// Requests that were followed and have no table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct LeftOut {
    pub(crate) sockets: usize,
    pub(crate) requests: usize,
}

impl LeftOut {
    pub(crate) fn add(&mut self, requests: usize) {
        self.sockets += 1;
        self.requests += requests;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EndReason {
    Program,
    /// `--duration` was over.
    Duration,
    Signal,
}

/// How the look at a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ProgramRun {
    pub(crate) end: EndReason,
    /// How long it took, in seconds.
    pub(crate) traced_for_s: f64,
}

impl Explanation {
    /// Whether any request was followed.
    pub fn has_any(&self) -> bool {
        !self.explained.is_empty() || self.left_out.requests > 0
    }

    /// Tables and words, for people.
    pub fn text(&self, width: Width) -> String {
        let mut text = String::new();
        for explained in &self.explained {
            text += &explained.text(width);
            text.push('\n');
        }
        if self.explained.is_empty() {
            text += &width.wrap(&self.why_nothing());
        }
        text += &width.wrap(&self.sources());
        text
    }

    fn why_nothing(&self) -> String {
        let LeftOut { sockets, requests } = self.left_out;
        let why = match self.program {
            _ if requests > 0 && sockets == 1 => {
                format!("too few requests were followed for a table: {requests}")
            }
            _ if requests > 0 => format!(
                "too few requests were followed for a table: {requests} in all, of {sockets} \
                 sockets"
            ),
            Some(ProgramRun { end: EndReason::Program, traced_for_s }) => format!(
                "the program ended after {traced_for_s:.2} s, and no answer to a request over TCP \
                 or UDP was seen until then"
            ),
            _ => "no request over TCP or UDP was answered while tracing was on".to_owned(),
        };
        format!(
            "Nothing was seen that can be explained: {why}. Try it for longer, or while the machine \
             does less besides.\n\n"
        )
    }

    /// Where the stages come from, what is missing, and what it cost.
    fn sources(&self) -> String {
        let mut text = String::new();
        let Account { events, missing, untracked, traced_s, elapsed_s, seen, .. } = &self.account;
        let _ = writeln!(
            text,
            "Traced {:.1} of {elapsed_s:.1} s, {seen} events of {} tracepoints{}.",
            traced_s,
            events.len(),
            if self.account.private_tracefs { ", tracefs mounted for this run alone" } else { "" },
        );
        if let Some(error) = self.sum_error {
            let _ = writeln!(
                text,
                "Events of the kernel cover all but {:.1} % of what the program measured: its way \
                 in and out of the kernel, which is in the first and the last stage.",
                error.p50 * 100.0
            );
        }
        let LeftOut { sockets, requests } = self.left_out;
        if sockets > 0 && !self.explained.is_empty() {
            let _ = writeln!(
                text,
                "{requests} requests of {sockets} other sockets or receivers were followed and have \
                 no table: those above had more."
            );
        }
        match self.program.map(|program| program.end) {
            Some(EndReason::Duration) => {
                text += "--duration is over; the program runs on, untraced.\n";
            }
            Some(EndReason::Signal) => {
                text += "A signal ended the look; the program got it, too.\n";
            }
            Some(EndReason::Program) | None => {}
        }
        for (event, why) in missing {
            let _ = writeln!(text, "Without {event}: {why}; its stage is part of the next one.");
        }
        for merged in self.merged() {
            let _ = writeln!(text, "{merged}");
        }
        if untracked.lost_events > 0 {
            let _ = writeln!(
                text,
                "{} events found no room; {} requests were left out for it.",
                untracked.lost_events, untracked.forgotten
            );
        }
        if untracked.unmatched > 0 {
            let _ = writeln!(text, "{} answers were not seen arriving.", untracked.unmatched);
        }
        text
    }

    /// Stages that this device does not have, or that cannot be separated from others.
    fn merged(&self) -> Vec<&'static str> {
        let has = |stage: Stage| {
            self.explained.iter().any(|one| one.summary.stages.iter().any(|row| row.stage == stage))
        };
        let mut words = Vec::new();
        if self.explained.is_empty() {
            return words;
        }
        if !has(Stage::Softirq) {
            words.push("Packets come without an interrupt here: the stack begins at the arrival.");
        }
        if has(Stage::Far) && !has(Stage::Hold) {
            words.push(match self.own_hold {
                OwnHold::Counted { .. } | OwnHold::Stamped { .. } => "",
                OwnHold::Set { up_to_us: Some(0.0), .. } => {
                    "This NIC is set not to hold packets (ethtool -c)."
                }
                OwnHold::Set { up_to_us: Some(_), .. } => {
                    "The longest hold in `earmark show` may be the hold of this NIC within `wire \
                     and far side`: it gives no time stamps of its own to separate them."
                }
                OwnHold::Set { up_to_us: None, .. } => {
                    "How long this NIC holds packets does not follow from its settings (earmark \
                     show): that is part of `wire and far side`."
                }
                OwnHold::None => "This device has no interrupts to hold back.",
                OwnHold::Unknown => {
                    "How long this NIC holds packets is not known: that is part of `wire and far \
                     side`."
                }
            });
        }
        words.retain(|words| !words.is_empty());
        words
    }
}

impl Explained {
    fn text(&self, width: Width) -> String {
        let total = self.summary.total;
        let mut text = width
            .wrap(&format!("{}: {} requests, microseconds\n", self.subject, self.summary.requests));
        let mut table = Table::new([
            ("stage", 0),
            ("typical", 0),
            ("share", 0),
            ("p50", 3),
            ("p99", 1),
            ("slowest 1 %", 2),
            ("", 4),
        ])
        .with_words_last();
        let most = self.summary.largest().map_or(1.0, |row| row.times.typical_us).max(1e-9);
        for row in &self.summary.stages {
            let share = row.times.typical_us / total.typical_us.max(1e-9);
            table.add_row([
                row.stage.name().to_owned(),
                format!("{:.1}", row.times.typical_us),
                format!("{:.0} %", share * 100.0),
                format!("{:.1}", row.times.quantiles_us.p50),
                format!("{:.1}", row.times.quantiles_us.p99),
                format!("{:.1}", row.times.slow_us),
                bar(row.times.typical_us / most),
            ]);
        }
        table.add_row([
            "all".to_owned(),
            format!("{:.1}", total.typical_us),
            "100 %".into(),
            format!("{:.1}", total.quantiles_us.p50),
            format!("{:.1}", total.quantiles_us.p99),
            format!("{:.1}", total.slow_us),
            String::new(),
        ]);
        let _ = writeln!(text, "{}", table.fit(width));
        if let Some(verdict) = &self.verdict {
            text += &width.wrap(&verdict_text(verdict, total.typical_us));
        }
        text
    }
}

fn verdict_text(verdict: &Verdict, total: f64) -> String {
    let side = match verdict.side {
        Side::Mine => "this host",
        Side::Theirs => "the far side",
        Side::Between => "the way between",
        Side::Unknown => "side unknown",
    };
    let share = verdict.us / total.max(1e-9) * 100.0;
    let mut text = format!(
        "Largest cause ({side}, {:.0} of {total:.0} us, {share:.0} %): {}.\n",
        verdict.us, verdict.what
    );
    let _ = writeln!(text, "What it takes: {}.", verdict.takes);
    let _ = writeln!(text, "What that costs: {}.", verdict.costs);
    if !verdict.ruled_out.is_empty() {
        let _ = writeln!(text, "Not the cause: {}.", verdict.ruled_out.join(", "));
    }
    text
}

fn bar(share: f64) -> String {
    let columns = (share.clamp(0.0, 1.0) * WIDTH).round() as usize;
    "#".repeat(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Far;
    use crate::stages::Lengths;
    use crate::summary::Collection;
    use crate::verdict::VerdictInput;
    use report::terminal::checks::fits;

    fn report() -> Explanation {
        let mut lengths = Lengths::default();
        lengths.add(Stage::Far, 250_000);
        lengths.add(Stage::WakeUp, 10_000);
        let summary = Collection::of(lengths).summary().unwrap();
        let own_hold = OwnHold::Set {
            rx_usecs: 50,
            rx_frames: 0,
            adaptive: false,
            up_to_us: Some(50.0),
            single_frame: false,
        };
        let case = VerdictInput {
            summary: &summary,
            far: Far::SlowProgram,
            own_hold: &own_hold,
            device: Some("eth7"),
            handshakes: true,
            packets_per_s: 1_000.0,
        };
        let verdict = case.verdict();
        let subject = "TCP requests to 192.0.2.1:7".to_owned();
        let account = Account {
            missing: vec![("sock:sk_data_ready", "this kernel does not have it".into())],
            ..Account::default()
        };
        Explanation {
            device: Some("eth7".into()),
            own_hold: own_hold.clone(),
            references: None,
            sum_error: Some(SumError { p50: 0.004, p99: 0.02 }),
            account,
            explained: vec![Explained { subject, role: Role::Asks, summary, verdict }],
            left_out: LeftOut::default(),
            program: None,
        }
    }

    #[test]
    fn text_has_the_table_the_cause_and_what_is_missing() {
        let text = report().text(Width::columns(200)).replace('\n', " ");
        for words in [
            "wire and far side",
            "96 %",
            "Largest cause (the far side, 250 of 260 us, 96 %)",
            "Without sock:sk_data_ready",
            "all but 0.4 %",
            "may be the hold of this NIC",
            "Packets come without an interrupt",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }

    #[test]
    fn every_terminal_has_the_typical_time_and_the_cause_in_whole_numbers() {
        fits(
            |width| report().text(width),
            &["typical", "wire and far side", "96 %", "Largest cause"],
        );
    }

    #[test]
    fn nothing_is_said_so() {
        let report = Explanation { explained: Vec::new(), ..report() };
        assert!(
            report.text(Width::columns(80)).contains("no request over TCP or UDP was answered")
        );
        let program = Some(ProgramRun { end: EndReason::Program, traced_for_s: 0.05 });
        let short = Explanation { program, ..report.clone() };
        assert!(
            short.text(Width::columns(80)).contains("the program ended after 0.05 s"),
            "{}",
            short.text(Width::columns(80))
        );
        for (sockets, words) in [(1, "for a table: 3."), (2, "for a table: 3 in all, of 2 sockets")]
        {
            let left_out = LeftOut { sockets, requests: 3 };
            let text = Explanation { left_out, ..short.clone() }.text(Width::columns(80));
            assert!(text.replace('\n', " ").contains(words), "{text}");
        }
    }

    #[test]
    fn json_has_the_stages_beside_the_subject() {
        report::json::checks::conforms(&report());
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["explained"][0]["stages"][0]["stage"], "far");
        assert_eq!(json["explained"][0]["verdict"]["side"], "theirs");
        assert_eq!(json["explained"][0]["verdict"]["cause"]["far"], "slow-program");
    }
}
