//! Archives of reports: tar, as it is or compressed by gzip or xz.
//!
//! They are streamed: of each file that is looked at, some megabytes are kept, all others are
//! passed over.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::gather::Input;
use crate::place::{LARGEST, is_looked_at};

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
pub fn is_compressed(start: &[u8]) -> bool {
    start.starts_with(&GZIP) || start.starts_with(&XZ)
}

/// Whether bytes begin an archive.
pub fn is_tar(start: &[u8]) -> bool {
    let (at, magic) = USTAR;
    start.get(at..at + magic.len()) == Some(magic)
}

/// What is in a file that may be compressed, as a stream.
///
/// # Errors
/// If its beginning cannot be read.
pub fn plain<'a>(mut file: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
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
