//! Bytes of a capture, compressed or not, on their way to the engine.

use std::io::{BufRead, BufReader, Read};

use anyhow::Result;
use predict::Predictor;
use read::packed::plain;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// Feeds a whole capture; `check` ends it between two pieces.
///
/// # Errors
/// If it cannot be read, is no capture, or `check` says so.
pub fn feed(
    bytes: impl Read,
    session: &mut Predictor,
    check: impl Fn() -> Result<()>,
) -> Result<()> {
    let mut bytes = plain(BufReader::with_capacity(PIECE, bytes))?;
    loop {
        let piece = bytes.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        session.feed(piece)?;
        let count = piece.len();
        bytes.consume(count);
        check()?;
    }
}
