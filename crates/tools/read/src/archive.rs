//! Archives of reports: tar, as it is or compressed by gzip or xz.
//!
//! They are streamed: of each file that is looked at, some megabytes are kept, all others are
//! passed over.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::gather::Input;
use crate::place::{LARGEST, is_looked_at};
use crate::unknown::is_capture;

/// No archive has more files.
const MOST_FILES: usize = 1 << 20;

/// No archive is unpacked further.
const MOST_BYTES: u64 = 8 << 30;

/// No report has more files that are looked at, nor more bytes in them.
pub const MOST_KEPT: usize = 1 << 15;
/// All of them together.
pub const MOST_KEPT_BYTES: u64 = 256 << 20;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const XZ: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
/// Those that are only named.
const OTHERS: [(&[u8], &str); 2] = [(b"BZh", "bzip2"), (&[0x28, 0xb5, 0x2f, 0xfd], "zstd")];

/// Where a header of tar says that it is one.
const USTAR: (usize, &[u8]) = (257, b"ustar");

/// Whether bytes begin a compressed file.
fn is_compressed(start: &[u8]) -> bool {
    start.starts_with(&GZIP) || start.starts_with(&XZ)
}

/// Whether bytes begin an archive.
fn is_tar(start: &[u8]) -> bool {
    let (at, magic) = USTAR;
    start.get(at..at + magic.len()) == Some(magic)
}

/// What is in a file that may be compressed, as a stream.
///
/// # Errors
/// If its beginning cannot be read.
fn plain<'a>(mut file: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let start = file.fill_buf()?;
    for (magic, name) in OTHERS {
        if start.starts_with(magic) {
            let what =
                format!("it is compressed by {name}, which is not read here; unpack it first");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
    }
    Ok(match () {
        () if start.starts_with(&GZIP) => Box::new(BufReader::new(MultiGzDecoder::new(file))),
        () if start.starts_with(&XZ) => Box::new(BufReader::new(XzReader::new(file, true))),
        () => Box::new(file),
    })
}

/// So many bytes of a paste or a log are read.
const MOST_OF_TEXT: u64 = 64 << 20;

/// What a stream has, which may be compressed, and an archive.
///
/// # Errors
/// If it cannot be read, or is no more what its beginning says.
pub fn inputs(name: String, stream: impl Read) -> io::Result<Vec<Input>> {
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let start = beginning(&mut stream)?;
    let is_packed = is_compressed(&start);
    let mut stream = plain(io::Cursor::new(start).chain(stream))?;
    let start = beginning(&mut stream)?;
    if is_tar(&start) {
        return members(io::Cursor::new(start).chain(stream));
    }
    if is_capture(&start) {
        return Ok(vec![Input { name, bytes: start, is_of_report: false, left_off: 0 }]);
    }
    let mut bytes = start;
    stream.by_ref().take(MOST_OF_TEXT).read_to_end(&mut bytes)?;
    // What is packed is not unpacked only to count it.
    let left_off = if is_packed { 0 } else { io::copy(&mut stream, &mut io::sink())? };
    Ok(vec![Input { name, bytes, is_of_report: false, left_off }])
}

/// As much as says what a stream is.
fn beginning(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    stream.by_ref().take(512).read_to_end(&mut start)?;
    Ok(start)
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
