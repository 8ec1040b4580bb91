//! Requests, and who answers them.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::paste::{Paste, PasteOptions};

/// What the page asks.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Ask {
    /// Which Earmark it is.
    Version,
    /// A file, or what was pasted, follows in pieces.
    File {
        /// What it is called in the answer.
        name: String,
    },
    /// What the files so far say; they are gone afterwards.
    Read(PasteOptions),
}

/// What answers. It keeps the files that have come.
#[derive(Debug, Default)]
pub struct Engine {
    paste: Paste,
}

impl Engine {
    /// Answers a request.
    ///
    /// # Errors
    /// If it is none, or it cannot be answered: why, for people.
    pub fn ask(&mut self, request: &[u8]) -> Result<Value, String> {
        let ask = serde_json::from_slice(request).map_err(|error| format!("a request: {error}"))?;
        match ask {
            Ask::Version => Ok(json!(env!("CARGO_PKG_VERSION"))),
            Ask::File { name } => {
                self.paste.begin(name);
                Ok(Value::Null)
            }
            Ask::Read(options) => self.paste.answer(options),
        }
    }

    /// Takes the next bytes of the file that was announced.
    ///
    /// # Errors
    /// If none was.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Value, String> {
        self.paste.feed(bytes);
        Ok(Value::Null)
    }
}
