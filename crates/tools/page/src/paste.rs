//! The tab Paste: what `earmark read` says of texts and files.

use read::archive::read_into;
use read::{InputKind, Options, ReadSession, Taken, screen};
use report::terminal::Width;
use serde::Deserialize;
use serde_json::{Value, json};

/// So many bytes of a file are kept; more are counted.
const MOST_BYTES: usize = 512 << 20;

/// What the user says beside the files.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PasteOptions {
    driver: Option<String>,
    device: Option<String>,
    seconds: Option<f64>,
}

/// A file so far.
#[derive(Debug, Default)]
struct PastedFile {
    name: String,
    bytes: Vec<u8>,
}

/// Files so far.
#[derive(Debug, Default)]
pub(crate) struct Paste {
    files: Vec<PastedFile>,
}

impl Paste {
    pub(crate) fn begin(&mut self, name: String) {
        self.files.push(PastedFile { name, bytes: Vec::new() });
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if let Some(file) = self.files.last_mut() {
            let room = MOST_BYTES.saturating_sub(file.bytes.len());
            file.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    pub(crate) fn answer(&mut self, options: PasteOptions) -> Result<Value, String> {
        let PasteOptions { driver, device, seconds } = options;
        let mut session = ReadSession::new(Options { driver, device, seconds });
        for PastedFile { name, bytes } in std::mem::take(&mut self.files) {
            read_into(&mut session, &name, &bytes[..])
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
        Ok(json!({ "text": screen.to_string(), "markup": markup, "captures": captures }))
    }
}
