//! Requests, and who answers them.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::paste::{Paste, PasteOptions};
use crate::predict::{CaptureSession, PredictOptions};
use crate::see::{self, Look, See, Values};

/// What somebody pasted: a device with adaptive moderation, and pings through it.
const EXAMPLE: &str = include_str!("example.txt");

/// What the page asks.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// Which Earmark it is.
    Version,
    /// A text to try it with.
    Example,
    /// A file, or what was pasted, follows in pieces.
    File {
        /// What it is called in the answer.
        name: String,
    },
    /// What the files so far say; they are gone afterwards.
    Read(PasteOptions),
    /// A capture follows in pieces.
    Capture(PredictOptions),
    /// What settings would do to the capture that has come.
    Predict,
    /// What can be set in the model, and the cases that set it.
    SeeForm,
    /// Plays the model under these values of controls.
    See {
        /// By the names of controls.
        values: Values,
    },
    /// Plays one more of the other settings.
    SeeGhost,
    /// What happened at a moment of the run that was played last.
    SeeLook(Look),
}

/// What answers. It keeps the files that have come, and of captures what is counted.
#[derive(Debug, Default)]
pub struct Engine {
    paste: Paste,
    /// Options of a capture of which nothing has come.
    announced: Option<PredictOptions>,
    capture: Option<CaptureSession>,
    see: See,
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
            Ask::Example => Ok(json!(EXAMPLE)),
            Ask::File { name } => {
                (self.announced, self.capture) = (None, None);
                self.paste.begin(name);
                Ok(Value::Null)
            }
            Ask::Read(options) => self.paste.answer(options),
            Ask::Capture(options) => {
                (self.announced, self.capture) = (Some(options), None);
                Ok(Value::Null)
            }
            Ask::Predict => {
                // An empty file has no pieces.
                self.begin(&[])?;
                self.capture.take().ok_or("no capture has come")?.answer()
            }
            Ask::SeeForm => Ok(see::form()),
            Ask::See { values } => self.see.play(&values),
            Ask::SeeGhost => self.see.ghost(),
            Ask::SeeLook(look) => self.see.look(look),
        }
    }

    /// Takes the next bytes of the file or the capture that was announced.
    ///
    /// # Errors
    /// If they are no capture, or its options are wrong.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Value, String> {
        self.begin(bytes)?;
        match &mut self.capture {
            Some(capture) => capture.feed(bytes)?,
            None => self.paste.feed(bytes),
        }
        Ok(Value::Null)
    }

    /// Begins with the capture that was announced, if nothing of it has come yet.
    fn begin(&mut self, start: &[u8]) -> Result<(), String> {
        if let Some(options) = self.announced.take() {
            self.capture = Some(CaptureSession::new(options, start)?);
        }
        Ok(())
    }
}
