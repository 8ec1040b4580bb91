//! The tab Paste: what `earmark read` says of texts and files.

use read::archive::read_into;
use read::{InputKind, Options, ReadSession, Taken, screen};
use report::terminal::Width;
use serde::Deserialize;
use serde_json::{Value, json};
use show::part;

use crate::Open;

/// Files, and what the user says beside them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pasted {
    /// What they are called in the answer.
    files: Vec<String>,
    driver: Option<String>,
    device: Option<String>,
    seconds: Option<f64>,
}

impl Pasted {
    /// What they say.
    pub(crate) fn answer(self, open: Open<'_>) -> Result<Value, String> {
        let Self { files, driver, device, seconds } = self;
        let mut session = ReadSession::new(Options { driver, device, seconds });
        for (number, name) in files.iter().enumerate() {
            read_into(&mut session, name, open(number))
                .map_err(|error| format!("read {name}: {error}"))?;
        }
        let answer = session.finish();
        if answer.is_nothing() {
            return Err(format!("nothing in it is recognised; {}", answer.expected()));
        }
        let screen = screen(&answer, Width::columns(100));
        let markup = screen.markup().map_err(|error| error.to_string())?;
        let is_capture = |taken: &&Taken| taken.kind == InputKind::Capture;
        let captures: Vec<_> = answer.taken.iter().filter(is_capture).map(|it| &it.input).collect();
        let json = report::json::text(&answer).map_err(|error| error.to_string())?;
        Ok(json!({
            "markup": markup,
            "json": json,
            "missing": answer.missing(),
            "lacks_driver": answer.devices.iter().any(|device| !device.has(part::DRIVER)),
            "captures": captures,
        }))
    }
}
