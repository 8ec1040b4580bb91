//! Plays the causes of `table.toml` one after the other, and judges what `earmark explain` says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::judge::{self, Judged};

/// Seconds that a program, or a host, is explained for. A server is asked for longer than that.
const LENGTH: u32 = 6;
/// A play that takes longer, in seconds, has got stuck.
const STUCK: u32 = 90;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cause {
    name: String,
    #[serde(default = "disabled")]
    nic: String,
    far: Vec<String>,
    near: Vec<String>,
    needs: Option<PathBuf>,
    /// Microseconds, of so many microseconds.
    quota: Option<[u32; 2]>,
    #[serde(default)]
    on: Place,
    #[serde(default)]
    pub(crate) part: JudgedPart,
    pub(crate) truth: Vec<String>,
    before: String,
}

fn disabled() -> String {
    "-s disabled".to_owned()
}

/// Which host is explained.
#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Place {
    #[default]
    Near,
    Far,
}

/// Which requests of a verdict count.
#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum JudgedPart {
    #[default]
    Typical,
    Slowest,
}

impl JudgedPart {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Typical => "typical",
            Self::Slowest => "slowest",
        }
    }
}

#[derive(Deserialize)]
struct Causes {
    cause: Vec<Cause>,
}

/// Plays those whose names have the text after `--only`; with `--show` prints what was explained
/// to standard error, too.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let only = words.iter().position(|word| word == "--only");
    let only = only.map_or("", |at| words.get(at + 1).map_or("", String::as_str));
    let is_shown = words.iter().any(|word| word == "--show");
    let Causes { cause: causes } = toml::from_str(include_str!("table.toml"))?;
    let (mut rows, mut counts) = (Vec::new(), [0; Judged::ALL.len()]);
    let mut before = counts;
    for cause in causes.iter().filter(|cause| cause.name.contains(only)) {
        let (judged, row) = match cause.play() {
            Ok(report) => {
                if is_shown {
                    eprintln!("{report:#}");
                }
                judge::judge(cause, &report)
            }
            Err(why) => (Judged::NotPlayed, json!({ "why": format!("{why:#}") })),
        };
        eprintln!("{:9} {}: {row}", judged.name(), cause.name);
        counts[judged as usize] += 1;
        let part = cause.part.name();
        rows.push(json!({ "name": cause.name, "part": part, "truth": cause.truth,
                          "judged": judged.name(), "said": row, "before": cause.before }));
        before[judged_before(cause)? as usize] += 1;
    }
    println!("{:#}", json!({ "counts": named(counts), "before": named(before), "causes": rows }));
    Ok(())
}

fn named(counts: [u32; Judged::ALL.len()]) -> Value {
    let named = |it: Judged| (it.name().to_owned(), json!(counts[it as usize]));
    Judged::ALL.into_iter().map(named).collect::<serde_json::Map<_, _>>().into()
}

/// How the engine before this one was judged, by the table.
fn judged_before(cause: &Cause) -> Result<Judged> {
    let known = Judged::ALL.into_iter().find(|it| it.name() == cause.before);
    known.with_context(|| format!("{}: nothing is judged {}", cause.name, cause.before))
}

impl Cause {
    /// Plays it on two hosts of a lab; the report of `earmark explain --json`.
    fn play(&self) -> Result<Value> {
        if let Some(path) = &self.needs {
            ensure!(path.exists(), "{} is missing", path.display());
        }
        let group = self.quota.map(Group::new).transpose()?;
        let mut command = Command::new("timeout");
        command.arg(STUCK.to_string()).args(["earmark", "lab", "run"]);
        command.args(self.nic.split_whitespace()).args(["--until", "a"]);
        let explain = format!("earmark explain --json --duration {LENGTH}");
        for (host, scripts) in [("b", &self.far), ("a", &self.near)] {
            for script in scripts {
                command.args(["--on", host, &script.replace("EXPLAIN", &explain)]);
            }
        }
        if let Some(group) = &group {
            command.env("GROUP", &group.0);
        }
        let output = command.env("PATH", path()?).stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        let report = text.find('{').and_then(|at| {
            let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter();
            values.next()?.ok()
        });
        let place = if self.on == Place::Near { "a" } else { "b" };
        report.with_context(|| format!("no report of {place}: {}", errors.trim()))
    }
}

/// Where programs are looked for: beside this one first.
fn path() -> Result<std::ffi::OsString> {
    let own = std::env::current_exe()?;
    let examples = own.parent().context("this program is in a directory")?;
    let mut all = vec![examples.to_owned()];
    all.extend(examples.parent().map(Path::to_owned));
    all.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    Ok(std::env::join_paths(all)?)
}

/// A cgroup with a quota of processors, which is gone when this is dropped.
struct Group(PathBuf);

impl Group {
    fn new([quota, period]: [u32; 2]) -> Result<Self> {
        let all = Path::new("/sys/fs/cgroup");
        let unified = all.join("cgroup.controllers").exists();
        let parent = if unified { all.to_owned() } else { all.join("cpu") };
        let path = parent.join(format!("earmark-causes-{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("make {}", path.display()))?;
        let group = Self(path);
        if unified {
            group.set("cpu.max", &format!("{quota} {period}"))?;
        } else {
            group.set("cpu.cfs_period_us", &period.to_string())?;
            group.set("cpu.cfs_quota_us", &quota.to_string())?;
        }
        Ok(group)
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        let path = self.0.join(file);
        fs::write(&path, value).with_context(|| format!("write {}", path.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What ran in it has ended with the lab.
        let _ = fs::remove_dir(&self.0);
    }
}
