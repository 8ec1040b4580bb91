//! Bytes of a capture: a file, compressed or not, or standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result};
use predict::Predictor;
use read::packed::plain;
use sys::ctrl_c;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;

/// Feeds the whole capture.
pub(super) fn feed(path: &Path, session: &mut Predictor) -> Result<()> {
    let what = || format!("read {}", path.display());
    let bytes: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).with_context(|| {
            format!("open {}; make a capture with: tcpdump -i eth0 -s 96 -w FILE", path.display())
        })?;
        Box::new(file)
    };
    let mut bytes = plain(BufReader::with_capacity(PIECE, bytes)).with_context(what)?;
    pieces(&mut bytes, session).with_context(what)
}

fn pieces(bytes: &mut impl BufRead, session: &mut Predictor) -> Result<()> {
    loop {
        let piece = bytes.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        session.feed(piece)?;
        let count = piece.len();
        bytes.consume(count);
        ctrl_c::check()?;
    }
}
