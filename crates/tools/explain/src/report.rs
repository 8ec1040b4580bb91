//! What `earmark explain` prints: a table of stages, and words; or JSON.

mod joined;

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use flows::record::FlowRole;

use super::both::{self, BothEnds};
use super::cause::{Facts, Ranked, RequestTable, RequestVerdict};
use super::evidence::{OwnHold, References};
use super::far::{FarLook, WithHost};
use super::following::Account;
use joined::JoinedEnds;
use report::terminal::{Table, Width};

/// Columns of the longest bar.
const WIDTH: f64 = 30.0;

/// One path that is explained: of our own requests, of one socket of a program, of a device.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Explained {
    /// Of what, such as `TCP requests to 10.9.0.2:7`.
    pub(crate) subject: String,
    pub(crate) role: FlowRole,
    #[serde(flatten)]
    pub(crate) table: RequestTable,
    pub(crate) verdict: RequestVerdict,
    /// If the table has the stages of both hosts.
    pub(crate) joined: Option<JoinedEnds>,
}

/// What requests of one length take beyond this NIC.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct WayOfLength {
    /// Bytes of a request, and of its answer.
    pub(crate) bytes: usize,
    pub(crate) requests: usize,
    /// The median from this NIC to the answer, in microseconds.
    pub(crate) far_us: f64,
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
    /// What requests of two lengths take beyond this NIC, if they were ours.
    pub(crate) ways: Vec<WayOfLength>,
    /// By how much events of the kernel miss what the program measured.
    pub(crate) sum_error: Option<SumError>,
    pub(crate) account: Account,
    pub(crate) explained: Vec<Explained>,
    /// What was followed and is not in `explained`.
    pub(crate) left_out: LeftOut,
    /// How the look at a program ended, if one was run.
    pub(crate) program: Option<ProgramRun>,
    /// What a far host has followed beside this one (`--with`).
    pub(crate) with: Option<WithHost>,
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
                 flows"
            ),
            Some(ProgramRun { end: EndReason::Program, traced_for_s }) => format!(
                "the program ended after {traced_for_s:.2} s, and no answer to a request over TCP \
                 or UDP was seen until then"
            ),
            _ => "no request over TCP or UDP was answered while it was looked for".to_owned(),
        };
        format!(
            "Nothing was seen that can be explained: {why}. Try it for longer, or while the machine \
             does less besides.\n\n"
        )
    }

    /// Where the stages come from, what is missing, and what it cost.
    fn sources(&self) -> String {
        let mut text = String::new();
        let Account { tracepoints, missing, elapsed_s, requests, own_cpu_s, kernel_cpu_s, .. } =
            &self.account;
        let _ = writeln!(
            text,
            "Followed {requests} requests for {elapsed_s:.1} s by {} tracepoints, which took \
             {kernel_cpu_s:.2} s of a processor, and this process {own_cpu_s:.2} s.",
            tracepoints.len(),
        );
        if let [usual, other] = self.ways.as_slice() {
            let _ = writeln!(
                text,
                "Beyond this NIC, requests of {} bytes take {:.1} us, those of {} bytes {:.1} us \
                 (medians).",
                usual.bytes, usual.far_us, other.bytes, other.far_us
            );
        }
        if let Some(error) = self.sum_error {
            let _ = writeln!(
                text,
                "Events of the kernel cover all but {:.1} % of what the program measured: its way \
                 in and out of the kernel.",
                error.p50 * 100.0
            );
        }
        let LeftOut { sockets, requests } = self.left_out;
        if sockets > 0 && !self.explained.is_empty() {
            let _ = writeln!(
                text,
                "{requests} requests of {sockets} other flows or receivers were followed and have \
                 no table: those above had more."
            );
        }
        match self.program.map(|program| program.end) {
            Some(EndReason::Duration) => {
                text += "--duration is over; the program runs on, and is followed no more.\n";
            }
            Some(EndReason::Signal) => {
                text += "A signal ended the look; the program got it, too.\n";
            }
            Some(EndReason::Program) | None => {}
        }
        text += &self.with.as_ref().map_or(String::new(), |with| with.text(&self.explained));
        for (tracepoint, effect) in missing {
            let _ = writeln!(text, "Without the tracepoint {tracepoint}: {effect}.");
        }
        text + &self.doubts()
    }

    /// What the stages do not have.
    fn doubts(&self) -> String {
        let mut text = String::new();
        let Account { lost_records, lost_flows, excess_us, .. } = self.account;
        if lost_records + lost_flows > 0 {
            let _ = writeln!(
                text,
                "There was no room for {lost_records} of the requests, and for {lost_flows} sockets."
            );
        }
        if excess_us > 1.0 {
            let _ = writeln!(
                text,
                "The stages of a request were longer than it by up to {excess_us:.1} us: that is an \
                 error of Earmark; please report it."
            );
        }
        let asks = self.explained.iter().any(|one| one.role == FlowRole::Asks);
        if asks && !self.own_hold.is_separate() {
            text += match self.own_hold {
                OwnHold::Set { up_to_us: Some(0.0), .. } => {
                    "This NIC is set not to hold packets (ethtool -c).\n"
                }
                OwnHold::None => "This device has no interrupts to hold back.\n",
                _ => {
                    "The hold of this NIC is part of the far stages: nothing says how long it is \
                     (earmark show has its settings).\n"
                }
            };
        }
        text
    }
}

impl Explained {
    /// Explains requests, with what the far host has of them where it has; `None`: there are too
    /// few.
    pub(crate) fn new(
        subject: String,
        role: FlowRole,
        ranked: &Ranked,
        facts: &Facts,
        far: Option<&FarLook>,
    ) -> Option<Self> {
        if let Some(far) = far {
            let BothEnds { ranked: both, wire } =
                both::join(ranked, &far.requests, far.account.held);
            if let Some(table) = both.table() {
                let far_hold_up_to_us = far.account.hold_up_to_us;
                let facts = Facts { far_hold_up_to_us, ..facts.clone() };
                let verdict = RequestVerdict::new(&both, &facts);
                let joined = JoinedEnds { host: far.summary.host.clone(), of: ranked.len(), wire };
                return Some(Self { subject, role, table, verdict, joined: Some(joined) });
            }
        }
        let (table, verdict) = (ranked.table()?, RequestVerdict::new(ranked, facts));
        Some(Self { subject, role, table, verdict, joined: None })
    }

    fn text(&self, width: Width) -> String {
        let RequestTable { requests, stages, total } = &self.table;
        let mut text =
            width.wrap(&format!("{}: {requests} requests, microseconds\n", self.subject));
        let mut table = Table::new([
            ("stage", 0),
            ("typical", 0),
            ("share", 0),
            ("mean", 3),
            ("p99", 1),
            ("slowest 1 %", 2),
            ("", 4),
        ])
        .with_words_last();
        let most = stages.iter().map(|row| row.times.typical_us).fold(1e-9, f64::max);
        for row in stages {
            let share = row.times.typical_us / total.typical_us.max(1e-9);
            table.add_row([
                row.at.name(),
                format!("{:.1}", row.times.typical_us),
                format!("{:.0} %", share * 100.0),
                format!("{:.1}", row.times.quantiles_us.mean),
                format!("{:.1}", row.times.quantiles_us.p99),
                format!("{:.1}", row.times.slow_us),
                bar(row.times.typical_us / most),
            ]);
        }
        table.add_row([
            "all".to_owned(),
            format!("{:.1}", total.typical_us),
            "100 %".into(),
            format!("{:.1}", total.quantiles_us.mean),
            format!("{:.1}", total.quantiles_us.p99),
            format!("{:.1}", total.slow_us),
            String::new(),
        ]);
        let _ = writeln!(text, "{}", table.fit(width));
        if let Some(joined) = &self.joined {
            text += &width.wrap(&joined.text(*requests));
        }
        text + &width.wrap(&self.verdict.text())
    }
}

fn bar(share: f64) -> String {
    let columns = (share.clamp(0.0, 1.0) * WIDTH).round() as usize;
    "#".repeat(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::both::FarRequests;
    use crate::cause::checks::alike;
    use crate::evidence::Far;
    use crate::far::FarAccount;
    use flows::record::FlowStage;
    use report::terminal::checks::fits;

    fn report() -> Explanation {
        let ranked =
            Ranked::new(alike(9, &[(FlowStage::FarUnacked, 250), (FlowStage::WakeUp, 10)]));
        let own_hold = OwnHold::Set {
            rx_usecs: 50,
            rx_frames: 0,
            adaptive: false,
            up_to_us: Some(50.0),
            single_frame: false,
        };
        let facts = Facts {
            device: Some("eth7"),
            own_hold: &own_hold,
            far: Some(Far::SlowProgram),
            far_hold_up_to_us: None,
            throttled_us: None,
            slow_start_after_idle: None,
            frequency: None,
            packets_per_s: 1_000.0,
        };
        let subject = "TCP requests to 192.0.2.1:7".to_owned();
        let explained = Explained::new(subject, FlowRole::Asks, &ranked, &facts, None).unwrap();
        let account = Account {
            missing: vec![("sk_data_ready", "UDP is not followed (Linux 6.3 has it)")],
            ..Account::default()
        };
        let way = |bytes, far_us| WayOfLength { bytes, requests: 7, far_us };
        Explanation {
            device: Some("eth7".into()),
            own_hold,
            references: None,
            ways: vec![way(64, 250.0), way(1_400, 262.5)],
            sum_error: Some(SumError { p50: 0.004, p99: 0.02 }),
            account,
            explained: vec![explained],
            left_out: LeftOut::default(),
            program: None,
            with: None,
        }
    }

    #[test]
    fn text_has_the_table_the_cause_and_what_is_missing() {
        let text = report().text(Width::columns(200)).replace('\n', " ");
        for words in [
            "far, not acknowledged",
            "96 %",
            "Typical, 260 us: 250 us (96 %, the far side): the far program takes long",
            "Without the tracepoint sk_data_ready",
            "all but 0.4 %",
            "64 bytes take 250.0 us, those of 1400 bytes 262.5 us",
            "The hold of this NIC is part of the far stages",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }

    #[test]
    fn both_hosts_are_one_table_and_what_is_left_is_the_wire() {
        let (near, far): (Vec<_>, Vec<_>) = (0..9).map(both::checks::pair).unzip();
        let summary = WithHost { host: "b".to_owned(), requests: 12, lost: 3, failed: None };
        let account = FarAccount { hold_up_to_us: Some(0.0), ..FarAccount::default() };
        let look = FarLook { requests: FarRequests::new(far), account, summary };
        let own_hold = OwnHold::None;
        let facts = Facts {
            device: None,
            own_hold: &own_hold,
            far: None,
            far_hold_up_to_us: None,
            throttled_us: None,
            slow_start_after_idle: None,
            frequency: None,
            packets_per_s: 1.0,
        };
        let explained =
            Explained::new("x".to_owned(), FlowRole::Asks, &Ranked::new(near), &facts, Some(&look));
        let report = Explanation {
            explained: vec![explained.unwrap()],
            with: Some(look.summary),
            ..report()
        };
        let text = report.text(Width::columns(200));
        for words in [
            "there: blocked: lock",
            "wire and NICs",
            "9 of 9 requests as b has followed them, too. Wire and NICs take 0 to 70 us there and 0 to 70 us back",
            "Typical, 305 us: 200 us (66 %, the far side): as the far host sees it, the program waits for a lock",
            "70.0 us (23 %, the way between): the way there and back",
            "Against lock: on the far host: find the holder",
            "b has followed 12 requests of this host, of which 3 did not get here.",
        ] {
            assert!(text.replace('\n', " ").contains(words), "{words}\n{text}");
        }
        report::json::checks::conforms(&report);
        let json = serde_json::to_value(report).unwrap();
        let stages = json["explained"][0]["stages"].as_array().unwrap();
        let lock = stages.iter().find(|row| row["stage"] == "lock").unwrap();
        assert_eq!((&lock["far"], &lock["typical_us"]), (&true.into(), &200.0.into()));
    }

    #[test]
    fn every_terminal_has_the_typical_time_and_the_cause_in_whole_numbers() {
        fits(
            |width| report().text(width),
            &["typical", "far, not acknowledged", "96 %", "Typical"],
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
        for (sockets, words) in [(1, "for a table: 3."), (2, "for a table: 3 in all, of 2 flows")] {
            let left_out = LeftOut { sockets, requests: 3 };
            let text = Explanation { left_out, ..short.clone() }.text(Width::columns(80));
            assert!(text.replace('\n', " ").contains(words), "{text}");
        }
    }

    #[test]
    fn json_has_the_stages_beside_the_subject() {
        report::json::checks::conforms(&report());
        let json = serde_json::to_value(report()).unwrap();
        assert_eq!(json["explained"][0]["stages"][0]["stage"], "far-unacked");
        let cause = &json["explained"][0]["verdict"]["typical"]["causes"][0];
        assert_eq!(
            (&cause["side"], &cause["causes"][0]),
            (&"theirs".into(), &"far-program".into())
        );
    }
}
