//! The tab Drop: what `earmark predict` says of a capture.

use std::io::{self, Write};

use capture::{CaptureFormat, format_of};
use flate2::write::MultiGzDecoder;
use forecast::{CaptureQuestion, GRIDS, grid_timer};
use nic::moderation::{Moderation, SettingError};
use predict::Predictor;
use report::shell::quoted;
use serde::Deserialize;
use serde_json::{Value, json};

/// What the user says beside the capture, as options of the command have it; what is empty or not
/// there is as usual.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct PredictOptions {
    /// The name of the capture.
    name: String,
    compare: String,
    mark: String,
    lane: String,
    grid: String,
    by: String,
    host: String,
    interface: String,
    link_rate: String,
    queues: String,
    ring: String,
}

impl PredictOptions {
    /// Each option that was given, with its name.
    fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("compare", &self.compare),
            ("mark", &self.mark),
            ("lane", &self.lane),
            ("grid", &self.grid),
            ("by", &self.by),
            ("host", &self.host),
            ("interface", &self.interface),
            ("link-rate", &self.link_rate),
            ("queues", &self.queues),
            ("ring", &self.ring),
        ];
        let all = all.into_iter().map(|(name, value)| (name, value.trim()));
        all.filter(|given| !matches!(given, (_, "") | ("by", "port") | ("grid", "none")))
    }

    /// The command that says the same.
    fn command(&self) -> String {
        let mut command = format!("earmark predict {}", quoted(&self.name));
        for (name, value) in self.given() {
            // Between settings the command takes no spaces.
            let value = if name == "compare" { value.replace(' ', "") } else { value.into() };
            command += &format!(" --{name} {}", quoted(&value));
        }
        command
    }

    fn asked(&self) -> Result<CaptureQuestion, String> {
        let mut asked = CaptureQuestion::default();
        for (name, value) in self.given() {
            let wrong = |error: &dyn std::fmt::Display| format!("--{name} {value}: {error}");
            match name {
                "compare" => {
                    let settings = settings(value).map_err(|error| wrong(&error))?;
                    asked.compare = settings;
                }
                "mark" => asked.mark = Some(value.parse().map_err(|error| wrong(&error))?),
                "lane" => asked.lane = Some(value.parse().map_err(|error| wrong(&error))?),
                "grid" => {
                    let of = || wrong(&format!("one of {}", GRIDS.join(", ")));
                    asked.grid = Some(grid_timer(value).ok_or_else(of)?);
                }
                "by" => asked.by = value.parse().map_err(|error: String| wrong(&error))?,
                "host" => asked.host = Some(value.parse().map_err(|error| wrong(&error))?),
                "interface" => asked.interface = Some(value.into()),
                "link-rate" => {
                    asked.link_rate_mbit =
                        Some(number(value, 1..=u32::MAX).map_err(|it| wrong(&it))?);
                }
                "queues" => {
                    let queues = number(value, 1..=64).map_err(|it| wrong(&it))?;
                    asked.queues = u16::try_from(queues).map_err(|it| wrong(&it))?;
                }
                _ => asked.ring = number(value, 16..=65_536).map_err(|it| wrong(&it))? as usize,
            }
        }
        Ok(asked)
    }
}

fn settings(text: &str) -> Result<Vec<Moderation>, SettingError> {
    text.split(',').map(|setting| setting.trim().parse()).collect()
}

fn number(text: &str, range: std::ops::RangeInclusive<u32>) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("a number from {} to {}", range.start(), range.end()))
}

/// A capture that is being read: bytes go to the predictor as they come, nothing is kept.
#[derive(Debug)]
pub(crate) struct CaptureSession {
    options: PredictOptions,
    input: CaptureInput,
}

/// The way of its bytes.
#[derive(Debug)]
enum CaptureInput {
    Plain(Sink),
    Gzip(Box<MultiGzDecoder<Sink>>),
}

/// Where unpacked bytes go.
#[derive(Debug)]
struct Sink(Box<Predictor>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.feed(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CaptureSession {
    /// A session for a capture that begins like this.
    pub(crate) fn new(options: PredictOptions, start: &[u8]) -> Result<Self, String> {
        let question = options.asked()?.question().map_err(|error| error.to_string())?;
        let predictor = Predictor::new(question).map_err(|error| error.to_string())?;
        let sink = Sink(Box::new(predictor));
        let input = match format_of(start) {
            Some(CaptureFormat::Gzip) => CaptureInput::Gzip(Box::new(MultiGzDecoder::new(sink))),
            _ => CaptureInput::Plain(sink),
        };
        Ok(Self { options, input })
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), String> {
        let fed = match &mut self.input {
            CaptureInput::Plain(sink) => sink.write_all(bytes),
            CaptureInput::Gzip(gzip) => gzip.write_all(bytes),
        };
        fed.map_err(|error| self.failed(&error))
    }

    /// What settings would do to it.
    pub(crate) fn answer(self) -> Result<Value, String> {
        let Self { options, input } = self;
        let what = format!("read {}", options.name);
        let sink = match input {
            CaptureInput::Plain(sink) => sink,
            CaptureInput::Gzip(gzip) => {
                gzip.finish().map_err(|error| format!("{what}: {error}"))?
            }
        };
        let prediction = sink.0.finish().map_err(|error| format!("{what}: {error}"))?;
        let report = forecast::report(&options.name, &prediction);
        let markup = report::fragment(&report).map_err(|error| error.to_string())?;
        let json = report::json::text(&prediction).map_err(|error| error.to_string())?;
        Ok(json!({
            "command": options.command(),
            "markup": markup,
            "json": json,
        }))
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("read {}: {error}", self.options.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(given: &str) -> PredictOptions {
        serde_json::from_str(given).unwrap()
    }

    #[test]
    fn options_are_those_of_the_command() {
        let given = r#"{"name": "a b.pcap", "compare": "disabled, delay:20", "mark": "",
            "link-rate": " 1000 ", "by": "flow"}"#;
        let command = "earmark predict 'a b.pcap' --compare disabled,delay:20 --by flow \
                       --link-rate 1000";
        assert_eq!(options(given).command(), command);
        let asked = options(given).asked().unwrap();
        assert_eq!((asked.compare.len(), asked.link_rate_mbit, asked.queues), (2, Some(1_000), 1));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (given, why) in [
            (r#"{"compare": "delay:20,no"}"#, "--compare delay:20,no: "),
            (r#"{"queues": "65"}"#, "--queues 65: a number from 1 to 64"),
            (r#"{"host": "nowhere"}"#, "--host nowhere: "),
            (r#"{"grid": "adaptive"}"#, "--grid adaptive: one of delay, throttle, periodic"),
        ] {
            let error = options(given).asked().unwrap_err();
            assert!(error.starts_with(why), "{error}");
        }
        let error = CaptureSession::new(options(r#"{"compare": "driver"}"#), &[]).unwrap_err();
        assert!(error.starts_with("driver: "), "{error}");
        let mut session = CaptureSession::new(options(r#"{"name": "x"}"#), &[]).unwrap();
        assert!(session.feed(b"no capture at all, but text").unwrap_err().starts_with("read x: "));
    }
}
