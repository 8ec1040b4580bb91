//! Files as they come: texts, compressed or not, and archives of reports, which are tar.
//!
//! Archives are streamed: of each file that is looked at, some megabytes are kept, all others are
//! passed over.

use std::io::{self, BufReader, Read};

use crate::gather::{Input, ReadSession};
use crate::packed::plain;
use crate::place::{LARGEST, is_looked_at};

/// No archive has more files.
const MOST_FILES: usize = 1 << 20;

/// No archive is unpacked further.
const MOST_BYTES: u64 = 8 << 30;

/// No report has more files that are looked at, nor more bytes in them.
pub const MOST_KEPT: usize = 1 << 15;
/// All of them together.
pub const MOST_KEPT_BYTES: u64 = 256 << 20;

/// Where a header of tar says that it is one.
const USTAR: (usize, &[u8]) = (257, b"ustar");

/// Bytes that are read at once.
const PIECE: usize = 1 << 16;

/// Reads a stream, which may be compressed, and an archive.
///
/// # Errors
/// If it cannot be read, or is no more what its beginning says.
pub fn read_into(session: &mut ReadSession, name: &str, stream: impl Read) -> io::Result<()> {
    let mut stream = plain(BufReader::with_capacity(PIECE, stream))?;
    let mut start = Vec::new();
    stream.by_ref().take(512).read_to_end(&mut start)?;
    let is_archive = is_tar(&start);
    let whole = io::Cursor::new(start).chain(stream);
    if is_archive {
        members(whole)?.iter().for_each(|file| session.input(file));
    } else {
        session.stream(name, whole)?;
    }
    Ok(())
}

/// Whether bytes begin an archive.
fn is_tar(start: &[u8]) -> bool {
    let (at, magic) = USTAR;
    start.get(at..at + magic.len()) == Some(magic)
}

/// The files of an archive that are looked at, each with its path.
///
/// # Errors
/// If it is no archive, is broken, or has more files than any report.
pub fn members(archive: impl Read) -> io::Result<Vec<Input>> {
    let mut archive = tar::Archive::new(archive.take(MOST_BYTES));
    let (mut found, mut kept) = (Vec::new(), 0);
    for (number, entry) in archive.entries()?.enumerate() {
        let mut entry = entry?;
        if number >= MOST_FILES || found.len() >= MOST_KEPT || kept >= MOST_KEPT_BYTES {
            let what = "it has more files than any report";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !entry.header().entry_type().is_file() || !is_looked_at(&name) {
            continue;
        }
        let size = entry.size();
        let mut bytes = Vec::new();
        entry.by_ref().take(LARGEST).read_to_end(&mut bytes)?;
        kept += bytes.len() as u64;
        let left_off = size.saturating_sub(LARGEST);
        found.push(Input { name, bytes, is_of_report: true, left_off });
    }
    Ok(found)
}
