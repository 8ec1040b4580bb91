//! The tab Drop: what `earmark predict` says of a capture.

use std::collections::BTreeMap;
use std::io::Read;

use anyhow::{Context, Error, Result};
use bench::line;
use clap::{Arg, Args, Command};
use forecast::QuestionOptions;
use predict::Predictor;
use report::shell::quoted;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An option of the command.
#[derive(Debug, Serialize)]
struct CaptureOption {
    name: String,
    /// What the command's help says of it.
    hint: String,
    /// The words that it takes, if it takes no others.
    choices: Vec<String>,
    /// What it is if nothing is said.
    usual: String,
}

/// A capture, and what the user says beside it; what is empty or not there is as usual.
#[derive(Debug, Deserialize)]
pub(crate) struct Dropped {
    name: String,
    #[serde(default)]
    options: BTreeMap<String, String>,
}

/// What can be said, in the order of the command's help.
pub(crate) fn form() -> Value {
    json!(options())
}

fn options() -> Vec<CaptureOption> {
    let command = QuestionOptions::augment_args(Command::new("predict"));
    command.get_arguments().map(CaptureOption::of).collect()
}

impl CaptureOption {
    fn of(arg: &Arg) -> Self {
        let possible = arg.get_possible_values();
        let choices = possible.iter().map(|value| value.get_name().to_owned());
        let usual = arg.get_default_values().iter().map(|value| value.to_string_lossy());
        let usual = usual.collect::<Vec<_>>().join(",");
        let none = usual.is_empty().then(String::new);
        let choices: Vec<String> = match arg.is_hide_possible_values_set() || possible.is_empty() {
            true => Vec::new(),
            false => none.into_iter().chain(choices).collect(),
        };
        let hint = arg.get_help().map(ToString::to_string).unwrap_or_default();
        Self { name: arg.get_long().unwrap_or_default().to_owned(), hint, choices, usual }
    }
}

impl Dropped {
    /// The words behind the capture.
    fn words(&self) -> Vec<String> {
        let said = options().into_iter().filter_map(|option| {
            let value = self.options.get(&option.name)?.trim();
            // Between settings the command takes no spaces.
            let value =
                if option.name == "compare" { value.replace(' ', "") } else { value.into() };
            let is_said = !value.is_empty() && value != option.usual;
            is_said.then(|| [format!("--{}", option.name), value])
        });
        said.flatten().collect()
    }

    /// The command that says the same.
    fn command(&self) -> String {
        let words = [self.name.clone()].into_iter().chain(self.words());
        let words = words.map(|word| quoted(&word)).collect::<Vec<_>>();
        format!("earmark predict {}", words.join(" "))
    }

    /// What settings would do to it.
    pub(crate) fn answer(&self, bytes: impl Read) -> Result<Value> {
        let options: QuestionOptions = line::parsed(&self.words()).map_err(Error::msg)?;
        let mut session = Predictor::new(options.asked()?.question()?)?;
        let what = || format!("read {}", self.name);
        forecast::feed(bytes, &mut session, || Ok(())).with_context(what)?;
        let prediction = session.finish().with_context(what)?;
        Ok(json!({
            "command": self.command(),
            "markup": report::fragment(&forecast::report(&self.name, &prediction))?,
            "json": report::json::text(&prediction)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(options: &Value) -> Dropped {
        serde_json::from_value(json!({ "name": "a b.pcap", "options": options })).unwrap()
    }

    #[test]
    fn options_are_those_of_the_command() {
        let given = json!({ "compare": "disabled, delay:20", "mark": "", "link-rate": " 1000 ",
            "by": "flow", "queues": "1", "costs": "paper" });
        let command = "earmark predict 'a b.pcap' --compare disabled,delay:20 --by flow \
                       --link-rate 1000 --costs paper";
        assert_eq!(dropped(&given).command(), command);
        let of = |name: &str| options().into_iter().find(|it| it.name == name).unwrap();
        assert_eq!(of("by").choices, ["port", "flow", "dscp", "rule"]);
        assert_eq!(of("grid").choices, ["", "delay", "throttle", "periodic"]);
        assert!(of("compare").choices.is_empty() && of("compare").usual.starts_with("disabled,"));
        assert!(options().iter().all(|option| !option.hint.is_empty()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (given, why) in [
            (json!({ "compare": "delay:20,no" }), "--compare"),
            (json!({ "queues": "65" }), "65"),
            (json!({ "host": "nowhere" }), "--host"),
            (json!({ "grid": "adaptive" }), "delay, throttle, periodic"),
            (json!({ "compare": "driver" }), "driver: "),
            (json!({}), "read a b.pcap: "),
        ] {
            let text = &b"no capture at all, but text"[..];
            let error = format!("{:#}", dropped(&given).answer(text).unwrap_err());
            assert!(error.contains(why) && !error.contains("--help"), "{error}");
        }
    }
}
