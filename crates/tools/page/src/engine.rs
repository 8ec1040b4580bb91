//! Requests, and who answers them.

use std::io::Read;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::paste::Pasted;
use crate::predict::{self, Dropped};
use crate::see::{self, Ghost, Look, See, Values};

/// What somebody pasted: a device with adaptive moderation, and pings through it.
const EXAMPLE: &str = include_str!("example.txt");

/// Opens a file of a request, by its number.
pub type Open<'a> = &'a dyn Fn(usize) -> Box<dyn Read>;

/// What the page asks.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// Which Earmark it is.
    Version,
    /// A text to try it with.
    Example,
    /// What the files of the request say.
    Read(Pasted),
    /// What can be said beside a capture.
    PredictForm,
    /// What settings would do to the capture that is the file of the request.
    Predict(Dropped),
    /// What can be set in the model, and the cases that set it.
    SeeForm,
    /// Plays the model under these values of controls.
    See {
        /// By the names of controls.
        values: Values,
    },
    /// Plays one of the other settings.
    SeeGhost(Ghost),
    /// Takes what was played of it into the picture.
    SeeBeside(Ghost),
    /// What happened at a moment of the run that was played last.
    SeeLook(Look),
}

/// What answers. It keeps what the model has played.
#[derive(Debug, Default)]
pub struct Engine {
    see: See,
}

impl Engine {
    /// Answers a request, whose files it opens.
    ///
    /// # Errors
    /// If it is none, or it cannot be answered: why, for people.
    pub fn ask(&mut self, request: &[u8], open: Open<'_>) -> Result<Value, String> {
        let ask = serde_json::from_slice(request).map_err(|error| format!("a request: {error}"))?;
        match ask {
            Ask::Version => Ok(json!(env!("CARGO_PKG_VERSION"))),
            Ask::Example => Ok(json!(EXAMPLE)),
            Ask::Read(pasted) => pasted.answer(open),
            Ask::PredictForm => Ok(predict::form()),
            Ask::Predict(dropped) => dropped.answer(open(0)).map_err(|error| format!("{error:#}")),
            Ask::SeeForm => Ok(see::form()),
            Ask::See { values } => self.see.play(&values),
            Ask::SeeGhost(ghost) => ghost.play(),
            Ask::SeeBeside(ghost) => Ok(self.see.beside(ghost)),
            Ask::SeeLook(look) => self.see.look(look),
        }
    }
}
